# The launcher's parts are linked into putscope too, which starts itself under the library.
VCX_LAUNCH_C := $(addprefix harness/vcx/,launch.c option.c sysfs.c)
VCX_LIB_C += $(filter-out $(addprefix harness/vcx/,main.c launch.c sysfs.c),$(wildcard harness/vcx/*.c))
VCX_BIN_C += harness/vcx/main.c $(VCX_LAUNCH_C)
PUTSCOPE_C += $(VCX_LAUNCH_C)
CLIENT_C += $(wildcard harness/vcx/tests/t_*.c)
