# shellcheck shell=sh
# How scripts/test runs tests: what fails is run once more, and what passes only then is named at the end. Sourced, never run.

: "${python:?the caller sets it to the interpreter of the tests}"
seen_failing=$(mktemp)
still_failing=$(mktemp)
second_tries=$(mktemp)
trap 'tell_second_tries; rm -f "$seen_failing" "$still_failing" "$second_tries"' EXIT

# try_tests MARK [OPTION...]: the tests of a mark. What fails may have had too little of a busy machine: it is run once
# more, one test at a time, and that run decides. The first one's report stays above it.
try_tests() {
    mark=$1
    shift
    "$python" -m pytest -m "$mark" "$@" && return 0
    code=$?
    [ $code -eq 1 ] || exit $code
    printf 'muniment: what failed is run once more, one test at a time\n' >&2
    last_failed >"$seen_failing"
    code=0
    "$python" -m pytest -m "$mark" --last-failed --last-failed-no-failures none || code=$?
    last_failed >"$still_failing"
    grep -vxF -f "$still_failing" "$seen_failing" >>"$second_tries" || true
    return $code
}

# The names of all tests that failed when they were run last.
last_failed() {
    "$python" -c 'import json, sys; sys.stdout.writelines(f"{name}\n" for name in sorted(json.load(sys.stdin)))' \
        <.pytest_cache/v/cache/lastfailed
}

tell_second_tries() {
    [ -s "$second_tries" ] || return 0
    names=$(sed '2,$s/^/, /' "$second_tries" | tr -d '\n')
    printf 'muniment: %s passed only on the second try: %s\n' "$(wc -l <"$second_tries")" "$names" >&2
}
