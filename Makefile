# SPDX-License-Identifier: MIT
# Builds the user-space side of npuemu: the library, the tools and the tests.
#
#   make                all: the library and the tools, into build/
#   make demo           install what is missing, build, replay a trace
#   make check          install what is missing, build, run every test
#   make check-all      the same with full products of cases (long)
#   make bench          measure against memcpy, a bare ring, UCX and liburing
#   make fuzz           libFuzzer, FUZZ_SECONDS for each target
#   make lint           style and static checks
#   make install        into $(DESTDIR)$(PREFIX)
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
	    -DNPUEMU_DATADIR='"$(SHAREDIR)/npuemu"' $(CPPFLAGS)
ldflags  := -pthread $(SANFLAGS) $(LDFLAGS)

# What a file gets on top, by where it lies.  The engine is built as the kernel
# would build it; its byte movers are worth more optimisation.
flags = $(if $(filter driver/engine/%,$1),-fno-strict-aliasing) \
	$(if $(filter driver/engine/copy.c driver/engine/reduce.c,$1),-O3) \
	$(if $(filter tests/bench/%,$1),-O3 -march=native) \
	$(if $(filter tools/%,$1),-Itools/common) \
	$(if $(filter tests/%,$1),-Itests/common)

LIB_LIBS   ?=
TOOL_LIBS  := -ljson-c -lm
TEST_LIBS  := -lcmocka -ljson-c -lm
BENCH_LIBS := -luring -ljson-c -lm

# --- sources ---------------------------------------------------------------
objs = $(patsubst %.c,$(B)/obj/%.o,$1)

LIB_SRC      := $(wildcard driver/engine/*.c lib/core/*.c lib/core/user/*.c)
LIB_MAP      := lib/libnpuemu.map
TOOL_COMMON  := $(wildcard tools/common/*.c)
TOOL_NAMES   := $(sort $(filter-out common, \
		$(patsubst tools/%/,%,$(dir $(wildcard tools/*/*.c)))))
TEST_COMMON  := $(wildcard tests/common/*.c)
TEST_SRC     := $(wildcard tests/unit/test_*.c tests/system/test_*.c)
FUZZ_SRC     := $(wildcard tests/fuzz/fuzz_*.c)
BENCH_SRC    := $(wildcard tests/bench/*.c)
MACHINES     := $(wildcard machines/*.txt)
DATA         := $(wildcard data/*)

LIB_OBJ  := $(call objs,$(LIB_SRC))
LIB_SO   := $(B)/lib/$(SONAME)
LIB_LINK := $(B)/lib/libnpuemu.so
LIB_A    := $(B)/lib/libnpuemu.a
TOOLS    := $(TOOL_NAMES:%=$(B)/bin/npuemu-%)
TESTS    := $(TEST_SRC:tests/%.c=$(B)/tests/%)
SANDBOX  := $(if $(wildcard tests/sandbox.c),$(B)/tests/sandbox)
FUZZERS  := $(FUZZ_SRC:tests/fuzz/%.c=$(B)/fuzz/%)
BENCHES  := $(BENCH_SRC:tests/bench/%.c=$(B)/bench/%)
SHARE    := $(MACHINES:%=$(B)/share/npuemu/%) \
	    $(DATA:data/%=$(B)/share/npuemu/%)

say = $(if $(V),,@printf '  %-5s %s\n' '$1' '$2')

# --- what to type ----------------------------------------------------------
.PHONY: all lib tools share tests fuzz-smoke benches
all: lib tools share
lib: $(LIB_SO) $(LIB_LINK) $(LIB_A)
tools: $(TOOLS)
share: $(SHARE)
tests: $(TESTS) $(SANDBOX)
fuzz-smoke: $(FUZZERS)
benches: $(BENCHES)

# Packages come first, whatever -j says: hence make again for the rest.
SETUP := $(if $(NO_SETUP),@:,@tools/setup)
.PHONY: demo check check-all bench fuzz lint
demo:
	$(SETUP) build
	@$(MAKE) --no-print-directory all
	$(B)/bin/npuemu-replay --requests 1000 --model tiny

check:
	$(SETUP) build check
	@$(MAKE) --no-print-directory SAN= all
	@O='$(O)' CC='$(CC)' WERROR='$(WERROR)' \
		tests/run plain asan sandbox tsan fuzz lint-fast

check-all:
	$(SETUP) build check lint
	@$(MAKE) --no-print-directory SAN= all
	@O='$(O)' CC='$(CC)' WERROR='$(WERROR)' NPUEMU_CHECK_ALL=1 \
		TEST_TIMEOUT=$${TEST_TIMEOUT:-1800} \
		tests/run plain asan sandbox tsan fuzz lint

bench:
	$(SETUP) build bench
	@$(MAKE) --no-print-directory all benches
	@if [ -e tests/bench/run ]; then \
		BUILD='$(abspath $(B))' tests/bench/run; \
	else \
		echo 'make bench: there is no tests/bench/run to run' >&2; exit 1; \
	fi

lint:
	$(SETUP) build check lint
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

# --- programs --------------------------------------------------------------
.SECONDEXPANSION:
$(TOOLS): $(B)/bin/npuemu-%: $$(call objs,$$(wildcard tools/$$*/*.c)) \
		$(call objs,$(TOOL_COMMON)) $(LIB_LINK)
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ldflags) -Wl,-rpath,'$$ORIGIN/../lib' -o $@ \
		$(filter %.o,$^) -L$(B)/lib -lnpuemu $(TOOL_LIBS)

# Tests link the archive: they may look at what the library hides.
$(TESTS): $(B)/tests/%: $(B)/obj/tests/%.o $(call objs,$(TEST_COMMON)) $(LIB_A)
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ldflags) -o $@ $(filter %.o,$^) $(LIB_A) $(LIB_LIBS) $(TEST_LIBS)

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

$(B)/obj/%.o: %.c Makefile
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(cppflags) $(cflags) $(call flags,$<) -MMD -MP -c -o $@ $<

# Found by walking build/, so that every object's headers are known.
-include $(shell [ -d $(B)/obj ] && find $(B)/obj -name '*.d')

# --- what programs read at run time ----------------------------------------
$(MACHINES:%=$(B)/share/npuemu/%): $(B)/share/npuemu/%: %
	@mkdir -p $(@D)
	$(Q)cp -f $< $@

$(DATA:data/%=$(B)/share/npuemu/%): $(B)/share/npuemu/%: data/%
	@mkdir -p $(@D)
	$(Q)cp -fR $< $@

# --- install ---------------------------------------------------------------
HEADERS := $(wildcard include/npuemu/*.h include/uapi/npuemu/*.h)
TWICE   := $(filter $(notdir $(wildcard include/npuemu/*.h)), \
	   $(notdir $(wildcard include/uapi/npuemu/*.h)))

.PHONY: install
install: all
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
	$(if $(SHARE),cp -R $(B)/share/npuemu/. '$(DESTDIR)$(SHAREDIR)/npuemu')
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
		bench-info.json \
		asan tsan libfuzzer crashes lint)
	$(Q)rmdir $(O) 2>/dev/null || true

.DELETE_ON_ERROR:
.SECONDARY:
