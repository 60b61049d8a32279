# SPDX-License-Identifier: MIT
#
# rlock: run a command while holding a lock in Redis. GNU make; `make help` lists the targets.
#
#   PREFIX=/usr/local DESTDIR=   where `make install` puts things
#   CC CFLAGS LDFLAGS            yours; what rlock itself needs is added to them
#   V=1                          show the commands
#   WERROR=1                     warnings are errors
#   HARDENING=no                 without what makes errors in memory harder to exploit
#   TLS=no                       without rediss://, and so without OpenSSL's headers
#   FLAVOUR=plain|asan|tsan|...  each builds in build/FLAVOUR; any other name is a plain build too
#   JOBS=N                       so many files of tests run side by side; 3 for each processor

PREFIX  ?= /usr/local
CFLAGS  ?= -O2 -g
FLAVOUR ?= plain
Q       := $(if $(V),,@)
B       := build/$(FLAVOUR)

MAKEFLAGS += --no-print-directory
.DELETE_ON_ERROR:
.SUFFIXES:

# ---- flags ---------------------------------------------------------------------------------------

WARNINGS := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wswitch-enum -Wvla -pedantic \
            -Wno-overlength-strings \
            $(if $(WERROR),-Werror)

SANITIZE_asan := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
SANITIZE_tsan := -fsanitize=thread
SANITIZE      := $(SANITIZE_$(FLAVOUR))

# What Debian builds with, as far as the compiler has it and CFLAGS don't say it already, as those
# of dpkg-buildflags do. A sanitizer sees more without. Asked of the compiler in one go.
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
HARDENING_LDFLAGS := $(if $(filter -static -no-pie,$(CFLAGS) $(LDFLAGS)),,\
                          $(patsubst -fPIE,-pie,$(filter -fPIE,$(HARDENING_FLAGS))))

# The static library saves 80 us of every start. pkg-config knows of unusual places, if it is
# there itself; cc knows of the usual ones.
PKG_CONFIG     ?= pkg-config
HIREDIS_CFLAGS := $(shell $(PKG_CONFIG) --cflags hiredis 2>/dev/null)
HIREDIS_DIR    := $(shell $(PKG_CONFIG) --variable=libdir hiredis 2>/dev/null)
HIREDIS_A      := $(firstword $(wildcard $(HIREDIS_DIR:%=%/libhiredis.a) \
                                         $(shell $(CC) -print-file-name=libhiredis.a 2>/dev/null)))
HIREDIS_LIBS   := $(or $(HIREDIS_A),$(shell $(PKG_CONFIG) --libs hiredis 2>/dev/null),-lhiredis)

# Only the headers are needed to build: the library is loaded by its name when a URL wants it.
ifeq ($(origin TLS),undefined)
OPENSSL_3 := \043include <openssl/ssl.h>\n\043if OPENSSL_VERSION_MAJOR < 3\n\043error\n\043endif\n
TLS := $(shell printf '$(OPENSSL_3)' | $(CC) $(CPPFLAGS) -E - >/dev/null 2>&1 && echo yes || \
               echo not-found)
endif

ALL_CPPFLAGS := -D_GNU_SOURCE $(HIREDIS_CFLAGS) $(CPPFLAGS)
ALL_CFLAGS   := -std=c11 $(WARNINGS) -pthread -ffunction-sections -fdata-sections \
                $(HARDENING_FLAGS) $(CFLAGS)
ALL_LDFLAGS  := -pthread -Wl,-O1 -Wl,--gc-sections -Wl,--as-needed -Wl,--hash-style=gnu \
                -Wl,-z,relro,-z,now $(HARDENING_LDFLAGS) $(LDFLAGS)

compile = $(Q)$(if $(V),,echo "  CC    $@" &&) mkdir -p $(@D) && \
          $(CC) $(ALL_CPPFLAGS) $(1) $(ALL_CFLAGS) $(SANITIZE) -MMD -MP -c -o $@ $<
link    = $(Q)$(if $(V),,echo "  LINK  $@" &&) mkdir -p $(@D) && \
          $(CC) $(ALL_CFLAGS) $(SANITIZE) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) \
          $(HIREDIS_LIBS) -ldl

comma := ,

# ---- files ---------------------------------------------------------------------------------------

LIB_SRC  := $(filter-out $(if $(filter yes,$(TLS)),lib/wire/notls.c,\
                             lib/wire/tls.c lib/wire/libssl.c),$(wildcard lib/*.c lib/*/*.c))
LIB_OBJ  := $(patsubst %.c,$(B)/%.o,$(LIB_SRC))
CMD_OBJ  := $(patsubst %.c,$(B)/%.o,$(wildcard cmd/*.c cmd/*/*.c))
UNIT     := $(patsubst tests/unit/%.c,$(B)/unit/%,$(wildcard tests/unit/test_*.c))
REPLAYS  := $(patsubst tests/fuzz/%.c,$(B)/unit/%,$(wildcard tests/fuzz/fuzz_*.c))
UNIT_CMD := $(filter $(B)/unit/test_cmd_%,$(UNIT))
SHIMS    := $(patsubst tests/tools/%.c,$(B)/tools/%.so,$(wildcard tests/tools/*shim.c))
TOOLS    := $(SHIMS) $(patsubst tests/tools/%.c,$(B)/tools/%,\
                       $(filter-out %shim.c,$(wildcard tests/tools/*.c)))
C_FILES   = $(wildcard lib/*.[ch] lib/*/*.[ch] cmd/*.[ch] cmd/*/*.[ch] tests/*/*.[ch])

# What is installed: mode, file, place under PREFIX.
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

$(B)/rlock: $(CMD_OBJ) $(B)/librlock.a
	$(link)

$(B)/librlock.a: $(LIB_OBJ) $(B)/tls.$(TLS)
	$(Q)rm -f $@ && $(AR) rcs $@ $(LIB_OBJ)

# Newer than the archive when what is wanted has changed.
$(B)/tls.$(TLS):
	$(Q)mkdir -p $(@D) && rm -f $(B)/tls.* && touch $@
ifeq ($(TLS),not-found)
	$(Q)echo "rlock: built WITHOUT TLS, as the headers of OpenSSL 3 are not installed:" \
	     "rediss:// will be refused; make deps installs them, TLS=no says that it is meant" >&2
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

# Asked once, so that a missing header is one sentence and not a page of errors.
$(B)/hiredis.found:
	$(Q)mkdir -p $(@D) && echo '#include <hiredis/hiredis.h>' | \
	$(CC) $(ALL_CPPFLAGS) -E -o $@ - 2>/dev/null || \
	{ echo "rlock: hiredis and its headers are needed to build; install them with: make deps" >&2; \
	  rm -f $@; exit 1; }

# Every call of these goes by the test, which makes the n-th one fail.
$(B)/unit/test_memory: private ALL_LDFLAGS += $(patsubst %,-Wl$(comma)--wrap=%,\
                                                malloc calloc realloc strdup free)

# A resolver that the test holds up.
$(B)/unit/test_socket: private ALL_LDFLAGS += -Wl,--wrap=getaddrinfo

# And every send, behind which it stops the one who asks.
$(B)/unit/test_lease_end: private ALL_LDFLAGS += -Wl,--wrap=send

$(B)/unit/%.o: tests/unit/%.c | build/gen/reply_codes.h $(B)/hiredis.found
	$(call compile,-Itests/unit -Icmd -Ilib -Ibuild/gen)

$(UNIT): %: %.o $(B)/librlock.a
	$(link)

$(UNIT_CMD): $(filter-out %/main.o,$(CMD_OBJ))

# A fuzzer over the files of its corpus, with any compiler; `make fuzz` makes the real one.
$(REPLAYS): $(B)/unit/%: $(B)/fuzz/%.o $(B)/fuzz/replay.o $(B)/librlock.a
	$(link)

$(REPLAYS): $(filter-out %/main.o,$(CMD_OBJ))

$(B)/fuzz/%.o: tests/fuzz/%.c | build/gen/reply_codes.h $(B)/hiredis.found
	$(call compile,-Itests/fuzz -Itests/unit -Icmd -Ilib -Ibuild/gen)

# The tools are the measure, not what is measured: no sanitizer in them.
tool = $(Q)$(if $(V),,echo "  TOOL  $@" &&) mkdir -p $(@D) && \
       $(CC) -D_GNU_SOURCE $(ALL_CFLAGS) $(1) -MMD -MP -MF $@.d -o $@ $< $(LDFLAGS)

$(B)/tools/%: tests/tools/%.c
	$(call tool)

$(B)/tools/%.so: tests/tools/%.c
	$(call tool,-shared -fPIC)

-include $(wildcard $(B)/*/*.d $(B)/*/*/*.d)

# ---- use -----------------------------------------------------------------------------------------

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

# Reports go to files, as the program's standard error is part of what is tested.
SANITIZER_LOG := log_path=$(abspath $(B))/report
export ASAN_OPTIONS  := detect_leaks=1:$(SANITIZER_LOG)
export LSAN_OPTIONS  := suppressions=$(abspath tests/tools/leaks.supp):print_suppressions=0
export UBSAN_OPTIONS := print_stacktrace=1:halt_on_error=1:$(SANITIZER_LOG)
export TSAN_OPTIONS  := halt_on_error=1:die_after_fork=0:$(SANITIZER_LOG)

tested := RLOCK=$(abspath $(B))/rlock RLOCK_TEST_TOOLS=$(abspath $(B))/tools \
          RLOCK_TEST_FLAVOUR=$(FLAVOUR) BATS_TEST_TIMEOUT=180
bats    = $(Q)env --default-signal $(tested) BATSFLAGS="$(BATSFLAGS) $(2)" \
          tests/tools/run_bats.sh $(1)

.PHONY: tests-built
tests-built: all $(UNIT) $(REPLAYS) $(TOOLS)  ## all that the tests need

.PHONY: check check-quick check-smoke check-unit check-bats check-cli check-fault check-interop
.PHONY: check-model
.PHONY: check-threads
.PHONY: check-docs lint sizes asan tsan bench
check: $(B)/rlock $(UNIT) $(TOOLS)  ## lint, model, unit tests, bats files, whatever fails
	$(Q)$(MAKE) -k -j1 $(if $(SANITIZE),,lint check-model) check-unit check-bats

check-quick: $(B)/rlock $(UNIT) $(REPLAYS) $(TOOLS)  ## lint, unit tests, some runs: half a minute
	$(Q)RLOCK_TEST_JOBS=4 $(MAKE) -k -j3 -Otarget lint check-unit check-smoke

check-smoke: $(B)/rlock $(TOOLS)  ## a lock that is had, refused, waited for, killed; a few seconds
	$(call bats,$(SMOKE),--filter-tags smoke)

check-unit: $(UNIT) $(REPLAYS)  ## the C unit tests, and what the fuzzers found before
	$(Q)$(tested) tests/unit/run.sh $^

# In one go, so that there is always a file to run beside the others.
check-bats: $(B)/rlock $(TOOLS)  ## the next three, side by side
	$(call bats,tests/cli tests/fault $(if $(SANITIZE),,tests/interop))

check-cli: $(B)/rlock $(TOOLS)  ## the program from outside, with real servers
	$(call bats,tests/cli)

check-fault: $(B)/rlock $(TOOLS)  ## bad servers, cut lines, stopped processes
	$(call bats,tests/fault)

check-interop: $(B)/rlock $(TOOLS)  ## other clients' locks on the same keys
	$(call bats,tests/interop)

# The files with tests that have the tag.
SMOKE := tests/cli/main.bats tests/fault/processes.bats

MODEL ?= quick

check-model:  ## what a quorum's messages can lead to, by spin; MODEL=full: 30 min
	$(Q)tests/model/run.sh $(MODEL)

# Where the keeper renews, names are looked up or many wait: what ThreadSanitizer is asked about.
THREADED := $(patsubst %,tests/cli/%.bats,main nested queue shared signals) \
            $(patsubst %,tests/fault/%.bats,ghosts lease line pause processes)

check-threads: $(B)/rlock $(TOOLS)  ## those of cli and fault in which more than one thread has work
	$(call bats,$(THREADED))

check-docs: $(B)/rlock $(TOOLS)  ## options, manual page and completions agree
	$(call bats,tests/cli/docs.bats)

FUZZ_SECONDS ?= 60

.PHONY: fuzz
fuzz: build/gen/scripts_embedded.h build/gen/reply_codes.h
fuzz:  ## each fuzzer for FUZZ_SECONDS (60), with clang
	$(Q)mkdir -p build/fuzz && for f in $(patsubst fuzz_%,%,$(notdir $(REPLAYS))); do \
	    clang -g -O1 -std=c11 -fsanitize=fuzzer,address,undefined $(ALL_CPPFLAGS) -Itests/fuzz \
	        -Ilib -Icmd -Ibuild/gen -o build/fuzz/$$f tests/fuzz/fuzz_$$f.c $(LIB_SRC) \
	        $(filter-out cmd/main.c,$(wildcard cmd/*.c cmd/*/*.c)) $(HIREDIS_LIBS) -pthread -ldl && \
	    mkdir -p build/fuzz/found-$$f && \
	    build/fuzz/$$f -max_total_time=$(FUZZ_SECONDS) -timeout=5 build/fuzz/found-$$f \
	        tests/fuzz/corpus/$$f || exit 1; \
	done

lint:  ## layers, only-here rules, line widths, shellcheck, mandoc
	$(Q)tests/lint/run.sh

sizes:  ## the 20 longest files and the 20 longest functions; nothing is enforced
	$(Q)mkdir -p build && awk -f tests/lint/sizes.awk $(C_FILES) | sort -rn >build/sizes; \
	grep -v function build/sizes | head -n 20; grep function build/sizes | head -n 20

asan tsan:  ## all tests in a build with sanitizers; asan has UBSan in it
	$(Q)$(MAKE) FLAVOUR=$@ check

ubsan: asan  ## the same as asan

.PHONY: test-distros
test-distros:  ## as root: the demo and all tests in clean roots of Debian 12 and 13
	$(Q)tests/tools/deps.sh distros
	$(Q)tests/tools/distros.sh

bench: all  ## install what is missing, compare with others; table and picture
	$(Q)tests/tools/deps.sh bench || echo "bench: goes on without what is missing" >&2
	$(Q)RLOCK=$(abspath rlock) tests/bench/run.sh

# ---- care ----------------------------------------------------------------------------------------

.PHONY: format format-check install uninstall dist clean help
format:  ## lay out all C files
	$(Q)clang-format -i $(C_FILES)

format-check:  ## fail if `make format` would change a file
	$(Q)for file in $(C_FILES); do clang-format "$$file" | cmp -s - "$$file" || \
	{ echo "$$file: make format would change it"; changed=1; }; done; test -z "$$changed"

install: all  ## program, manual pages, completions to PREFIX
	$(Q)set -e; for row in $(INSTALLED); do IFS=:; set -- $$row; \
	install -D -m "$$1" "$$2" "$(DESTDIR)$(PREFIX)/$$3"; done

uninstall:  ## remove exactly what install put there
	$(Q)set -e; for row in $(INSTALLED); do IFS=:; set -- $$row; \
	rm -f "$(DESTDIR)$(PREFIX)/$$3"; done

VERSION = $(shell sed -n 's/^\#define RLOCK_VERSION "\(.*\)"/\1/p' lib/rlock.h)
dist:  ## build/rlock-VERSION.tar.gz
	$(Q)mkdir -p build && tar -czf build/rlock-$(VERSION).tar.gz --exclude=./build --exclude=./rlock \
	--exclude=./.git --owner=0 --group=0 --sort=name --transform 's,^\.,rlock-$(VERSION),' .

clean:  ## remove everything that was built
	$(Q)rm -rf build rlock

help:  ## this list
	$(Q)awk -F ':.*## ' '/^[a-z][a-z -]*:.*## / { printf "make %-14s %s\n", $$1, $$2 }' Makefile
