PUTSCOPE_C += $(wildcard harness/*.c harness/sm/*.c harness/nic/*.c harness/path/*.c bench/*.c probes/*.c)
PUTSCOPE_C := $(filter-out harness/ranks_mpi.c %_dev.c,$(PUTSCOPE_C))
# *_dev.c holds device code: one source, compiled for host threads and for the GPU.
DUAL_C += $(wildcard harness/*/*_dev.c bench/*_dev.c probes/*_dev.c)
CUDA_CU += $(wildcard harness/sm/*.cu probes/*.cu)
PLUGIN_MPI_C += $(wildcard harness/ranks_mpi.c)
UNIT_C += $(wildcard harness/tests/test_*.c)
