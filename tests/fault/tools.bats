#!/usr/bin/env bats
# tools: tests of the programs that run tests and print their results.

load ../helpers/common

@test "results: it prints failed tests with their comments and counts; none passed: status 1" {
    local results=$ROOT/tests/tools/results.awk
    printf '%s\n' 'ok 1 a' '# of a' 'not ok 2 b' '# of b' 'CC b.o' 'ok 3 c # skip no d' >"$DIR/tap"
    run -1 awk -f "$results" "$DIR/tap"
    assert_eq "$output" $'\nnot ok 2 b\n# of b\n\n1 passed, 1 failed, 1 skipped'
    { echo 'not ok 1 a' && seq -f '# %g' 30; } >"$DIR/tap"
    run -1 awk -f "$results" "$DIR/tap"
    assert_match "$output" "# 20.# \.\.\. 10 more lines in $DIR/tap..0 passed, 1 failed$"
    run -1 awk -f "$results" /dev/null
    assert_eq "$output" '0 passed, 0 failed'
}

@test "run_tests: a test that fails, hangs or crashes, and a program without a plan, are results" {
    unset RUN_TESTS # it is set if run_tests runs this file
    mkdir "$DIR/unit"
    cd "$DIR"
    sed 's/^%/@/' >some.bats <<'END'
%test "passes" { true; }
%test "fails" { echo why && false; }
# bats test_tags=long
%test "isn't chosen" { false; }
END
    printf 'load "%s"\n%%test "hangs" { run sh -c "echo last words; sleep 100; :"; }\n' \
        "$ROOT/tests/helpers/common" | tr % @ >hanging.bats
    printf '# bats file_tags=long\n%%test "none chosen" { false; }\n' | tr % @ >long.bats
    printf '#!/bin/sh\n%s\n' "echo '# begins: b'; kill -SEGV \$\$" >unit/crashing
    printf '#!/bin/sh\necho ok 1 - a\n' >unit/silent
    printf '#!/bin/sh\necho ok 1 - a; echo 1..1\n' >unit/good
    chmod +x unit/*
    JOBS=2 BATS_TEST_TIMEOUT=1 BATSFLAGS='--filter-tags !long' \
        run -1 "$ROOT/tests/tools/run_tests.sh" unit/* *.bats
    assert_match "$output" '# why'
    assert_match "$output" $'# timeout after 1s.* sleep 100\n.*# last words\n'
    assert_eq "$(sed -nE '/^1\.\./p; s/^((not )?ok) -/\1/p' <<<"$output" | LC_ALL=C sort)" "\
1..7
not ok crashing: ended too early: status 139; began: b
not ok hanging: hangs # timeout after 1s
not ok silent: ended too early: status 0
not ok some: fails
ok good: a
ok silent: a
ok some: passes"
}

@test "suite: a part that ends without a failed test, and a build that fails, are failed tests" {
    cd "$DIR"
    printf '%s:\n\t@%s\n' good 'echo ok 1 a' bad 'echo ok 1 b; exit 3' \
        broken 'echo no compiler; false' skipped 'echo ok 1 c' >Makefile
    run -1 "$ROOT/tests/tools/suite.sh" logs \
        'good: good &' 'bad: bad' 'build: broken' 'skipped: skipped'
    assert_match "$output" 'good +[0-9]+ s   1 passed, 0 failed'
    assert_match "$output" 'not ok - bad: make bad.*not ok - build: make broken.# no compiler'
    assert_match "$output" $'\n\n2 passed, 2 failed$'
    [[ ! -e logs/skipped.log ]]
    run -0 "$ROOT/tests/tools/suite.sh" logs 'good: good'
}
