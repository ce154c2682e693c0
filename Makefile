# SPDX-License-Identifier: MIT
# Builds npuemu: the library, the tools, the tests and the kernel module.
#
#   make                all: the library and the tools, into build/
#   make demo           install what is missing, build, replay a trace
#   make modules        npuemu.ko, into build/modules/RELEASE/: for the headers
#                       KDIR=dir, else for KERNEL=name (see npuemu-vm --list),
#                       else for the running kernel, else for KERNEL=6.12
#   make vm-demo        the demo inside a VM, on the module
#   make check          install what is missing, build, run every test
#   make check-all      the same with full products of cases (long)
#   make bench          measure against memcpy, a bare ring, UCX, liburing and Soft-RoCE
#   make fuzz           libFuzzer, FUZZ_SECONDS for each target
#   make debug-kernel   two kernels full of checks (FLAVOUR=kasan|kcsan: one), once
#   make check-debug    the tests of the module, and fuzzers, on both (long)
#   make lint           style and static checks
#   make install        into $(DESTDIR)$(PREFIX); NO_BUILD=1: what is built already
#   make clean
#
# Knobs: SAN=asan|tsan (a variant, into build/asan or build/tsan), O=dir (build
# there instead of build/), J=n (jobs), WERROR= (warnings do not stop), V=1
# (show commands), NO_SETUP=1 (install no Debian packages).
#
# Sources are found by wildcard: a new file in a known folder is built.

VERSION  := 0.1.0
SONAME   := libnpuemu.so.0

O        ?= build
SAN      ?=
PREFIX   ?= /usr/local
BINDIR   ?= $(PREFIX)/bin
LIBDIR   ?= $(PREFIX)/lib
INCDIR   ?= $(PREFIX)/include
SHAREDIR ?= $(PREFIX)/share
UDEVDIR  ?= $(PREFIX)/lib/udev/rules.d
# What Ascend programs take for their toolkit (set_env.sh is in there).  The folders of
# a toolkit are not for everybody's /usr.
HOMEDIR  ?= $(if $(filter /usr /usr/local,$(PREFIX)),$(PREFIX)/lib/npuemu,$(PREFIX))
ARCH     ?= $(shell uname -m)
KDIR     ?=
KERNEL   ?=
FLAVOUR  ?=
J        ?= $(shell nproc 2>/dev/null || echo 1)
V        ?=
Q        := $(if $(V),,@)
FUZZ_SECONDS ?= 60

# GNU make presets CC to cc and AR to ar; only a choice of the user replaces ours.
ifeq ($(origin CC),default)
CC := gcc
endif

ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(J)
endif
MAKEFLAGS += --no-builtin-rules

# --- variants --------------------------------------------------------------
# Sanitizers make gcc see paths that are not there; the plain build has these
# three as errors.
SAN_QUIET := -Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-array-bounds
WERROR    ?= -Werror

ifeq ($(SAN),)
B := $(O)
else ifeq ($(SAN),asan)
B := $(O)/asan
SANFLAGS := -fsanitize=address,undefined -fno-sanitize-recover=all \
	    -fno-omit-frame-pointer $(SAN_QUIET)
else ifeq ($(SAN),tsan)
B := $(O)/tsan
SANFLAGS := -fsanitize=thread -fno-omit-frame-pointer $(SAN_QUIET)
else ifeq ($(SAN),libfuzzer)
# Only for `make fuzz`: the library as clang instruments it.
B := $(O)/libfuzzer
CC := clang
WERROR :=
SANFLAGS := -fsanitize=fuzzer-no-link,address,undefined \
	    -fno-sanitize-recover=all -fno-omit-frame-pointer
else
$(error SAN=$(SAN): no such variant; use SAN=asan, SAN=tsan or leave it out)
endif

# --- flags -----------------------------------------------------------------
WARN := -Wall -Wextra $(WERROR) -Wmissing-prototypes -Wstrict-prototypes \
	-Wundef -Wvla
OPT  ?= -O2 -g
# -ffp-contract=off: float results are bitwise the same on every host.
cflags   := $(OPT) -std=gnu11 $(WARN) -ffp-contract=off -pthread \
	    -fvisibility=hidden -fPIC $(SANFLAGS) $(CFLAGS)
cppflags := -D_GNU_SOURCE -Iinclude -Iinclude/uapi -Idriver/engine -Ilib/core \
	    -Ilib/acl -Ilib/transport -Ilib/hccl \
	    -DNPUEMU_DATADIR='"$(SHAREDIR)/npuemu"' $(CPPFLAGS)
ldflags  := -pthread $(SANFLAGS) $(LDFLAGS)

# What a file gets on top, by where it lies.  The engine is built as the kernel
# would build it; its byte movers are worth more optimisation.
flags = $(if $(filter driver/engine/%,$1),-fno-strict-aliasing) \
	$(if $(filter driver/engine/copy.c driver/engine/reduce.c,$1),-O3) \
	$(if $(filter tests/bench/%,$1),-O3) \
	$(if $(filter-out tests/bench/vm_%,$(filter tests/bench/%,$1)),-march=native) \
	$(if $(filter tools/%,$1),-Itools/common) \
	$(if $(filter tests/%,$1),-Itests/common)

LIB_LIBS   := -ljson-c
TOOL_LIBS  := -ljson-c -lm
LIBS_ctl   := -lkmod
TEST_LIBS  := -lcmocka -ljson-c -lm
BENCH_LIBS := -luring -ljson-c -lm

# --- sources ---------------------------------------------------------------
objs = $(patsubst %.c,$(B)/obj/%.o,$1)

LIB_SRC      := $(wildcard driver/engine/*.c lib/core/*.c lib/core/user/*.c \
		lib/core/kernel/*.c lib/acl/*.c lib/transport/*.c lib/hccl/*.c \
		lib/securec/*.c)
LIB_APIS     := $(patsubst lib/%/support.tsv,%,$(wildcard lib/*/support.tsv))
LIB_MAP      := lib/libnpuemu.map
TOOL_COMMON  := $(wildcard tools/common/*.c)
TOOL_NAMES   := $(sort $(filter-out common, \
		$(patsubst tools/%/,%,$(dir $(wildcard tools/*/*.c)))))
TEST_COMMON  := $(wildcard tests/common/*.c)
TEST_SRC     := $(wildcard tests/unit/test_*.c tests/system/test_*.c tests/vm/test_*.c)
VM_FUZZ_SRC  := $(wildcard tests/vm/fuzz_*.c)
FUZZ_SRC     := $(wildcard tests/fuzz/fuzz_*.c)
# Built by mpicc, where there is one: its rows are compared with npuemu's.
MPICC        := $(shell command -v mpicc.openmpi || command -v mpicc)
BENCH_SRC    := $(wildcard tests/bench/*.c)
EXAMPLE_SRC  := $(wildcard examples/*/*.c)
VM_SCRIPTS   := tools/vm/init tools/vm/initramfs tools/vm/kernels \
		tools/vm/build-module
VM_MUX       := $(wildcard tools/vm/mux/*.c)
HEADERS      := $(wildcard include/npuemu/*.h include/uapi/npuemu/*.h)
API_HEADERS  := $(wildcard include/*.h include/acl/*.h include/acl/*/*.h include/hccl/*.h)
MACHINES     := $(wildcard machines/*.txt)
DATA         := $(wildcard data/*)

LIB_OBJ  := $(call objs,$(LIB_SRC)) $(LIB_APIS:%=$(B)/obj/gen/%_unsupported.o)
LIB_SO   := $(B)/lib/$(SONAME)
LIB_LINK := $(B)/lib/libnpuemu.so
LIB_A    := $(B)/lib/libnpuemu.a
TOOLS    := $(TOOL_NAMES:%=$(B)/bin/npuemu-%)
TESTS    := $(TEST_SRC:tests/%.c=$(B)/tests/%)
VM_FUZZ  := $(B)/tests/vm/fuzz_ioctl
VM_PROGS := $(if $(SAN),,$(VM_FUZZ) $(B)/tests/vm/failslab)
SANDBOX  := $(if $(wildcard tests/sandbox.c),$(B)/tests/sandbox)
FUZZERS  := $(FUZZ_SRC:tests/fuzz/%.c=$(B)/fuzz/%)
BENCHES  := $(BENCH_SRC:tests/bench/%.c=$(B)/bench/%)
MPIBENCH := $(if $(MPICC),$(B)/bench/hccl_mpi)
EXAMPLES := $(EXAMPLE_SRC:examples/%.c=$(B)/examples/%)
VM_TOOL  := $(B)/bin/npuemu-vm
VM_SHARE := $(VM_SCRIPTS:tools/vm/%=$(B)/share/npuemu/vm/%) \
	    $(VM_MUX:tools/vm/mux/%.c=$(B)/share/npuemu/vm/npuemu-vm-%)
SHARE    := $(MACHINES:%=$(B)/share/npuemu/%) \
	    $(DATA:data/%=$(B)/share/npuemu/%)

say = $(if $(V),,@printf '  %-5s %s\n' '$1' '$2')

# --- what to type ----------------------------------------------------------
.PHONY: all lib tools share prefix examples vm tests fuzz-smoke benches
# A VM is a thing of the plain build: sanitizers and static programs do not mix.
all: lib tools share prefix examples $(if $(SAN),,vm)
lib: $(LIB_SO) $(LIB_LINK) $(LIB_A)
tools: $(TOOLS)
share: $(SHARE)
prefix: $(B)/set_env.sh
examples: $(EXAMPLES)
vm: $(VM_TOOL) $(VM_SHARE) $(B)/modules/source
tests: $(TESTS) $(SANDBOX) $(VM_PROGS)
fuzz-smoke: $(FUZZERS)
benches: $(BENCHES) $(MPIBENCH)

# Packages come first, whatever -j says: hence make again for the rest.
SETUP := $(if $(NO_SETUP),@:,@tools/setup)
.PHONY: demo modules vm-demo check check-all debug-kernel check-debug bench fuzz lint
demo:
	$(SETUP) build
	@$(MAKE) --no-print-directory all
	$(B)/bin/npuemu-replay --requests 1000 --model tiny

modules:
	$(SETUP) build vm
	@kdir='$(KDIR)'; running="/lib/modules/$$(uname -r)/build"; \
	if [ -z "$$kdir$(KERNEL)" ] && [ -e "$$running" ]; then kdir=$$running; fi; \
	if [ -z "$$kdir" ]; then \
		found=$$(tools/vm/kernels show '$(or $(KERNEL),6.12)') || exit 1; \
		eval "$$found"; \
	fi; \
	tools/vm/build-module . "$$kdir" '$(O)/modules'

vm-demo:
	$(SETUP) build vm
	@$(MAKE) --no-print-directory SAN= all
	NPUEMU_HOST=kernel $(O)/bin/npuemu-vm --kernel '$(or $(KERNEL),6.12)' \
		--param devices=8 -- $(O)/bin/npuemu-replay --requests 100 --model tiny

check:
	$(SETUP) build check vm
	@$(MAKE) --no-print-directory SAN= all
	@O='$(O)' CC='$(CC)' WERROR='$(WERROR)' \
		tests/run plain asan sandbox tsan fuzz lint-fast vm

check-all:
	$(SETUP) build check lint vm
	@$(MAKE) --no-print-directory SAN= all
	@O='$(O)' CC='$(CC)' WERROR='$(WERROR)' NPUEMU_CHECK_ALL=1 \
		TEST_TIMEOUT=$${TEST_TIMEOUT:-1800} \
		tests/run plain asan sandbox tsan fuzz lint vm

debug-kernel:
	$(SETUP) build debug
	tools/debug-kernel $(FLAVOUR)

check-debug:
	$(SETUP) build check vm debug
	@$(MAKE) --no-print-directory SAN= all
	@O='$(O)' CC='$(CC)' WERROR='$(WERROR)' tests/run debug

bench:
	$(SETUP) build bench vm
	@$(MAKE) --no-print-directory all benches
	@if [ -e tests/bench/run ]; then \
		BUILD='$(abspath $(B))' tests/bench/run; \
	else \
		echo 'make bench: there is no tests/bench/run to run' >&2; exit 1; \
	fi

lint:
	$(SETUP) build check lint vm
	@$(MAKE) --no-print-directory SAN= lib
	@O='$(O)' tools/lint

ifneq ($(SAN),libfuzzer)
fuzz:
	$(SETUP) build fuzz
	@$(MAKE) --no-print-directory SAN=libfuzzer fuzz
else
fuzz: $(FUZZERS)
	@[ -n '$(FUZZERS)' ] || { echo 'make fuzz: no tests/fuzz/fuzz_*.c' >&2; exit 1; }
	@for f in $(FUZZERS); do \
		n=$${f##*/}; new=$(B)/corpus/$$n; old=tests/fuzz/corpus/$$n; \
		mkdir -p "$$new"; [ -d "$$old" ] || old=; \
		echo "== $$n, $(FUZZ_SECONDS) s"; \
		$$f -max_total_time=$(FUZZ_SECONDS) -max_len=4096 -timeout=20 \
			-print_final_stats=1 -artifact_prefix=$(B)/$$n- \
			"$$new" $$old || exit 1; \
	done
endif

# --- the library -----------------------------------------------------------
# The list of objects is a file, so that a source that was removed relinks too.
.PHONY: FORCE
$(B)/obj/lib.list: FORCE
	@mkdir -p $(@D)
	@echo '$(LIB_OBJ)' | cmp -s - $@ || echo '$(LIB_OBJ)' >$@

$(B)/obj/lib/core/builtin.o: $(MACHINES)

$(LIB_SO): $(LIB_OBJ) $(LIB_MAP) $(B)/obj/lib.list Makefile
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -shared $(ldflags) -Wl,-soname,$(SONAME) \
		-Wl,--version-script=$(LIB_MAP) -Wl,-z,defs \
		-o $@ $(LIB_OBJ) $(LIB_LIBS)

$(LIB_LINK): $(LIB_SO)
	$(Q)ln -sfn $(SONAME) $@

$(LIB_A): $(LIB_OBJ) $(B)/obj/lib.list
	$(call say,AR,$@)
	@mkdir -p $(@D)
	$(Q)rm -f $@ && $(AR) rcs $@ $(LIB_OBJ)

# The functions of an API that are not there, from the lists of those that are.
$(B)/gen/%_unsupported.c: lib/gen-unsupported lib/%/support.tsv tests/abi/%_functions.tsv
	$(call say,GEN,$@)
	@mkdir -p $(@D)
	$(Q)lib/gen-unsupported lib/$*/support.tsv >$@

$(B)/obj/gen/%.o: $(B)/gen/%.c Makefile
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(cppflags) $(cflags) -MMD -MP -c -o $@ $<

# --- the prefix, in the build tree -------------------------------------------
# As make install makes it, out of links: "source build/set_env.sh" makes programs use
# what is built here.
$(B)/set_env.sh: tools/prefix/lay-out tools/prefix/set_env.sh tools/prefix/setenv.bash \
		cmake/ascendc.cmake $(HEADERS) $(API_HEADERS) $(LIB_LINK) Makefile
	$(call say,GEN,$@)
	$(Q)rm -rf $(B)/prefix
	$(Q)tools/prefix/lay-out $(B)/prefix '$(abspath $(B)/prefix)' $(LIB_SO) $(ARCH)
	@mkdir -p $(B)/prefix/include/npuemu
	$(Q)ln -sfn $(addprefix '$(CURDIR)'/,$(wildcard include/*.h) include/acl include/hccl) \
		$(B)/prefix/include
	$(Q)ln -sf $(addprefix '$(CURDIR)'/,$(HEADERS)) $(B)/prefix/include/npuemu
	$(Q)ln -sf $(addprefix '$(abspath $(B))'/bin/,$(notdir $(TOOLS))) $(B)/prefix/bin
	$(Q)printf '%s\n' '# SPDX-License-Identifier: MIT' \
		". '$(abspath $(B)/prefix)/set_env.sh'" >$@

# --- programs --------------------------------------------------------------
.SECONDEXPANSION:
$(TOOLS): $(B)/bin/npuemu-%: $$(call objs,$$(wildcard tools/$$*/*.c)) \
		$(call objs,$(TOOL_COMMON)) $(LIB_LINK)
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ldflags) -Wl,-rpath,'$$ORIGIN/../lib' -o $@ \
		$(filter %.o,$^) -L$(B)/lib -lnpuemu $(TOOL_LIBS) $(LIBS_$*)

# Tests link the archive: they may look at what the library hides.
$(TESTS): $(B)/tests/%: $(B)/obj/tests/%.o $(call objs,$(TEST_COMMON)) $(LIB_A)
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ldflags) -o $@ $(filter %.o,$^) $(LIB_A) $(LIB_LIBS) $(TEST_LIBS)

# By way of the prefix, as README.md has everybody do it.
$(EXAMPLES): $(B)/examples/%: examples/%.c $(API_HEADERS) $(B)/set_env.sh
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(OPT) -std=c11 -Wall -Wextra $(WERROR) $(SANFLAGS) -I$(B)/prefix/include \
		-o $@ $< -L$(B)/prefix/lib64 -lhccl -lascendcl -Wl,-rpath,'$$ORIGIN/../../lib'

# The programs of the guest that are no tests of the library: alone, and static.
$(VM_FUZZ): $(call objs,$(VM_FUZZ_SRC))
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ldflags) -static -o $@ $(filter %.o,$^)

$(B)/tests/vm/failslab: $(call objs,$(wildcard tests/vm/failslab*.c))
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ldflags) -static -o $@ $(filter %.o,$^)

# The sandbox must run as root, and before and after a fork: never sanitized.
$(SANDBOX): tests/sandbox.c Makefile
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(OPT) -std=gnu11 $(WARN) -D_GNU_SOURCE -o $@ $<

ifeq ($(SAN),libfuzzer)
FUZZ_MAIN :=
FUZZ_LD   := -fsanitize=fuzzer
else
FUZZ_MAIN := $(call objs,tests/fuzz/driver.c)
FUZZ_LD   :=
endif
$(FUZZERS): $(B)/fuzz/%: $(B)/obj/tests/fuzz/%.o $(FUZZ_MAIN) $(LIB_A)
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ldflags) $(FUZZ_LD) -o $@ $(filter %.o,$^) $(LIB_A) $(LIB_LIBS) -lm

$(BENCHES): $(B)/bench/%: $(B)/obj/tests/bench/%.o $(LIB_A)
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ldflags) -o $@ $(filter %.o,$^) $(LIB_A) $(LIB_LIBS) $(BENCH_LIBS)

$(MPIBENCH): tests/bench/mpi/hccl_mpi.c tests/bench/hccl_cases.h Makefile
	$(call say,MPICC,$@)
	@mkdir -p $(@D)
	$(Q)$(MPICC) $(OPT) -O3 -march=native -std=gnu11 $(WARN) -o $@ $<

$(B)/obj/%.o: %.c Makefile
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(cppflags) $(cflags) $(call flags,$<) -MMD -MP -c -o $@ $<

# Found by walking build/, so that every object's headers are known.
-include $(shell [ -d $(B)/obj ] && find $(B)/obj -name '*.d')

# --- virtual machines ------------------------------------------------------
$(VM_TOOL): tools/vm/npuemu-vm
	@mkdir -p $(@D)
	$(Q)install -m 755 $< $@

$(VM_SCRIPTS:tools/vm/%=$(B)/share/npuemu/vm/%): $(B)/share/npuemu/vm/%: tools/vm/%
	@mkdir -p $(@D)
	$(Q)install -m 755 $< $@

# Static, and without anybody's sanitizers: the guest has no libraries.
$(B)/share/npuemu/vm/npuemu-vm-%: tools/vm/mux/%.c tools/vm/mux/mux.h Makefile
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -O2 -std=gnu11 $(WARN) -D_GNU_SOURCE -static -s -o $@ $<

# Tells npuemu-vm that it has not been installed, and where the sources are.
$(B)/modules/source:
	@mkdir -p $(@D)
	$(Q)ln -sfn '$(CURDIR)' $@

# --- what programs read at run time ----------------------------------------
$(MACHINES:%=$(B)/share/npuemu/%): $(B)/share/npuemu/%: %
	@mkdir -p $(@D)
	$(Q)cp -f $< $@

$(DATA:data/%=$(B)/share/npuemu/%): $(B)/share/npuemu/%: data/%
	@mkdir -p $(@D)
	$(Q)cp -fR $< $@

# --- install ---------------------------------------------------------------
TWICE   := $(filter $(notdir $(wildcard include/npuemu/*.h)), \
	   $(notdir $(wildcard include/uapi/npuemu/*.h)))

.PHONY: install
install: $(if $(NO_BUILD),,all)
	@[ -z '$(SAN)' ] || { echo 'make install: leave SAN out' >&2; exit 1; }
	@[ -z '$(TWICE)' ] || { echo 'make install: $(TWICE): the same name in' \
		'include/npuemu and include/uapi/npuemu' >&2; exit 1; }
	install -d '$(DESTDIR)$(BINDIR)' '$(DESTDIR)$(LIBDIR)/pkgconfig' \
		'$(DESTDIR)$(INCDIR)/npuemu' '$(DESTDIR)$(SHAREDIR)/npuemu'
	$(if $(TOOLS),install -m 755 $(TOOLS) '$(DESTDIR)$(BINDIR)')
	install -m 755 $(LIB_SO) '$(DESTDIR)$(LIBDIR)'
	ln -sfn $(SONAME) '$(DESTDIR)$(LIBDIR)/libnpuemu.so'
	install -m 644 $(LIB_A) '$(DESTDIR)$(LIBDIR)'
	$(if $(HEADERS),install -m 644 $(HEADERS) '$(DESTDIR)$(INCDIR)/npuemu')
	@for f in $(API_HEADERS:include/%=%); do \
		install -D -m 644 "include/$$f" "$(DESTDIR)$(INCDIR)/$$f" || exit 1; \
	done
	tools/prefix/lay-out '$(DESTDIR)$(HOMEDIR)' '$(HOMEDIR)' \
		'$(DESTDIR)$(LIBDIR)/$(SONAME)' $(ARCH)
	@[ -e '$(DESTDIR)$(HOMEDIR)/include' ] || \
		ln -srfn '$(DESTDIR)$(INCDIR)' '$(DESTDIR)$(HOMEDIR)/include'
	$(if $(SHARE),cp -R $(B)/share/npuemu/. '$(DESTDIR)$(SHAREDIR)/npuemu')
	install -m 755 $(VM_TOOL) '$(DESTDIR)$(BINDIR)'
	install -D -m 644 tools/udev/70-npuemu.rules '$(DESTDIR)$(UDEVDIR)/70-npuemu.rules'
	rm -rf '$(DESTDIR)$(SHAREDIR)/npuemu/module'
	@for f in Kbuild $(MACHINES) $$(find driver include/uapi -name '*.[chS]'); do \
		install -D -m 644 "$$f" \
			"$(DESTDIR)$(SHAREDIR)/npuemu/module/$$f" || exit 1; \
	done
	@for s in 1 3 7; do \
		for m in Documentation/man/*.$$s; do \
			[ -e "$$m" ] || continue; \
			install -D -m 644 "$$m" \
				"$(DESTDIR)$(SHAREDIR)/man/man$$s/$${m##*/}" || exit 1; \
		done; \
	done
	@printf '%s\n' 'prefix=$(PREFIX)' 'libdir=$(LIBDIR)' 'includedir=$(INCDIR)' '' \
		'Name: npuemu' 'Description: An emulated NPU' 'Version: $(VERSION)' \
		'Libs: -L$${libdir} -lnpuemu' 'Libs.private: -pthread $(LIB_LIBS)' \
		'Cflags: -I$${includedir}' \
		>'$(DESTDIR)$(LIBDIR)/pkgconfig/npuemu.pc'

# Only what this file makes: O may be a folder with other things in it.
.PHONY: clean
clean:
	$(Q)rm -rf $(addprefix $(O)/,bin lib obj share tests fuzz bench bench.json \
		bench-info.json examples gen prefix set_env.sh \
		asan tsan libfuzzer crashes lint modules)
	$(Q)rmdir $(O) 2>/dev/null || true

.DELETE_ON_ERROR:
.SECONDARY:
