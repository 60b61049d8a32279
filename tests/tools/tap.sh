# tap: results of bash scripts as TAP: `. tests/tools/tap.sh NAME` defines
#
#     result STATUS TEXT [LOG]    prints a result of NAME; after a failure also the end of the log
#     end_of_results              prints the plan; fails if a test failed, or if there was none
#
# shellcheck shell=bash

tap_name=$1
n=0
failed=0

result() {
    n=$((n + 1))
    if (($1 == 0)); then
        echo "ok $n - $tap_name: $2"
    else
        echo "not ok $n - $tap_name: $2"
        [[ -z ${3:-} ]] || tail -n 40 "$3" | sed 's/^/# /'
        failed=$((failed + 1))
    fi
}

end_of_results() {
    echo "1..$n"
    ((n > 0 && failed == 0))
}
