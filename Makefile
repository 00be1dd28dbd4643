# SPDX-License-Identifier: Apache-2.0
# putscope: `make help` lists the targets.  Non-recursive; the fragments (*.mk) only add to lists.
SHELL := /bin/bash
.DELETE_ON_ERROR:
.DEFAULT_GOAL := all

B      := build$(if $(SAN),-san)
PYTHON ?= /usr/bin/python3
CC     ?= gcc
NVCC   ?= $(firstword $(wildcard /usr/local/cuda/bin/nvcc) $(shell command -v nvcc 2>/dev/null))
Q      := $(if $(V),,@)

# ---- what this machine has (override with CUDA=0 MPI=0 NVTX=0) ----
# `deps` comes first where it is named, in a make of its own, so that detection sees what it installed.
CUDA  ?= $(if $(NVCC),1,0)
MPI   ?= $(if $(shell pkg-config --exists ompi-c 2>/dev/null && echo y),1,0)
# NVTX 3 is headers alone and needs no CUDA: the Toolkit brings them, some distributions too.
NVTX_INC := $(firstword $(patsubst %/nvtx3/nvToolsExt.h,%,$(wildcard $(addsuffix /nvtx3/nvToolsExt.h,$(CUDA_HOME)/include /usr/local/cuda/include /usr/include))))
NVTX  ?= $(if $(NVTX_INC),1,0)
VERBS ?= $(if $(shell pkg-config --exists libibverbs libmlx5 jansson inih lapacke 2>/dev/null && echo y),1,0)

# ---- lists that the fragments add to ----
PUTSCOPE_C :=   # gcc only, in build/putscope (and libputscope.a for the tests)
DUAL_C     :=   # compiled by gcc for host threads and by nvcc for the GPU
CUDA_CU    :=   # nvcc only
VCX_LIB_C  :=   # the preload library
VCX_BIN_C  :=   # the launcher program
UNIT_C     :=   # one cmocka program each
CLIENT_C   :=   # verbs programs that the tests run under vcx
PLUGIN_MPI_C := # libputscope-mpi.so, loaded only under an MPI launcher
include $(sort $(wildcard */*.mk */*/*.mk))

comma  := ,
WARN   := -Wall -Wextra -Wundef -Wshadow -Wstrict-prototypes -Wno-missing-field-initializers $(if $(WERROR),-Werror)
SANF   := $(if $(SAN),-fsanitize=address$(comma)undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
CPPFLAGS += -D_GNU_SOURCE -I$(B) -I. -Iharness
CFLAGS ?= -O2 -g
ALL_CFLAGS = -std=gnu11 $(CFLAGS) $(WARN) $(SANF) $(if $(filter x86_64,$(shell uname -m)),-mcx16 -msse4.1) $(shell pkg-config --cflags jansson inih 2>/dev/null)
# Static where the distribution has it: the binary then runs on a GPU machine without these packages.
static = $(firstword $(wildcard $(addsuffix /lib$(1).a,/usr/lib/$(shell gcc -dumpmachine) /usr/lib64 /usr/lib)) -l$(1))
gcc_static = $(or $(filter /%,$(shell $(CC) -print-file-name=lib$(1).a)),-l$(1))
LAPACK := $(call static,lapacke) $(call static,lapack) $(call static,blas) $(call gcc_static,gfortran) \
  $(if $(filter x86_64,$(shell uname -m)),$(call gcc_static,quadmath))
LIBS   := $(call static,jansson) $(call static,inih) $(LAPACK) -libverbs -lmlx5 -ldl -lpthread -lm -lrt

ifeq ($(CUDA),1)
CUDA_HOME ?= $(patsubst %/bin/nvcc,%,$(realpath $(NVCC)))
GENCODE ?= $(foreach a,80 90 100,$(if $(findstring compute_$(a),$(shell $(NVCC) --list-gpu-arch 2>/dev/null)),-gencode arch=compute_$(a)$(comma)code=sm_$(a))) \
  -gencode arch=compute_90$(comma)code=compute_90
NVFLAGS = -std=c++17 -O3 -lineinfo $(GENCODE) -Xcompiler -fno-threadsafe-statics -Xcompiler -Wall -diag-suppress 177,550
CUDA_LIBS := -L$(CUDA_HOME)/lib64 -lcudart_static
endif

o = $(patsubst %,$(B)/o/%.o,$(1))
GCC_O    := $(call o,$(PUTSCOPE_C) $(DUAL_C))
CUDA_O   := $(if $(filter 1,$(CUDA)),$(patsubst %,$(B)/o/%.cuda.o,$(DUAL_C)) $(call o,$(CUDA_CU)))
MAIN_O   := $(B)/o/harness/main.c.o
UNIT_BIN := $(patsubst %.c,$(B)/tests/%,$(notdir $(UNIT_C)))
CLIENT_BIN := $(patsubst %.c,$(B)/tests/%,$(notdir $(CLIENT_C)))
PLUGIN   := $(if $(filter 1,$(MPI)),$(B)/libputscope-mpi.so)

ifeq ($(VERBS),1)
all: $(B)/putscope $(B)/vcx $(B)/libvcx.so $(PLUGIN)
else
all:
	@echo "putscope needs the headers of rdma-core, jansson, inih and LAPACKE: run 'make deps' first" >&2; exit 2
endif

# config.h holds facts as 0|1, version.h what git says; both are rewritten only on change.
define write_if_new
	@mkdir -p $(B); printf '%s\n' '/* made by make */' $(1) > $@.new; cmp -s $@.new $@ && rm $@.new || mv $@.new $@
endef
$(B)/config.h: FORCE
	$(call write_if_new,'#define HAVE_CUDA $(CUDA)' '#define HAVE_MPI $(MPI)' '#define HAVE_NVTX $(NVTX)')
$(B)/version.h: FORCE
	$(call write_if_new,'#define PUTSCOPE_VERSION "$(or $(shell git describe --always --dirty --tags 2>/dev/null),unknown)"')
FORCE:

$(B)/o/%.c.o: %.c | $(B)/config.h $(B)/version.h
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -fPIC -MMD -MP -c -o $@ $<
$(B)/o/harness/range.c.o: CPPFLAGS += $(if $(NVTX_INC),-isystem $(NVTX_INC))
$(B)/o/%.c.cuda.o: %.c | $(B)/config.h
	@mkdir -p $(@D); echo "  nvcc $<"
	$(Q)$(NVCC) $(CPPFLAGS) $(NVFLAGS) -MMD -MP -x cu -dc -o $@ $<
$(B)/o/%.cu.o: %.cu | $(B)/config.h
	@mkdir -p $(@D); echo "  nvcc $<"
	$(Q)$(NVCC) $(CPPFLAGS) $(NVFLAGS) -MMD -MP -dc -o $@ $<
$(B)/o/dlink.o: $(CUDA_O)
	$(Q)$(NVCC) $(GENCODE) -dlink -o $@ $^

$(B)/libputscope.a: $(filter-out $(MAIN_O),$(GCC_O)) $(CUDA_O) $(if $(CUDA_O),$(B)/o/dlink.o)
	$(Q)rm -f $@; ar rcs $@ $^
$(B)/putscope: $(MAIN_O) $(filter-out $(MAIN_O),$(GCC_O)) $(CUDA_O) $(if $(CUDA_O),$(B)/o/dlink.o)
	$(Q)$(CC) $(SANF) -o $@ $^ $(CUDA_LIBS) $(LIBS)
$(B)/vcx: $(call o,$(VCX_BIN_C))
	$(Q)$(CC) $(SANF) -o $@ $^
$(B)/libvcx.so: $(call o,$(VCX_LIB_C)) harness/vcx/libvcx.map
	$(Q)$(CC) $(SANF) -shared -Wl,--version-script=harness/vcx/libvcx.map -o $@ $(filter %.o,$^) -ldl -lpthread
$(B)/libputscope-mpi.so: $(PLUGIN_MPI_C) harness/ranks.h | $(B)/config.h
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) $(shell pkg-config --cflags ompi-c) -fPIC -shared -o $@ $< $(shell pkg-config --libs ompi-c)

define unit_rule
$(B)/tests/$(basename $(notdir $(1))): $(call o,$(1)) $(B)/libputscope.a
	@mkdir -p $$(@D)
	$$(Q)$$(CC) $$(SANF) -o $$@ $$^ $$(CUDA_LIBS) $$(LIBS) -lcmocka
endef
$(foreach t,$(UNIT_C),$(eval $(call unit_rule,$(t))))
define client_rule
$(B)/tests/$(basename $(notdir $(1))): $(call o,$(1))
	@mkdir -p $$(@D)
	$$(Q)$$(CC) $$(SANF) -o $$@ $$^ -libverbs -lmlx5 -lpthread -ldl
endef
$(foreach t,$(CLIENT_C),$(eval $(call client_rule,$(t))))
# What a profiler would load, in place of one.
$(B)/tests/libnvtx_log.so: harness/tests/nvtx_log.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -isystem $(NVTX_INC) -fPIC -shared -o $@ $<
-include $(shell find $(B)/o -name '*.d' 2>/dev/null)

# ---- what users call ----
# On every core, unless -j was given.
PARALLEL = $(MAKE) --no-print-directory $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$(shell nproc))
CONFIG ?= quick
TESTS  ?= harness/tests $(wildcard harness/vcx/tests plot/tests probes/tests)
bench: ## run CONFIG (default quick) and print the table; GPU=N NIC=name OUT=dir HOSTS=a,b
	@$(PARALLEL) all
	$(Q)$(if $(HOSTS),mpirun -np 2 --host $(HOSTS) --map-by node --bind-to none $(CURDIR)/)$(B)/putscope run $(CONFIG) $(if $(GPU),--gpu $(GPU)) $(if $(NIC),--nic $(NIC)) $(if $(OUT),--out $(OUT))
test: ## build and run every test
	@$(PARALLEL) all unit clients
	$(Q)B=$(B) SAN=$(SAN) $(PYTHON) -m pytest -q -p no:cacheprovider $(TESTS) $(PYTEST_ARGS)
test-two-node: ## two QEMU guests, Soft-RoCE between them, mpirun over both; needs deps-two-node and no hardware
	@$(PARALLEL) all
	$(Q)$(PYTHON) harness/two_node/two_node.py --build $(B)
test-bad-wire: ## the same with lost packets, and with the peer killed in mid-run
	@$(PARALLEL) all
	$(Q)$(PYTHON) harness/two_node/bad_wire.py --build $(B)
# vcx starts putscope anew, so children are followed; graphs are taken apart into their kernels.
NSYS_FLAGS ?= --trace=cuda,nvtx,osrt --cuda-graph-trace=node --trace-fork-before-exec=true --wait=all --sample=none
PROFILE ?= results/profile-$(CONFIG)
profile: ## run CONFIG under Nsight Systems: kernels, CUDA calls, and the ranges of phases, cases and batches; PROFILE=results/NAME
	@command -v nsys >/dev/null || { echo "make profile: nsys (Nsight Systems) is not installed or not in PATH: nothing was profiled." \
	  "It comes with the CUDA Toolkit, or as the package nsight-systems-cli; then run make profile again" >&2; exit 2; }
	@$(PARALLEL) all
	@grep -q 'HAVE_NVTX 1' $(B)/config.h || echo "make profile: built without NVTX (no nvtx3/nvToolsExt.h): no ranges of cases" >&2
	@mkdir -p $(dir $(PROFILE))
	$(Q)nsys profile $(NSYS_FLAGS) --output=$(PROFILE) $(B)/putscope run $(CONFIG) $(if $(GPU),--gpu $(GPU)) $(if $(NIC),--nic $(NIC)) $(if $(OUT),--out $(OUT))
unit: $(UNIT_BIN)
clients: $(CLIENT_BIN) $(if $(filter 1,$(NVTX)),$(B)/tests/libnvtx_log.so)
bounds: ## build/tests/bounds: the probes' bounds by the CUDA runtime alone, a check from outside
	$(Q)test "$(CUDA)" = 1 || { echo "bounds needs nvcc: install the CUDA Toolkit (12.4 or newer)" >&2; exit 2; }
	@$(PARALLEL) $(B)/tests/bounds
$(B)/tests/bounds: probes/tests/bounds.cu
	@mkdir -p $(@D); echo "  nvcc $<"
	$(Q)$(NVCC) -std=c++17 -O3 $(GENCODE) -o $@ $<
plots: ## figures of RUN=results/DIR (SVG, PDF and PNG)
	$(Q)test -n "$(RUN)" || { echo "usage: make plots RUN=results/DIR" >&2; exit 2; }
	$(Q)$(PYTHON) plot/all.py "$(RUN)"
DEB := build-essential pkg-config git libibverbs-dev ibverbs-providers ibverbs-utils perftest libjansson-dev libinih-dev liblapacke-dev gfortran \
  libcmocka-dev libopenmpi-dev openmpi-bin python3 python3-pytest python3-matplotlib
RPM := gcc make pkgconf git rdma-core-devel libibverbs-utils perftest jansson-devel inih-devel lapack-devel gcc-gfortran libcmocka-devel openmpi-devel \
  python3 python3-pytest python3-matplotlib
DEB_TWO_NODE := qemu-system-x86 busybox-static cpio kmod iproute2
RPM_TWO_NODE := qemu-system-x86 busybox cpio kmod iproute
# $(1): Debian's names, $(2): those of dnf
define install
	@if command -v apt-get >/dev/null; then missing=$$(for p in $(1); do dpkg-query -Wf '$${Status}\n' $$p 2>/dev/null | grep -q '^install ok installed' || echo $$p; done); \
	  [ -z "$$missing" ] || { s=; [ "$$(id -u)" = 0 ] || s=sudo; $$s apt-get update -qq && \
	  DEBIAN_FRONTEND=noninteractive $$s apt-get install -y -qq --no-install-recommends $$missing >/dev/null; }; \
	else echo "install: dnf install $(2)"; fi
endef
deps: ## install the Debian/Ubuntu packages (elsewhere: print the dnf names)
	$(call install,$(DEB),$(RPM))
deps-two-node: ## the packages of test-two-node (QEMU; the guests' kernel is fetched by the test and not installed)
	$(call install,$(DEB_TWO_NODE),$(RPM_TWO_NODE))
lint: ## clang-format check, if it is installed
	@command -v clang-format >/dev/null || { echo "clang-format is not installed"; exit 0; }; \
	git ls-files '*.c' '*.h' '*.cu' | xargs clang-format --dry-run -Werror
clean: ## remove what was built
	rm -rf build build-san
help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 10
.PHONY: all bench profile test test-two-node test-bad-wire unit clients bounds plots deps deps-two-node lint clean help FORCE
