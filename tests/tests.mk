# SPDX-License-Identifier: MIT
#
# tests.mk: builds and runs the tests. The Makefile includes this file.

UNIT     := $(patsubst tests/unit/%.c,$(B)/unit/%,$(wildcard tests/unit/test_*.c))
REPLAYS  := $(patsubst tests/fuzz/%.c,$(B)/unit/%,$(wildcard tests/fuzz/fuzz_*.c))
UNIT_CMD := $(filter $(B)/unit/test_cmd_%,$(UNIT))
SHIMS    := $(patsubst tests/tools/%.c,$(B)/tools/%.so,$(wildcard tests/tools/*shim.c))
SIM      := $(B)/sim/sim $(B)/sim/replay
TOOLS    := $(SHIMS) $(patsubst tests/tools/%.c,$(B)/tools/%,\
                       $(filter-out %shim.c,$(wildcard tests/tools/*.c)))

# ---- unit tests, fuzz targets, the simulation ----------------------------------------------------

# A function __wrap_NAME of a test is called instead of NAME.
wraps = $(patsubst __wrap_%,-Wl$(comma)--wrap=%,$(sort $(shell grep -oh '__wrap_[a-z0-9_]*' \
    $(patsubst $(B)/%.o,tests/%.c,$(filter $(B)/unit/%.o $(B)/fuzz/%.o $(B)/sim/%.o,$^)))))
$(UNIT) $(REPLAYS) $(B)/sim/sim: private WRAPS = $(wraps)
# A header of theirs replaces user_entry by one that returns an entry of the test.
$(patsubst %,$(B)/unit/test_cmd_%,holds private_dir private_server): \
    private WRAPS = $(wraps) -Wl,--wrap=user_entry

# test_lua sets the clock of the server on which it runs the scripts.
$(B)/unit/test_lua: | $(B)/tools/clockshim.so

# test_tls talks to the TLS server of fuzz_tls, which needs OpenSSL, if its headers are there.
$(B)/unit/test_tls: $(B)/fuzz/tls_server.o
SSL_LIBS := $(if $(filter yes linked,$(TLS))$(wildcard /usr/include/openssl/ssl.h),-lssl -lcrypto)
$(B)/unit/test_tls $(B)/unit/fuzz_tls: private HIREDIS_LIBS += $(SSL_LIBS)

$(B)/unit/%.o: tests/unit/%.c | build/gen/reply_codes.h $(B)/hiredis.found
	$(call compile,-Itests/unit -Itests/fuzz -Icmd -Ilib -Ibuild/gen)

$(UNIT): %: %.o $(B)/librlock.a
	$(link)

$(UNIT_CMD): $(filter-out %/main.o,$(CMD_OBJ))

# unit/fuzz_NAME feeds the files of tests/fuzz/corpus/NAME to a fuzz target, and needs no clang.
# `make fuzz` links the same target with libFuzzer.
$(REPLAYS): $(B)/unit/%: $(B)/fuzz/%.o $(B)/fuzz/replay.o $(B)/librlock.a
	$(link)

$(REPLAYS): $(filter-out %/main.o,$(CMD_OBJ))

$(B)/unit/fuzz_talk $(B)/unit/fuzz_tls: $(B)/fuzz/network.o
$(B)/unit/fuzz_tls: $(B)/fuzz/tls_server.o

$(B)/fuzz/%.o: tests/fuzz/%.c | build/gen/reply_codes.h $(B)/hiredis.found
	$(call compile,-Itests/fuzz -Itests/unit -Icmd -Ilib -Ibuild/gen)

SIM_OBJ   := $(patsubst tests/sim/%.c,$(B)/sim/%.o,$(wildcard tests/sim/*.c))
LUA_FLAGS  = $(shell $(PKG_CONFIG) --cflags lua5.1 2>/dev/null || echo -I/usr/include/lua5.1)
LUA_LIBS   = $(shell $(PKG_CONFIG) --libs lua5.1 2>/dev/null || echo -llua5.1) -lcrypto

$(B)/sim/%.o: tests/sim/%.c | build/gen/scripts_embedded.h build/gen/reply_codes.h \
                                                                $(B)/hiredis.found
	$(call compile,$(LUA_FLAGS) -Itests/sim -Ilib -Ibuild/gen)

$(B)/sim/sim: private HIREDIS_LIBS += $(LUA_LIBS) -lm
$(B)/sim/sim: $(filter-out %/replay.o,$(SIM_OBJ)) $(B)/librlock.a
	$(link)

REPLAY_OBJ := replay buffer chance redis
$(B)/sim/replay: private HIREDIS_LIBS += $(LUA_LIBS) -lm
$(B)/sim/replay: $(patsubst %,$(B)/sim/%.o,$(REPLAY_OBJ))
	$(link)

# ---- test tools ----------------------------------------------------------------------------------

# The test tools are compiled without sanitizers: only rlock is under test.
tool = $(Q)$(if $(V),,echo "  TOOL  $@" &&) mkdir -p $(@D) && \
       $(CC) -D_GNU_SOURCE $(ALL_CFLAGS) $(1) -MMD -MP -MF $@.d -o $@ $< $(LDFLAGS)

$(B)/tools/%: tests/tools/%.c
	$(call tool)

$(B)/tools/%.so: tests/tools/%.c
	$(call tool,-shared -fPIC)

$(B)/soak/job: tests/soak/job.c
	$(call tool)

# ---- make test -----------------------------------------------------------------------------------

.PHONY: test check check-quick check-all test-deps ci-deps
test-deps ci-deps:
	$(Q)tests/tools/deps.sh $(@:%-deps=%)

# Each part of the tests is a call of make; tests/tools/suite.sh prints a line for each part, then
# what failed, and keeps the output of each part in build/check.
suite = $(Q)+MAKE="$(MAKE)" V="$(V)" tests/tools/suite.sh
logs  = build/check$(if $(filter plain,$(FLAVOUR)),,/$(FLAVOUR))
build = 'build: -j$(shell nproc) tests-built'
parts = $(build) $(if $(SANITIZE),,'lint: lint &') 'unit: check-unit' 'bats: check-bats' \
        $(if $(SANITIZE),,'servers: check-servers')

test:  ## install what is missing, build, run all tests but the long ones
	$(suite) $(logs) 'deps: test-deps' $(parts)

check:  ## the same without installing
	$(suite) $(logs) $(parts)

check-quick:  ## run lint, unit and smoke tests: 30 s
	$(suite) $(logs) $(build) 'lint: lint &' 'unit: check-unit &' 'smoke: check-smoke'

check-all:  ## run all tests, with sanitizers, too, and search for faults: 2 hours
	$(suite) $(logs) 'deps: ci-deps' $(parts) 'long: check-long' 'model: check-model MODEL=full' \
	    'sim: sim SIM_SECONDS=600' 'inject: inject INJECT=300' 'fuzz: fuzz' \
	    $(foreach flavour,asan tsan,'$(flavour)-build: FLAVOUR=$(flavour) tests-built' \
	        '$(flavour)-unit: FLAVOUR=$(flavour) check-unit' \
	        '$(flavour)-bats: FLAVOUR=$(flavour) check-bats')

# ---- checks --------------------------------------------------------------------------------------

# Sanitizers write their reports to files: tests compare what rlock prints on standard error.
SANITIZER_LOG := log_path=$(abspath $(B))/report
export ASAN_OPTIONS  := detect_leaks=1:$(SANITIZER_LOG)
export LSAN_OPTIONS  := suppressions=$(abspath tests/tools/leaks.supp):print_suppressions=0
export UBSAN_OPTIONS := print_stacktrace=1:halt_on_error=1:$(SANITIZER_LOG)
export TSAN_OPTIONS  := halt_on_error=1:die_after_fork=0:$(SANITIZER_LOG)

# The tests of the plain program with TLS also run the static program, in tests/cli/static.bats.
STATIC_RLOCK := $(if $(filter plain-yes,$(FLAVOUR)-$(TLS)),build/static/rlock)
# The tests of the plain program also use librlock.so and librlock.a, in tests/cli/library.bats.
ALSO_TESTED := $(STATIC_RLOCK) $(if $(filter plain,$(FLAVOUR)),$(LIBRARY))
ifneq ($(STATIC_RLOCK),)
# The static program is built by a second make. The first make generates the headers before that:
# otherwise both would write the same files in build/gen at the same time. If the program can't be
# linked here, only its tests are skipped.
.PHONY: $(STATIC_RLOCK)
$(STATIC_RLOCK): | build/gen/scripts_embedded.h build/gen/reply_codes.h
	$(Q)$(MAKE) FLAVOUR=static || test ! -e build/static/static.found
endif

tested := RLOCK=$(abspath $(B))/rlock RLOCK_TEST_TOOLS=$(abspath $(B))/tools \
          RLOCK_TEST_FLAVOUR=$(FLAVOUR) BATS_TEST_TIMEOUT=300
# A bats file without sanitizers waits most of the time.
bats    = $(Q)JOBS=$${JOBS:-$$(($(if $(SANITIZE),1,2) * $$(nproc)))} $(tested) \
          BATSFLAGS="$(BATSFLAGS) $(2)" tests/tools/run_tests.sh $(1)

.PHONY: tests-built
tests-built: all $(UNIT) $(REPLAYS) $(TOOLS) $(ALSO_TESTED)  ## build all that the tests need

.PHONY: check-smoke check-unit check-bats check-long check-cli check-fault check-interop
.PHONY: check-model check-sanitized check-docs lint asan tsan bench

check-smoke: $(B)/rlock $(TOOLS)  ## run the few bats tests tagged smoke: a few seconds
	$(call bats,$(SMOKE),--filter-tags smoke)

# Unit tests wait most of the time, so more of them run at the same time than there are processors.
check-unit: $(UNIT) $(REPLAYS)  ## run the C unit tests, and fuzz targets over their corpus
	$(Q)JOBS=$${JOBS:-$$((4 * $$(nproc)))} $(tested) tests/tools/run_tests.sh $^

# One call of run_tests.sh runs all folders. With one call for each folder, processors would be idle
# while the last files of a folder run.
ALL_BATS := tests/cli tests/fault $(if $(SANITIZE),,tests/interop)

check-bats: $(B)/rlock $(TOOLS) $(ALSO_TESTED)  ## run all bats tests without the tag `long`
	$(call bats,$(ALL_BATS),--filter-tags !long)

check-long: private tested += BATS_TEST_TIMEOUT=900
check-long: $(B)/rlock $(TOOLS)  ## run the bats tests with the tag `long`: storms, runaways
	$(call bats,$(ALL_BATS),--filter-tags long)

check-cli: $(B)/rlock $(TOOLS) $(ALSO_TESTED)  ## run rlock with real servers
	$(call bats,tests/cli)

check-fault: $(B)/rlock $(TOOLS)  ## run rlock with bad servers, cut connections, stopped processes
	$(call bats,tests/fault)

check-interop: $(B)/rlock $(TOOLS)  ## run rlock beside other Redis clients on the same keys
	$(call bats,tests/interop)

.PHONY: check-servers
check-servers: $(B)/rlock $(B)/unit/test_lua $(TOOLS)  ## run rlock with Redis 6.0 to 8, Valkey 8, 9
	$(Q)$(tested) STRICT=$(STRICT) tests/servers/run.sh $(B)

# The bats files that have tests with the tag `smoke`: bats needn't read the others.
SMOKE := tests/cli/main.bats tests/cli/docs.bats tests/fault/processes.bats

SIM_SECONDS ?= 60
SIM_REPLAY  ?= 5000

.PHONY: sim
sim: $(SIM) $(B)/tools/clockshim.so  ## simulate faults for SIM_SECONDS (60), or one SIM_SEED=N
	$(Q)$(if $(SIM_SEED),$(B)/sim/sim --seed $(SIM_SEED) $(SIM_FAMILY:%=--family %),\
	$(B)/sim/replay $(abspath $(B))/tools/clockshim.so $(SIM_REPLAY) \
	    $(or $(SIM_FROM),$$(date +%s)) && \
	tests/sim/bugs.sh --apply && \
	$(B)/sim/sim --seconds $(SIM_SECONDS) $(SIM_FROM:%=--from %) --seeds tests/sim/seeds \
	    $(SIM_FAMILY:%=--family %))

.PHONY: sim-bugs
sim-bugs: $(SIM)  ## check that make sim finds the bugs of tests/sim/bugs.sh
	$(Q)tests/sim/bugs.sh

MODEL ?= quick

check-model:  ## check models of the protocols by spin; MODEL=full takes 30 min
	$(Q)tests/model/run.sh $(MODEL)

# The bats files that .ci/run runs with sanitizers. With AddressSanitizer and UBSan: those that take
# rlock through most of its memory: options, verbs, kinds of servers and locks, replies of bad
# servers. With ThreadSanitizer: those in which rlock has several threads, because the renewer
# renews a lease while main waits for the command, or because a thread resolves a host name.
SANITIZED_asan := $(patsubst %,tests/cli/%.bats,main options several shared tls list history \
                                                nested noscripts hold) \
                  $(patsubst %,tests/fault/%.bats,replies processes)
SANITIZED_tsan := $(patsubst %,tests/cli/%.bats,main nested queue shared signals) \
                  $(patsubst %,tests/fault/%.bats,ghosts lease pause processes)

check-sanitized: $(B)/rlock $(TOOLS)  ## with FLAVOUR=asan or tsan: run the bats files chosen for it
	$(call bats,$(SANITIZED_$(FLAVOUR)),--filter-tags !long)

check-docs: $(B)/rlock $(TOOLS)  ## check that options, manual and README agree
	$(call bats,tests/cli/docs.bats)

.PHONY: messages
messages:  ## print every text that the program can say, with its places
	$(Q)tests/tools/deps.sh messages
	$(Q)xgettext --extract-all --from-code=UTF-8 --omit-header --no-wrap -o - 2>/dev/null \
	    $(filter lib/%.c lib/%.h cmd/%.c cmd/%.h,$(C_FILES))

MUTANTS ?= 1000
MUTANTS_SEED ?= 1

.PHONY: mutants
mutants: build/gen/scripts_embedded.h build/gen/reply_codes.h
mutants:  ## as root: change rlock in MUTANTS (1000) places, list what no test notices
	$(Q)tests/tools/deps.sh mutants
	$(Q)tests/mutants/mutants.py --sample $(MUTANTS) --seed $(MUTANTS_SEED) --jobs 2 \
	    $(MUTANTS_BATS:%=--bats %)

INJECT_SEED ?= 1
INJECT_JOBS ?= 8

.PHONY: inject
inject: $(B)/rlock  ## as root: let one system call of rlock fail in each run; INJECT=N runs
	$(Q)tests/tools/deps.sh test
	$(Q)RLOCK=$(B)/rlock tests/inject/inject.py --seed $(INJECT_SEED) --jobs $(INJECT_JOBS) \
	    $(if $(INJECT_KILLS),--kills $(INJECT_KILLS),--sample $(or $(INJECT),0))

SOAK_HOURS   ?= 3
SOAK_CLIENTS ?= 50

.PHONY: soak
soak: $(B)/rlock $(B)/soak/job $(B)/tools/clockshim.so  ## run clients and faults for SOAK_HOURS (3)
	$(Q)nice -n 10 tests/soak/soak.py --hours $(SOAK_HOURS) --clients $(SOAK_CLIENTS) \
	    $(SOAK_SEED:%=--seed %) $(B)

FUZZ_SECONDS ?= 60
FUZZERS      := $(patsubst tests/fuzz/%.c,build/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))

$(FUZZERS): build/fuzz/%: build/fuzz/fuzz/%.o build/fuzz/librlock.a
	$(Q)$(CC) $(SANITIZE) -fsanitize=fuzzer -pthread $(wraps) -o $@ $(filter %.o,$^) \
	    $(filter %.a,$^) $(HIREDIS_LIBS) -ldl

build/fuzz/fuzz_talk build/fuzz/fuzz_tls: build/fuzz/fuzz/network.o
build/fuzz/fuzz_tls: build/fuzz/fuzz/tls_server.o
build/fuzz/fuzz_tls: private HIREDIS_LIBS += $(SSL_LIBS)

$(FUZZERS): $(filter-out %/main.o,$(patsubst build/$(FLAVOUR)/%,build/fuzz/%,$(CMD_OBJ)))

.PHONY: fuzz fuzz-keep fuzz-coverage
fuzz:  ## run each fuzz target for FUZZ_SECONDS (60), with clang
	$(Q)$(MAKE) CC=clang FLAVOUR=fuzz $(FUZZERS)
	$(Q)FUZZ_SEED=$(FUZZ_SEED) tests/tools/fuzz.sh run $(FUZZ_SECONDS) $(notdir $(FUZZERS))

fuzz-keep:  ## add the inputs of `make fuzz` that reach new code to tests/fuzz/corpus
	$(Q)tests/tools/fuzz.sh keep $(notdir $(FUZZERS))

fuzz-coverage:  ## print which part of each parser the fuzz targets reach, with llvm-cov
	$(Q)$(MAKE) CC=clang FLAVOUR=coverage $(patsubst build/fuzz/%,build/coverage/unit/%,$(FUZZERS))
	$(Q)tests/tools/fuzz.sh coverage $(notdir $(FUZZERS))

lint:  ## check layers, allowed calls, line widths, shellcheck, mandoc
	$(Q)tests/lint/run.sh

asan tsan:  ## run all tests in a build with sanitizers; asan includes UBSan
	$(Q)$(MAKE) FLAVOUR=$@ check

ubsan: asan  ## the same as asan

.PHONY: test-distros
test-distros:  ## as root: run demo and tests in clean Debian 12 and 13; DISTROS=--quick for CI
	$(Q)tests/tools/deps.sh distros
	$(Q)tests/tools/distros.sh $(DISTROS)

.PHONY: test-arch
test-arch:  ## build for arm64, armhf, i386, riscv64, s390x; run the tests in qemu-user
	$(Q)tests/tools/deps.sh arch
	$(Q)tests/tools/arch.sh $(ARCH)

bench: all  ## compare a run, a wait and a hand-over with flock, redis-py, etcd
	$(Q)tests/tools/deps.sh bench || echo "bench: runs without the programs that are missing" >&2
	$(Q)$(MAKE) static || echo "bench: runs without rlock-static" >&2
	$(Q)RLOCK=$(abspath rlock) tests/bench/bench.py

.PHONY: pictures
pictures: rlock  ## draw the picture of README.md
	$(Q)RLOCK=$(abspath rlock) tests/tools/two_terminals.py docs/terminals.svg
