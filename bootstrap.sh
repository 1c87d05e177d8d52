#!/bin/sh
# Sets fsdpsim up from a fresh clone: installs what is missing, builds, tests, shows what it does.
# Safe to repeat; quick when there is nothing to do. `./bootstrap.sh help` says the verbs.
set -eu
unset CDPATH
cd -- "$(dirname -- "$0")"

say() { printf 'bootstrap: %s\n' "$*" >&2; }

usage() {
    cat <<'TEXT'
usage: ./bootstrap.sh VERB

  demo    simulate Llama-3.1-8B on three clusters, print them side by side, store the runs
  test    build and run the tests
  build   build the program: build/release/sim/cli/fsdpsim
  clean   remove the build folder
  help    this text

Every verb but clean and help first installs what is missing (on Debian and Ubuntu, with apt).
TEXT
}

# Names the Debian package of each thing that is not there, one a line.
missing_packages() {
    if ! printf '#include <stdio.h>\n' | cc -E - >/dev/null 2>&1; then
        echo gcc
        echo libc6-dev
    fi
    command -v cmake >/dev/null || echo cmake
    command -v ninja >/dev/null || echo ninja-build
    command -v pkg-config >/dev/null || echo pkg-config
    pkg-config --exists gsl 2>/dev/null || echo libgsl-dev
    pkg-config --exists yaml-0.1 2>/dev/null || echo libyaml-dev
    pkg-config --exists sqlite3 2>/dev/null || echo libsqlite3-dev
    pkg-config --exists expat 2>/dev/null || echo libexpat1-dev
    pkg-config --exists zlib 2>/dev/null || echo zlib1g-dev
    printf '#include <CUnit/CUnit.h>\n' | cc -E - >/dev/null 2>&1 || echo libcunit1-dev
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    else
        sudo "$@"
    fi
}

install_missing() {
    packages=$(missing_packages | tr '\n' ' ')
    [ -n "$packages" ] || return 0
    if ! command -v apt-get >/dev/null; then
        say "missing (Debian names): $packages"
        say "there is no apt-get here: install them with your package manager, then run this again"
        exit 1
    fi
    if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
        say "missing: $packages"
        say "neither root nor sudo here; as root: apt-get install $packages"
        exit 1
    fi
    say "installing with apt-get: $packages"
    as_root apt-get update -qq || say "apt-get update failed; trying with the lists that are there"
    # shellcheck disable=SC2086 # one word a package
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        $packages >&2
}

build() {
    install_missing
    cache=build/release/CMakeCache.txt
    # A clone that was moved or copied: cmake refuses the old cache.
    if [ -f "$cache" ] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$(pwd -P)" "$cache"; then
        rm -rf build/release
    fi
    if [ ! -f build/release/build.ninja ]; then
        say "configuring build/release"
        cmake --preset release --log-level=WARNING >&2
    fi
    cmake --build --preset release >&2
}

demo() {
    build
    build/release/sim/cli/fsdpsim run \
        configs/llama3-8b_dgx-h100.yaml@nodes=1 \
        configs/llama3-8b_dgx-h100.yaml@nodes=4 \
        configs/llama3-8b_dgx-h100-25gbe.yaml@nodes=4
}

run_tests() {
    build
    ctest --preset release
}

case ${1-help} in
demo) demo ;;
test) run_tests ;;
build) build ;;
clean) rm -rf build ;;
help | -h | --help) usage ;;
*)
    say "unknown verb '$1'"
    usage >&2
    exit 2
    ;;
esac
