#!/bin/sh
# tests/cli/install.sh CMAKE BUILD CC: installs into a scratch folder and uses what is there as a
# stranger would: the program from another folder, the library through pkg-config.
set -eu
cmake=$1
build=$2
cc=$3
client=$(cd "$(dirname -- "$0")" && pwd)/client.c
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
prefix=$scratch/usr
unset FSDPSIM_DATA FSDPSIM_DB || true
export HOME="$scratch/home" XDG_DATA_HOME="$scratch/data"

fail() {
    echo "install: $*" >&2
    exit 1
}

"$cmake" --install "$build" --prefix "$prefix" >"$scratch/log" 2>&1 || {
    cat "$scratch/log"
    fail 'cmake --install failed'
}
for file in bin/fsdpsim include/fsdpsim.h share/man/man1/fsdpsim.1 \
    share/bash-completion/completions/fsdpsim share/fsdpsim/models share/fsdpsim/topologies \
    share/fsdpsim/configs/llama3-8b_dgx-h100.yaml; do
    [ -e "$prefix/$file" ] || fail "not installed: $file"
done

cd "$scratch"
program=$prefix/bin/fsdpsim
"$program" list models | grep '^llama-3.1-8b ' >/dev/null || fail 'the installed models are not found'
"$program" run llama3-8b_dgx-h100 --no-db --json >run.json || fail 'a shipped configuration fails'
"$program" run llama3-8b_dgx-h100 --quiet >run.txt || fail 'storing a run fails'
"$program" db ls | grep llama3-8b_dgx-h100 >/dev/null || fail 'the run is not in the database'
[ -e "$scratch/data/fsdpsim/fsdpsim.db" ] || fail 'the database is not in the XDG data folder'

pc=$(find "$prefix" -name fsdpsim.pc)
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH
# shellcheck disable=SC2046 # one word a flag
"$cc" -std=c11 -Wall -Wextra -Wpedantic -Werror $(pkg-config --cflags fsdpsim) -o client "$client" \
    $(pkg-config --libs fsdpsim) || fail 'the client does not compile'
libdir=$(cd "$(pkg-config --variable=libdir fsdpsim)" && pwd)
expected=$(sed -n 's/^ *"step_time_s": \([^,]*\),*$/\1/p' run.json)
# The library finds the data from where it lies itself, in each place where distributions put it.
for folder in "$libdir" "$prefix/lib" "$prefix/lib64" "$prefix/lib/x86_64-linux-gnu"; do
    mkdir -p "$folder"
    [ "$folder" = "$libdir" ] || cp -P "$libdir"/libfsdpsim.so* "$folder"
    obtained=$(LD_LIBRARY_PATH=$folder ./client) || fail "the client fails with the library in $folder"
    [ "$obtained" = "$expected" ] || fail "library: step_time_s $obtained, program: $expected"
done

# Hidden visibility: nothing but the interface shows.
if command -v nm >/dev/null; then
    others=$(nm -D --defined-only "$libdir/libfsdpsim.so.0" | awk '$3 !~ /^fsdpsim_/')
    [ -z "$others" ] || fail "the shared library shows more than its interface: $others"
fi
echo 'install: passed'
