#include "runtime.h"

#include <stdio.h>
#include <sys/mman.h>

#define PAGE_BYTES ((size_t)65536)

/* Address space of an instance: see runtime.h. */
static size_t reserved_bytes(const wasm_rt_memory_t *memory)
{
#if WASM_RT_MEMCHECK_SIGNAL_HANDLER
    (void)memory;
    return (size_t)1 << 33;
#else
    return memory->max_pages * PAGE_BYTES;
#endif
}

/* Reserves address space once, so that growing never moves the memory. `data` is NULL when there is no room. */
void wasm_rt_allocate_memory(wasm_rt_memory_t *memory, uint32_t initial_pages, uint32_t max_pages)
{
    *memory = (wasm_rt_memory_t){.max_pages = max_pages};
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *data = mmap(NULL, reserved_bytes(memory), PROT_NONE, flags, -1, 0);
    if (data == MAP_FAILED)
        return;
    memory->data = data;
    if (wasm_rt_grow_memory(memory, initial_pages) == UINT32_MAX)
        wasm_rt_free_memory(memory);
}

uint32_t wasm_rt_grow_memory(wasm_rt_memory_t *memory, uint32_t delta)
{
    uint32_t pages = memory->pages;
    if (delta > memory->max_pages - pages)
        return UINT32_MAX;
    if (delta > 0 && mprotect(memory->data + memory->size, delta * PAGE_BYTES, PROT_READ | PROT_WRITE) != 0)
        return UINT32_MAX;
    memory->pages += delta;
    memory->size = (uint32_t)(memory->pages * PAGE_BYTES);
    return pages;
}

void wasm_rt_free_memory(wasm_rt_memory_t *memory)
{
    if (memory->data != NULL)
        munmap(memory->data, reserved_bytes(memory));
    memory->data = NULL;
}

/*
 * By its contract the core never traps: after a bug of the core its memory is not to be trusted, so the process ends.
 */
void wasm_rt_trap(wasm_rt_trap_t trap)
{
    fprintf(stderr, "berth_core: trap %d in the core, which is a bug of it\n", (int)trap);
    abort();
}

/* Types of functions matter for tables only; nothing calls this. */
uint32_t wasm_rt_register_func_type(uint32_t params, uint32_t results, ...)
{
    (void)params;
    (void)results;
    return 0;
}
