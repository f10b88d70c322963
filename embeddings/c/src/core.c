#include "internal.h"

#include <errno.h>

#include "berth_core_sha256.h"

struct berth_core *berth_core_open(void)
{
    struct berth_core *core = calloc(1, sizeof *core);
    if (core == NULL)
        return NULL;
    /* Z_berth_core_init_module would fill statics for tables, and the core has none: instances share nothing. */
    Z_berth_core_instantiate(&core->wasm);
    if (core->wasm.w2c_memory.data == NULL) {
        free(core);
        errno = ENOMEM;
        return NULL;
    }
    if (berth_raw_abi_version(core) >> 16 != BERTH_ABI_MAJOR) {
        berth_core_close(core);
        errno = ENOTSUP;
        return NULL;
    }
    return core;
}

struct berth_core *berth_core_copy(const struct berth_core *core)
{
    struct berth_core *copy = berth_core_open();
    if (copy == NULL)
        return NULL;
    const wasm_rt_memory_t *from = &core->wasm.w2c_memory;
    wasm_rt_memory_t *to = &copy->wasm.w2c_memory;
    if (wasm_rt_grow_memory(to, from->pages - to->pages) == UINT32_MAX) {
        berth_core_close(copy);
        errno = ENOMEM;
        return NULL;
    }
    /* The call below changes nothing, and wasm2c knows no const. */
    memcpy(to->data, from->data, (size_t)berth_raw_state_bytes((struct berth_core *)core));
    return copy;
}

void berth_core_close(struct berth_core *core)
{
    if (core == NULL)
        return;
    Z_berth_core_free(&core->wasm);
    free(core);
}

void *berth_core_memory(const struct berth_core *core, uint32_t address)
{
    return core->wasm.w2c_memory.data + address;
}

const char *berth_core_sha256(void)
{
    return BERTH_CORE_SHA256;
}
