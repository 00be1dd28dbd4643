# launch.c is linked into the launcher and into putscope (which starts itself under the library).
VCX_LIB_C += $(filter-out harness/vcx/main.c harness/vcx/launch.c,$(wildcard harness/vcx/*.c))
VCX_BIN_C += harness/vcx/main.c harness/vcx/launch.c
PUTSCOPE_C += harness/vcx/launch.c
CLIENT_C += $(wildcard harness/vcx/tests/t_*.c)
