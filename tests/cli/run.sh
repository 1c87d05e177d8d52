#!/bin/sh
# tests/cli/run.sh PROGRAM [--accept] [CASE...]: runs the command-line cases, all or those named.
#
# A case is a folder cases/NAME:
#   cmd           shell commands; `fsdpsim` is the program; run in a scratch copy of the folder
#   stdout.exact  what they print; absent: not compared, but it must be empty when they fail
#   stderr.exact  the same for messages
#   exit          the exit code (absent: 0)
#
# --accept writes what was obtained instead of comparing it: then read the diff before committing.
set -eu
unset CDPATH
program=$(cd "$(dirname -- "$1")" && pwd)/$(basename -- "$1")
here=$(cd "$(dirname -- "$0")" && pwd)
shift
accept=no
if [ "${1-}" = --accept ]; then
    accept=yes
    shift
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
mkdir "$work/bin"
ln -s "$program" "$work/bin/fsdpsim"

# Nothing of the caller's surroundings may show.
export PATH="$work/bin:$PATH" LC_ALL=C TERM=dumb HOME="$work/home"
unset FSDPSIM_DB XDG_DATA_HOME XDG_CONFIG_HOME NO_COLOR || true
FSDPSIM_DATA=$(cd "$here/../.." && pwd)
export FSDPSIM_DATA

passed=0
failed=0

complain() {
    echo "--- cli case '$name': $1"
    failed_now=yes
}

accept_text() { # FILE OBTAINED
    if [ -s "$2" ] || [ -e "$1" ]; then
        cp "$2" "$1"
    fi
}

compare_text() { # WHAT EXPECTED OBTAINED CODE
    if [ -e "$2" ]; then
        diff -u "$2" "$3" >"$work/diff" || {
            complain "$1 differs (-expected +obtained)"
            cat "$work/diff"
        }
    elif [ "$1" = stdout ] && [ "$4" -ne 0 ] && [ -s "$3" ]; then
        complain "stdout should be empty when the exit code is $4"
        cat "$3"
    fi
}

run_case() {
    case_folder=$here/cases/$name
    scratch=$work/$name
    expected_code=0
    [ ! -e "$case_folder/exit" ] || read -r expected_code <"$case_folder/exit"
    mkdir "$scratch"
    cp -R "$case_folder/." "$scratch"
    rm -f "$scratch/stdout.exact" "$scratch/stderr.exact" "$scratch/exit"
    mkdir -p "$HOME"
    code=0
    (cd "$scratch" && sh ./cmd) >"$work/stdout" 2>"$work/stderr" </dev/null || code=$?
    if [ "$accept" = yes ]; then
        accept_text "$case_folder/stdout.exact" "$work/stdout"
        accept_text "$case_folder/stderr.exact" "$work/stderr"
        rm -f "$case_folder/exit"
        [ "$code" -eq 0 ] || echo "$code" >"$case_folder/exit"
        return
    fi
    failed_now=no
    [ "$code" -eq "$expected_code" ] || {
        complain "expected exit $expected_code, obtained $code"
        cat "$work/stderr"
    }
    compare_text stdout "$case_folder/stdout.exact" "$work/stdout" "$code"
    compare_text stderr "$case_folder/stderr.exact" "$work/stderr" "$code"
    if [ "$failed_now" = yes ]; then
        failed=$((failed + 1))
    else
        passed=$((passed + 1))
    fi
    # A case's leftovers are not another's surroundings.
    rm -rf "$scratch" "$HOME"
}

if [ $# -gt 0 ]; then
    for name in "$@"; do run_case; done
else
    for folder in "$here"/cases/*/; do
        name=$(basename -- "$folder")
        run_case
    done
fi
[ "$accept" = no ] || exit 0
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
