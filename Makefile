# SPDX-License-Identifier: MIT
#
# rlock: run a command while holding a lock in Redis. GNU make; `make help` lists the targets.
#
#   PREFIX=/usr/local DESTDIR=   `make install` copies files to $DESTDIR$PREFIX
#   CC CFLAGS LDFLAGS            the compiler and your flags; the flags that rlock needs are added
#   V=1                          print each command before it runs
#   WERROR=1                     the compiler treats warnings as errors
#   HARDENING=no                 leave out the compiler flags against exploits of memory errors
#   TLS=no                       build without TLS (rediss://); needs no headers of OpenSSL
#   HIREDIS_SRC=DIR              build hiredis from its sources in DIR (musl has no package of it)
#   FLAVOUR=plain|asan|tsan|...  build in build/FLAVOUR; asan and tsan add sanitizers, any other
#                                name builds with the same flags as plain
#   JOBS=N                       run N bats files at the same time; default: 3 for each processor

PREFIX  ?= /usr/local
CFLAGS  ?= -O2 -g
FLAVOUR ?= plain
Q       := $(if $(V),,@)
B       := build/$(FLAVOUR)

MAKEFLAGS += --no-print-directory
.DELETE_ON_ERROR:
.SUFFIXES:

# ---- compiler and linker flags -------------------------------------------------------------------

WARNINGS := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wswitch-enum -Wvla -pedantic \
            -Wno-overlength-strings \
            $(if $(WERROR),-Werror)

SANITIZE_asan := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
SANITIZE_tsan := -fsanitize=thread
SANITIZE      := $(SANITIZE_$(FLAVOUR))

# The flavour of the static program. It is linked with -static and not with -static-pie: a program
# linked with -static-pie relocates itself at each start, which takes time.
STATIC         := static$(if $(findstring musl,$(CC)),-musl)
STATIC_LDFLAGS := $(if $(filter static%,$(FLAVOUR)),-static -s)

# The hardening flags that Debian builds packages with. A script asks the compiler which of these
# flags it knows: one shell for all flags, so that make starts fast. Flags that CFLAGS has already
# (dpkg-buildflags sets them) are not added twice. A build with a sanitizer has none of them:
# _FORTIFY_SOURCE replaces calls that the sanitizer checks itself.
WANTED_HARDENING := -fstack-protector-strong -fstack-clash-protection -fcf-protection \
                    -mbranch-protection=standard -fPIE -Wformat -Werror=format-security
WANTED_FORTIFY   := $(if $(findstring _FORTIFY_SOURCE,$(CPPFLAGS) $(CFLAGS)),,3 2)
ifneq ($(SANITIZE)$(filter no,$(HARDENING)),)
HARDENING_FLAGS :=
else
HARDENING_FLAGS := $(shell try() { printf '\043include <stdio.h>\n' | \
    $(CC) -Werror $(CPPFLAGS) $(CFLAGS) "$$@" -x c -c -o /dev/null - 2>/dev/null; }; \
    for flag in $(filter-out $(CFLAGS),$(WANTED_HARDENING)); do \
        try -Wformat "$$flag" && echo "$$flag"; done; \
    for n in $(WANTED_FORTIFY); do \
        try -D_FORTIFY_SOURCE=$$n && echo -D_FORTIFY_SOURCE=$$n && break; done)
endif
HARDENING_LDFLAGS := $(if $(STATIC_LDFLAGS)$(filter -static -no-pie,$(CFLAGS) $(LDFLAGS)),,\
                          $(patsubst -fPIE,-pie,$(filter -fPIE,$(HARDENING_FLAGS))))

# rlock links libhiredis.a if there is one: a start takes 80 us less than with the shared library.
# pkg-config, if installed, knows where hiredis is; otherwise cc searches its own directories.
PKG_CONFIG     ?= pkg-config
HIREDIS_CFLAGS := $(shell $(PKG_CONFIG) --cflags hiredis 2>/dev/null)
HIREDIS_DIR    := $(shell $(PKG_CONFIG) --variable=libdir hiredis 2>/dev/null)
HIREDIS_A      := $(firstword $(wildcard $(HIREDIS_DIR:%=%/libhiredis.a) \
                                         $(shell $(CC) -print-file-name=libhiredis.a 2>/dev/null)))
HIREDIS_LIBS   := $(or $(HIREDIS_A),$(shell $(PKG_CONFIG) --libs hiredis 2>/dev/null),-lhiredis)

ifneq ($(HIREDIS_SRC),)
HIREDIS_CFLAGS := -isystem $(B)/include
HIREDIS_OBJ    := $(patsubst %,$(B)/hiredis/%.o,alloc hiredis net read sds)
HIREDIS_LIBS   :=
endif

# TLS is yes, linked, no or not-found. A build with TLS needs only the headers of OpenSSL 3: rlock
# loads the library with dlopen when a URL asks for TLS. A static program can't load libraries, so
# OpenSSL is linked into it.
ifneq ($(origin TLS),undefined)
else ifneq ($(STATIC_LDFLAGS),)
TLS := linked
else
OPENSSL_3 := \043include <openssl/ssl.h>\n\043if OPENSSL_VERSION_MAJOR < 3\n\043error\n\043endif\n
TLS := $(shell printf '$(OPENSSL_3)' | $(CC) $(CPPFLAGS) -E - >/dev/null 2>&1 && echo yes || \
               echo not-found)
endif

# musl-gcc doesn't search /usr/include for the kernel's headers. Search it after musl's own headers.
MUSL_CPPFLAGS := $(if $(findstring musl-gcc,$(CC)),\
                   $(patsubst %,-idirafter /usr/include%,/ /$(shell gcc -print-multiarch)))

ALL_CPPFLAGS := -D_GNU_SOURCE $(if $(STATIC_LDFLAGS),-DRLOCK_STATIC) $(HIREDIS_CFLAGS) \
                $(MUSL_CPPFLAGS) $(CPPFLAGS)
ALL_CFLAGS   := -std=c11 $(WARNINGS) -pthread -ffunction-sections -fdata-sections \
                $(HARDENING_FLAGS) $(CFLAGS)
ALL_LDFLAGS  := -pthread -Wl,-O1 -Wl,--gc-sections -Wl,--as-needed -Wl,--hash-style=gnu \
                -Wl,-z,relro,-z,now $(HARDENING_LDFLAGS) $(STATIC_LDFLAGS) $(LDFLAGS)

compile = $(Q)$(if $(V),,echo "  CC    $@" &&) mkdir -p $(@D) && \
          $(CC) $(ALL_CPPFLAGS) $(1) $(ALL_CFLAGS) $(SANITIZE) -MMD -MP -c -o $@ $<
link    = $(Q)$(if $(V),,echo "  LINK  $@" &&) mkdir -p $(@D) && \
          $(CC) $(ALL_CFLAGS) $(SANITIZE) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) \
          $(HIREDIS_LIBS) $(if $(filter linked,$(TLS)),-lssl -lcrypto) -ldl

comma := ,

# ---- source and object files ---------------------------------------------------------------------

# The files that a build leaves out, by the value of TLS.
WITHOUT_yes    := lib/wire/tls_absent.c lib/wire/libssl_linked.c
WITHOUT_linked := lib/wire/tls_absent.c lib/wire/libssl.c
WITHOUT_no     := lib/wire/tls.c lib/wire/libssl.c lib/wire/libssl_linked.c

LIB_SRC  := $(filter-out $(or $(WITHOUT_$(TLS)),$(WITHOUT_no)),$(wildcard lib/*.c lib/*/*.c))
LIB_OBJ  := $(patsubst %.c,$(B)/%.o,$(LIB_SRC))
CMD_OBJ  := $(patsubst %.c,$(B)/%.o,$(wildcard cmd/*.c cmd/*/*.c))
UNIT     := $(patsubst tests/unit/%.c,$(B)/unit/%,$(wildcard tests/unit/test_*.c))
REPLAYS  := $(patsubst tests/fuzz/%.c,$(B)/unit/%,$(wildcard tests/fuzz/fuzz_*.c))
UNIT_CMD := $(filter $(B)/unit/test_cmd_%,$(UNIT))
SHIMS    := $(patsubst tests/tools/%.c,$(B)/tools/%.so,$(wildcard tests/tools/*shim.c))
SIM      := $(B)/sim/sim $(B)/sim/replay
TOOLS    := $(SHIMS) $(patsubst tests/tools/%.c,$(B)/tools/%,\
                       $(filter-out %shim.c,$(wildcard tests/tools/*.c)))
C_FILES   = $(wildcard lib/*.[ch] lib/*/*.[ch] cmd/*.[ch] cmd/*/*.[ch] tests/*/*.[ch])

# The files that `make install` copies, as MODE:FILE:PLACE, with PLACE relative to PREFIX.
MAN := $(notdir $(wildcard man/rlock.[13]))
INSTALLED := 755:rlock:bin/rlock $(foreach m,$(MAN),644:man/$m:share/man/man$(m:rlock.%=%)/$m) \
             644:completions/rlock.bash:share/bash-completion/completions/rlock \
             644:completions/_rlock:share/zsh/site-functions/_rlock \
             644:completions/rlock.fish:share/fish/vendor_completions.d/rlock.fish

# ---- build ---------------------------------------------------------------------------------------

.PHONY: all
all: $(if $(filter plain,$(FLAVOUR)),rlock,$(B)/rlock)  ## build ./rlock (the default)

rlock: $(B)/rlock
	$(Q)cp -f $< $@

.PHONY: static
static:  ## build ./rlock-static, which needs no library, with TLS in it
	$(Q)$(MAKE) FLAVOUR=$(STATIC)
	$(Q)cp -f build/$(STATIC)/rlock rlock-static

$(B)/rlock: $(CMD_OBJ) $(B)/librlock.a
	$(link)

$(B)/librlock.a: $(LIB_OBJ) $(HIREDIS_OBJ) $(B)/tls.$(TLS)
	$(Q)rm -f $@ && $(AR) rcs $@ $(LIB_OBJ) $(HIREDIS_OBJ)

# An empty file whose name has the value of TLS. When TLS changes, make finds no file of the new
# name, makes one, and so rebuilds librlock.a, which depends on this file.
$(B)/tls.$(TLS):
	$(Q)mkdir -p $(@D) && rm -f $(B)/tls.* && touch $@
ifeq ($(TLS),not-found)
	$(Q)echo "rlock: built WITHOUT TLS, as the headers of OpenSSL 3 are not installed:" \
	     "it will refuse rediss:// URLs; install them by: make deps; or build with TLS=no" >&2
endif

$(B)/lib/%.o: lib/%.c | build/gen/scripts_embedded.h build/gen/reply_codes.h $(B)/hiredis.found
	$(call compile,-Ilib -Ibuild/gen)

$(B)/cmd/%.o: cmd/%.c | $(B)/hiredis.found
	$(call compile,-Icmd -Ilib)

LUA   := $(wildcard lib/lua/*.lua)
EMBED := lib/lua/embed.awk lib/lua/reply_codes.tsv

build/gen/scripts_embedded.h: $(EMBED) $(LUA) $(wildcard lib/lua/shared/*.lua)
	$(Q)mkdir -p $(@D) && awk -v form=c -f $(EMBED) $(LUA) >$@.new && mv $@.new $@

build/gen/reply_codes.h: $(EMBED)
	$(Q)mkdir -p $(@D) && awk -v form=enum -f $(EMBED) >$@.new && mv $@.new $@

# All object files depend on this check, so that a missing hiredis is reported in one sentence
# instead of as an error of each file that includes it.
$(B)/hiredis.found: $(if $(HIREDIS_SRC),$(B)/include/hiredis)
	$(Q)mkdir -p $(@D) && echo '#include <hiredis/hiredis.h>' | \
	$(CC) $(ALL_CPPFLAGS) -E -o $@ - 2>/dev/null || \
	{ echo "rlock: hiredis and its headers are needed to build; install them with: make deps" >&2; \
	  rm -f $@; exit 1; }

# rlock includes <hiredis/hiredis.h>, so a link with the name hiredis leads to HIREDIS_SRC.
$(B)/include/hiredis:
	$(Q)mkdir -p $(@D) && ln -sfn $(abspath $(HIREDIS_SRC)) $@

$(B)/hiredis/%.o: $(HIREDIS_SRC)/%.c
	$(Q)mkdir -p $(@D) && $(CC) -D_GNU_SOURCE -ffunction-sections -fdata-sections \
	$(HARDENING_FLAGS) $(CFLAGS) -c -o $@ $<

# test_memory replaces these functions by its own, which make the n-th allocation fail.
$(B)/unit/test_memory: private ALL_LDFLAGS += $(patsubst %,-Wl$(comma)--wrap=%,\
                                                malloc calloc realloc strdup free)

# test_socket replaces getaddrinfo by one that doesn't return until the test allows it.
$(B)/unit/test_socket: private ALL_LDFLAGS += -Wl,--wrap=getaddrinfo

# test_lease_end replaces send by one that stops the sending thread just after a request was sent.
$(B)/unit/test_lease_end: private ALL_LDFLAGS += -Wl,--wrap=send

# test_conn replaces free by one that looks for secrets in each block of memory before it is freed.
$(B)/unit/test_conn: private ALL_LDFLAGS += -Wl,--wrap=free

$(B)/unit/%.o: tests/unit/%.c | build/gen/reply_codes.h $(B)/hiredis.found
	$(call compile,-Itests/unit -Icmd -Ilib -Ibuild/gen)

$(UNIT): %: %.o $(B)/librlock.a
	$(link)

$(UNIT_CMD): $(filter-out %/main.o,$(CMD_OBJ))

# unit/fuzz_NAME feeds the files of tests/fuzz/corpus/NAME to a fuzz target, and needs no clang.
# `make fuzz` links the same target with libFuzzer.
$(REPLAYS): $(B)/unit/%: $(B)/fuzz/%.o $(B)/fuzz/replay.o $(B)/librlock.a
	$(link)

$(REPLAYS): $(filter-out %/main.o,$(CMD_OBJ))

$(B)/fuzz/%.o: tests/fuzz/%.c | build/gen/reply_codes.h $(B)/hiredis.found
	$(call compile,-Itests/fuzz -Itests/unit -Icmd -Ilib -Ibuild/gen)

# The simulation replaces the functions of the C library that have to do with time, chance, threads
# or the network by those of tests/sim/kernel.c.
SIMULATED := clock_gettime getrandom poll epoll_create1 socket connect setsockopt getsockopt send \
             recv close pipe2 read write pthread_create pthread_join pthread_detach getaddrinfo \
             freeaddrinfo
SIM_OBJ   := $(patsubst tests/sim/%.c,$(B)/sim/%.o,$(wildcard tests/sim/*.c))
LUA_FLAGS  = $(shell $(PKG_CONFIG) --cflags lua5.1 2>/dev/null || echo -I/usr/include/lua5.1)
LUA_LIBS   = $(shell $(PKG_CONFIG) --libs lua5.1 2>/dev/null || echo -llua5.1)

$(B)/sim/%.o: tests/sim/%.c | build/gen/scripts_embedded.h $(B)/hiredis.found
	$(call compile,$(LUA_FLAGS) -Itests/sim -Ilib -Ibuild/gen)

$(B)/sim/sim: private HIREDIS_LIBS += $(LUA_LIBS) -lm
$(B)/sim/sim: private ALL_LDFLAGS += $(patsubst %,-Wl$(comma)--wrap=%,$(SIMULATED))
$(B)/sim/sim: $(filter-out %/replay.o,$(SIM_OBJ)) $(B)/librlock.a
	$(link)

REPLAY_OBJ := replay buffer chance commands script sha1 store
$(B)/sim/replay: private HIREDIS_LIBS += $(LUA_LIBS) -lm
$(B)/sim/replay: $(patsubst %,$(B)/sim/%.o,$(REPLAY_OBJ))
	$(link)

# The test tools are compiled without sanitizers: only rlock is under test.
tool = $(Q)$(if $(V),,echo "  TOOL  $@" &&) mkdir -p $(@D) && \
       $(CC) -D_GNU_SOURCE $(ALL_CFLAGS) $(1) -MMD -MP -MF $@.d -o $@ $< $(LDFLAGS)

$(B)/tools/%: tests/tools/%.c
	$(call tool)

$(B)/tools/%.so: tests/tools/%.c
	$(call tool,-shared -fPIC)

-include $(wildcard $(B)/*/*.d $(B)/*/*/*.d)

# ---- demo, deps, test ----------------------------------------------------------------------------

.PHONY: demo deps test
demo:  ## install what is missing, build, show the main job
	$(Q)tests/tools/deps.sh demo
	$(Q)$(MAKE) all
	$(Q)tests/tools/demo.sh

deps:  ## install what building needs, nothing else
	$(Q)tests/tools/deps.sh build

test:  ## install what is missing, build, run all checks
	$(Q)tests/tools/deps.sh test
	$(Q)$(MAKE) check

# ---- checks --------------------------------------------------------------------------------------

# Sanitizers write their reports to files: tests compare what rlock prints on standard error.
SANITIZER_LOG := log_path=$(abspath $(B))/report
export ASAN_OPTIONS  := detect_leaks=1:$(SANITIZER_LOG)
export LSAN_OPTIONS  := suppressions=$(abspath tests/tools/leaks.supp):print_suppressions=0
export UBSAN_OPTIONS := print_stacktrace=1:halt_on_error=1:$(SANITIZER_LOG)
export TSAN_OPTIONS  := halt_on_error=1:die_after_fork=0:$(SANITIZER_LOG)

# Whoever tests the plain program with TLS also needs the static program, for tests/cli/static.bats.
STATIC_RLOCK := $(if $(filter plain-yes,$(FLAVOUR)-$(TLS)),build/static/rlock)
ifneq ($(STATIC_RLOCK),)
# The static program is built by a second make. The first make generates the headers before that:
# otherwise both would write the same files in build/gen at the same time.
.PHONY: $(STATIC_RLOCK)
$(STATIC_RLOCK): | build/gen/scripts_embedded.h build/gen/reply_codes.h
	$(Q)$(MAKE) FLAVOUR=static
endif

tested := RLOCK=$(abspath $(B))/rlock RLOCK_TEST_TOOLS=$(abspath $(B))/tools \
          RLOCK_TEST_FLAVOUR=$(FLAVOUR) BATS_TEST_TIMEOUT=180
bats    = $(Q)env --default-signal $(tested) BATSFLAGS="$(BATSFLAGS) $(2)" \
          tests/tools/run_bats.sh $(1)

.PHONY: tests-built
tests-built: all $(UNIT) $(REPLAYS) $(TOOLS) $(STATIC_RLOCK)  ## build all that the tests need

.PHONY: check check-quick check-smoke check-unit check-bats check-cli check-fault check-interop
.PHONY: check-model
.PHONY: check-threads
.PHONY: check-docs lint sizes asan tsan bench
check: $(B)/rlock $(UNIT) $(TOOLS)  ## run lint, model, unit and bats tests, also after a failure
	$(Q)$(MAKE) -k -j1 $(if $(SANITIZE),,lint check-model) check-unit check-bats

check-quick: $(B)/rlock $(UNIT) $(REPLAYS) $(TOOLS)  ## run lint, unit and smoke tests: 30 s
	$(Q)RLOCK_TEST_JOBS=4 $(MAKE) -k -j3 -Otarget lint check-unit check-smoke

check-smoke: $(B)/rlock $(TOOLS)  ## run the few bats tests tagged smoke: a few seconds
	$(call bats,$(SMOKE),--filter-tags smoke)

check-unit: $(UNIT) $(REPLAYS)  ## run the C unit tests, and fuzz targets over their corpus
	$(Q)$(tested) tests/unit/run.sh $^

# All folders in one run: if each had its own, processors would be idle while the last files of a
# folder run.
check-bats: $(B)/rlock $(TOOLS) $(STATIC_RLOCK)  ## run all bats files
	$(call bats,tests/cli tests/fault $(if $(SANITIZE),,tests/interop))

check-cli: $(B)/rlock $(TOOLS) $(STATIC_RLOCK)  ## run the program with real servers
	$(call bats,tests/cli)

check-fault: $(B)/rlock $(TOOLS)  ## run it with bad servers, cut connections, stopped processes
	$(call bats,tests/fault)

check-interop: $(B)/rlock $(TOOLS)  ## run it beside other Redis clients on the same keys
	$(call bats,tests/interop)

# The bats files that have tests with the tag `smoke`: bats needn't read the others.
SMOKE := tests/cli/main.bats tests/fault/processes.bats

SIM_SECONDS ?= 60
SIM_REPLAY  ?= 5000

.PHONY: sim
sim: $(SIM) $(B)/tools/clockshim.so  ## simulated worlds with faults, SIM_SECONDS; or one, SIM_SEED
	$(Q)$(if $(SIM_SEED),$(B)/sim/sim --seed $(SIM_SEED) $(SIM_FAMILY:%=--family %),\
	$(B)/sim/replay $(abspath $(B))/tools/clockshim.so $(SIM_REPLAY) \
	    $(or $(SIM_FROM),$$(date +%s)) && \
	$(B)/sim/sim --seconds $(SIM_SECONDS) $(SIM_FROM:%=--from %) --seeds tests/sim/seeds \
	    $(SIM_FAMILY:%=--family %))

.PHONY: sim-bugs
sim-bugs: $(SIM)  ## does make sim find the bugs that tests/sim/bugs.sh puts into a copy of lib/?
	$(Q)tests/sim/bugs.sh

MODEL ?= quick

check-model:  ## check the quorum's protocol by spin; MODEL=full takes 30 min
	$(Q)tests/model/run.sh $(MODEL)

# The files that ThreadSanitizer checks. In their tests rlock runs more than one thread: the renewer
# renews a lease while main waits for the command, or a thread resolves a host name.
THREADED := $(patsubst %,tests/cli/%.bats,main nested queue shared signals) \
            $(patsubst %,tests/fault/%.bats,ghosts lease line pause processes)

check-threads: $(B)/rlock $(TOOLS)  ## run the bats files in which rlock has several threads
	$(call bats,$(THREADED))

check-docs: $(B)/rlock $(TOOLS)  ## check that options, manual and completions agree
	$(call bats,tests/cli/docs.bats)

FUZZ_SECONDS ?= 60

.PHONY: fuzz
fuzz: build/gen/scripts_embedded.h build/gen/reply_codes.h
fuzz:  ## run each fuzz target for FUZZ_SECONDS (60), with clang
	$(Q)mkdir -p build/fuzz && for f in $(patsubst fuzz_%,%,$(notdir $(REPLAYS))); do \
	    clang -g -O1 -std=c11 -fsanitize=fuzzer,address,undefined $(ALL_CPPFLAGS) -Itests/fuzz \
	        -Ilib -Icmd -Ibuild/gen -o build/fuzz/$$f tests/fuzz/fuzz_$$f.c $(LIB_SRC) \
	        $(filter-out cmd/main.c,$(wildcard cmd/*.c cmd/*/*.c)) $(HIREDIS_LIBS) -pthread -ldl && \
	    mkdir -p build/fuzz/found-$$f && \
	    build/fuzz/$$f -max_total_time=$(FUZZ_SECONDS) -timeout=5 build/fuzz/found-$$f \
	        tests/fuzz/corpus/$$f || exit 1; \
	done

lint:  ## check layers, allowed calls, line widths, shellcheck, mandoc
	$(Q)tests/lint/run.sh

sizes:  ## list the 20 longest files and the 20 longest functions
	$(Q)mkdir -p build && awk -f tests/lint/sizes.awk $(C_FILES) | sort -rn >build/sizes; \
	grep -v function build/sizes | head -n 20; grep function build/sizes | head -n 20

asan tsan:  ## run all tests in a build with sanitizers; asan includes UBSan
	$(Q)$(MAKE) FLAVOUR=$@ check

ubsan: asan  ## the same as asan

.PHONY: test-distros
test-distros:  ## as root: run demo and tests in clean roots of Debian 12 and 13
	$(Q)tests/tools/deps.sh distros
	$(Q)tests/tools/distros.sh

bench: all  ## compare with other programs: a table and a picture
	$(Q)tests/tools/deps.sh bench || echo "bench: runs without the programs that are missing" >&2
	$(Q)RLOCK=$(abspath rlock) tests/bench/run.sh

# ---- format, install, dist, clean ----------------------------------------------------------------

.PHONY: format format-check install uninstall dist clean help
format:  ## format all C files with clang-format
	$(Q)clang-format -i $(C_FILES)

format-check:  ## fail if `make format` would change a file
	$(Q)for file in $(C_FILES); do clang-format "$$file" | cmp -s - "$$file" || \
	{ echo "$$file: not formatted; run: make format"; changed=1; }; done; test -z "$$changed"

install: all  ## install program, manual pages and completions under PREFIX
	$(Q)set -e; for row in $(INSTALLED); do IFS=:; set -- $$row; \
	install -D -m "$$1" "$$2" "$(DESTDIR)$(PREFIX)/$$3"; done

uninstall:  ## remove the files that `make install` copied
	$(Q)set -e; for row in $(INSTALLED); do IFS=:; set -- $$row; \
	rm -f "$(DESTDIR)$(PREFIX)/$$3"; done

VERSION = $(shell sed -n 's/^\#define RLOCK_VERSION "\(.*\)"/\1/p' lib/rlock.h)
dist:  ## pack the sources as build/rlock-VERSION.tar.gz
	$(Q)mkdir -p build && tar -czf build/rlock-$(VERSION).tar.gz --exclude=./build --exclude=./rlock \
	--exclude=./.git --owner=0 --group=0 --sort=name --transform 's,^\.,rlock-$(VERSION),' .

clean:  ## remove build/ and ./rlock
	$(Q)rm -rf build rlock rlock-static

help:  ## print this list
	$(Q)awk -F ':.*## ' '/^[a-z][a-z -]*:.*## / { printf "make %-14s %s\n", $$1, $$2 }' Makefile
