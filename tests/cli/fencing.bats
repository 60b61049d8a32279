#!/usr/bin/env bats
# fencing: the store in the manual's example refuses the writes of a former holder, after another
# holder has written with a newer lock.

load ../helpers/common
load ../helpers/server

setup() {
    server_setup
    need sqlite3 mandoc
    cd "$DIR" || return
    example 1 | sqlite3 report.db
    example 2 >publish
    # shellcheck disable=SC2016
    printf '#!/bin/sh\necho "by $RLOCK_FENCE"\n' >make-report
    chmod +x publish make-report
    sqlite3 report.db "INSERT INTO report (name) VALUES ('nightly')"
}

# example N: prints the n-th example in the manual's section about fencing, as a reader would copy
# it.
example() {
    awk -v n="$1" '/^\.Sh / { inside = $2 == "FENCES" }
        /^\.Ed/ { shown = 0 }
        shown && i == n
        inside && /^\.Bd/ { shown = 1; i++ }' "$ROOT/man/rlock-locks.7" | sed 's/^\\&//; s/\\e/\\/g'
}

stored() { sqlite3 report.db "SELECT body FROM report WHERE fence = $1"; }

@test "manual: a store that checks fences refuses a former holder once the new holder has written" {
    local old new more
    run -0 rlock -k report:nightly -- ./publish
    assert_eq "$output" ''
    hold old -k report:nightly -t 30 --on-lost ignore
    old=$(env_of old RLOCK_FENCE)
    # the lock is gone from the server, though its holder still runs
    redis_cli del report:nightly >/dev/null
    hold new -k report:nightly
    new=$(env_of new RLOCK_FENCE)
    ((old < new))
    RLOCK_FENCE=$old run -0 ./publish
    RLOCK_FENCE=$new run -0 ./publish
    RLOCK_FENCE=$old run -1 ./publish
    assert_eq "$output" 'somebody with a newer lock has written already'
    assert_eq "$(stored "$new")" "by $new"
    # With the manual's condition for a holder's later writes, an UPDATE with the old fence changes
    # no row, and one with the new fence changes the row.
    more=$(grep -oE 'WHERE fence = \$RLOCK_FENCE' "$ROOT/man/rlock-locks.7")
    for RLOCK_FENCE in "$old:0" "$new:1"; do
        assert_eq "$(sqlite3 report.db "UPDATE report SET body = 'more'
            ${more/\$RLOCK_FENCE/${RLOCK_FENCE%:*}}; SELECT changes()")" "${RLOCK_FENCE#*:}"
    done
    let_go new
}
