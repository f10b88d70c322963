/*
 * Any calls of the core in any order, for libFuzzer: the core's debug build as C (wasm2c), with its assertions. A call
 * gives a status that the ABI names for it, never a trap, and never touches a pool whose handle it was not given.
 *
 *   input     (export ┼ arguments …)*    export: one byte, the place in assembly/abi.json; or
 *             (0xff ┼ length ┼ bytes …)  bytes for the exchange buffer
 *   argument  00-1f  a handle that a call returned      20-bf  0 to 159
 *             c0-fe  2^n, or 2^n - 1                    ff     the next four bytes
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "berth_core_wasm.h"

#define MOST_CALLS 64
#define MOST_HANDLES 32

static Z_berth_core_instance_t core;

/* `call`, `describe` and EXPORTS: from assembly/abi.json. */
#include "calls.h"

struct input {
    const u8 *at, *end;
};

static void require(bool promise) {
    if (!promise) abort();
}

static u8 take(struct input *input) {
    return input->at < input->end ? *input->at++ : 0;
}

static u8 *exchange(u32 length) {
    s32 at = (s32)Z_berth_coreZ_exchange(&core, length);
    require(at >= 0);
    return core.w2c_memory.data + at;
}

static u32 take_argument(struct input *input, const u32 *handles, size_t count, u32 hidden) {
    u8 byte = take(input);
    u32 value = 0;
    if (byte < 0x20) return count > 0 ? handles[byte % count] : 0;
    if (byte < 0xc0) return byte - 0x20u;
    if (byte < 0xff) value = ((u32)1 << (byte & 31)) - (byte >> 5 & 1);
    else for (int i = 0; i < 4; i++) value = value << 8 | take(input);
    return value == hidden ? 0 : value;
}

/* A pool of 10.0.0.0-10.0.0.255 with an address in use. */
static u32 make_pool(void) {
    static const u8 range[] = {10, 0, 0, 0, 10, 0, 0, 255};
    memcpy(exchange(sizeof range), range, sizeof range);
    u32 ranges = Z_berth_coreZ_set_create(&core, 4, 1);
    u32 pool = Z_berth_coreZ_pool_create(&core, ranges, Z_berth_coreZ_set_create(&core, 4, 0));
    require((s32)pool > 0 && Z_berth_coreZ_pool_claim_at(&core, pool, 7) == 1);
    return pool;
}

int LLVMFuzzerTestOneInput(const u8 *bytes, size_t length) {
    u8 before[512];
    u32 handles[MOST_HANDLES], arguments[8];
    size_t count = 0;
    Z_berth_core_instantiate(&core);
    u32 hidden = make_pool();
    s32 saved = (s32)Z_berth_coreZ_pool_save(&core, hidden);
    require(saved > 0 && saved <= (s32)sizeof before);
    memcpy(before, exchange(0), (size_t)saved);
    struct input input = {bytes, bytes + length};
    for (int calls = 0; calls < MOST_CALLS && input.at < input.end; calls++) {
        u8 which = take(&input);
        if (which == 0xff) {
            u8 some = take(&input);
            u8 *buffer = exchange(some);
            for (u8 i = 0; i < some; i++) buffer[i] = take(&input);
            continue;
        }
        struct description described = describe(which);
        for (int i = 0; i < described.parameters; i++) arguments[i] = take_argument(&input, handles, count, hidden);
        s32 result = (s32)call(which, arguments);
        if (result < 0) require(result > -32 && (described.statuses >> -result & 1));
        else if (result > 0 && described.makes && count < MOST_HANDLES) handles[count++] = (u32)result;
    }
    require((s32)Z_berth_coreZ_pool_save(&core, hidden) == saved && memcmp(before, exchange(0), (size_t)saved) == 0);
    Z_berth_core_free(&core);
    return 0;
}
