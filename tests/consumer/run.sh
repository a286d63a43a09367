#!/usr/bin/env bash
# usage: tests/consumer/run.sh [static] [shared]     (default: both)
#
# Builds the sample consumer as others would: against an installed library whose prefix was moved
# afterwards, by find_package and by pkg-config; from the sources by add_subdirectory and by
# FetchContent with no network. Also: installed files name no folder of the build, and versions
# that do not fit are refused. The first failure stops with status 1.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source_dir=$(cd "$here/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CMAKE_GENERATOR=Ninja
# Where the library is built from its sources again, it is the way there that is checked, not what
# the optimiser makes of it.
plainly=(-DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0)

say() { printf 'consumer: %s\n' "$*"; }
fail() {
    printf 'consumer: %s\n' "$*" >&2
    exit 1
}

# quietly COMMAND...: its output only if it fails.
quietly() {
    "$@" >"$work/log" 2>&1 </dev/null || {
        cat "$work/log" >&2
        fail "failed: $*"
    }
}

# The sum of w w has the gradient with rows (row sums of w + column sums of w).
check_output() {
    local output numbers
    output=$("$@") || fail "does not run: $*"
    numbers=$(tail -n +2 <<<"$output" | tr -cs '0-9.' ' ' | sed 's/\.0*\( \|$\)/\1/g; s/^ *//; s/ *$//')
    [[ $output == "glassgrad 0.1."* && $numbers == "7 11 9 13" ]] ||
        fail "unexpected output of $*: $output"
}

# consume NAME CMAKE_ARGUMENTS...: configures, builds and runs the consumer.
consume() {
    local name=$1
    shift
    quietly cmake -S "$here" -B "$work/$name" -DCMAKE_BUILD_TYPE=Release "$@"
    quietly cmake --build "$work/$name"
    check_output "$work/$name/consumer"
    say "$name: ok"
}

# build_static: prints a folder with the static library; build/release, if it is there.
build_static() {
    local build=$source_dir/build/release
    if [[ ! -f $build/libglassgrad.a ]]; then
        build=$work/static-build
        quietly cmake -S "$source_dir" -B "$build" "${plainly[@]}" \
            -DGLASSGRAD_BUILD_TESTS=OFF -DGLASSGRAD_BUILD_BENCH=OFF \
            -DGLASSGRAD_BUILD_EXAMPLES=OFF -DGLASSGRAD_BUILD_TOOLS=OFF
        quietly cmake --build "$build"
    fi
    echo "$build"
}

# install_from KIND BUILD: installs into $work/KIND/moved, by way of another prefix.
install_from() {
    local kind=$1 build=$2
    quietly cmake --install "$build" --prefix "$work/$kind/first"
    mv "$work/$kind/first" "$work/$kind/moved"
    ! grep -rIl -e "$work" -e "$source_dir" -e "${build:?}" "$work/$kind/moved" \
        --include='*.cmake' --include='*.pc' --include='*.hpp' --include='*.json' ||
        fail "installed files name folders of the build"
}

# A request for the version $1 must be refused.
refuse() {
    mkdir -p "$work/refuse-$1"
    cat >"$work/refuse-$1/CMakeLists.txt" <<TEXT
cmake_minimum_required(VERSION 3.25)
project(refuse LANGUAGES CXX)
find_package(glassgrad $1 QUIET)
if(glassgrad_FOUND)
    message(FATAL_ERROR "version $1 was accepted")
endif()
TEXT
    quietly cmake -S "$work/refuse-$1" -B "$work/refuse-$1/build" -DCMAKE_PREFIX_PATH="$2"
}

# pkg_config_build NAME PREFIX PC_FOLDER: the consumer with a compiler and pkg-config alone.
pkg_config_build() {
    local name=$1 prefix=$2 folder=$3 flags
    flags=$(PKG_CONFIG_PATH=$folder pkg-config --cflags --libs glassgrad) ||
        fail "pkg-config does not know glassgrad"
    # shellcheck disable=SC2086
    quietly g++ -std=c++20 "$here/main.cpp" -o "$work/$name" $flags -Wl,-rpath,"$(dirname "$folder")"
    check_output "$work/$name"
    say "$name: ok"
}

check_installed() {
    local kind=$1 prefix=$work/$1/moved pc
    pc=$(dirname "$(find "$prefix" -name glassgrad.pc)")
    consume "$kind-find_package" -DCMAKE_PREFIX_PATH="$prefix"
    pkg_config_build "$kind-pkg-config" "$prefix" "$pc"
    if [[ -x $prefix/bin/glassgrad ]]; then
        quietly "$prefix/bin/glassgrad" --help
        for page in man/man1/glassgrad.1 bash-completion/completions/glassgrad \
            zsh/site-functions/_glassgrad fish/vendor_completions.d/glassgrad.fish; do
            grep -q train "$prefix/share/$page" || fail "$page is not installed"
        done
        say "$kind-command: ok"
    fi
}

check_static() {
    local built
    built=$(build_static)
    install_from static "$built"
    check_installed static
    refuse 0.2 "$work/static/moved"
    refuse 0.1.99 "$work/static/moved"
    refuse 1.0 "$work/static/moved"
    say "static-versions: ok"

    # The same package where libraries lie one folder deeper: the way up from glassgrad.pc differs.
    local deep=$work/deep
    quietly cmake -S "$source_dir" -B "$deep/build" -DCMAKE_INSTALL_LIBDIR=lib/x86_64-linux-gnu \
        -DCMAKE_BUILD_TYPE=Release -DGLASSGRAD_BUILD_TESTS=OFF -DGLASSGRAD_BUILD_BENCH=OFF \
        -DGLASSGRAD_BUILD_EXAMPLES=OFF -DGLASSGRAD_BUILD_TOOLS=OFF
    PKG_CONFIG_PATH=$deep/build/package pkg-config --variable=prefix glassgrad |
        grep -q '/\.\./\.\./\.\./*$' || fail "glassgrad.pc: wrong way up from lib/x86_64-linux-gnu"
    say "static-multiarch: ok"

    if [[ -f $work/static/moved/include/glassgrad/tensor/xtensor.hpp ]]; then
        consume static-xtensor -DCONSUMER_XTENSOR=ON -DCMAKE_PREFIX_PATH="$work/static/moved"
        "$work/static-xtensor/xtensor_consumer" >/dev/null || fail "the xtensor consumer failed"
    fi
    # FetchContent, below, builds by the same way.
    quietly cmake -S "$here" -B "$work/subdirectory" "${plainly[@]}" -DCONSUMER_USES=subdirectory \
        -DCONSUMER_GLASSGRAD_DIR="$source_dir"
    say "static-add_subdirectory: ok"
}

check_shared() {
    # What FetchContent has built is installed and used as a package then.
    consume shared-fetchcontent "${plainly[@]}" -DCONSUMER_USES=fetch -DBUILD_SHARED_LIBS=ON \
        -DGLASSGRAD_INSTALL=ON -DGLASSGRAD_BUILD_TOOLS=ON \
        -DFETCHCONTENT_FULLY_DISCONNECTED=ON -DFETCHCONTENT_SOURCE_DIR_GLASSGRAD="$source_dir"
    install_from shared "$work/shared-fetchcontent"
    check_installed shared
}

(($#)) || set -- static shared
for kind in "$@"; do
    case $kind in
        static | shared) "check_$kind" ;;
        *) fail "no kind '$kind'; there are static and shared" ;;
    esac
done
