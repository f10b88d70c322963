/*
 * The runtime of the code that wasm2c writes: linear memory and traps, and nothing else, since the core has no
 * imports and no table. Stands before the generated code and includes wabt's header. The names are ours, so that a
 * program may link another module of wasm2c, with its own runtime, beside this one.
 */
#ifndef BERTH_RUNTIME_H
#define BERTH_RUNTIME_H

#include <stdint.h>

/*
 * An address of the core is at most 2^32 - 1 plus a constant below 2^32. On hosts of 64 bits an instance reserves all
 * 8 GiB of address space, of which it may touch its memory only: an access outside ends the process (SIGSEGV), and
 * accesses cost nothing more. Elsewhere, or with BERTH_COMPARE, each access is compared with the size of the memory.
 */
#if UINTPTR_MAX > UINT32_MAX && !defined(BERTH_COMPARE)
#define WASM_RT_MEMCHECK_SIGNAL_HANDLER 1
#else
#define WASM_RT_MEMCHECK_SIGNAL_HANDLER 0
#endif
/* A library has no business with the program's signals. */
#define WASM_RT_SKIP_SIGNAL_RECOVERY 1
/* The core does not call itself; a counter of depth would be shared by all threads. */
#define WASM_RT_USE_STACK_DEPTH_COUNT 0

#define wasm_rt_allocate_memory berth_rt_allocate_memory
#define wasm_rt_free_memory berth_rt_free_memory
#define wasm_rt_grow_memory berth_rt_grow_memory
#define wasm_rt_register_func_type berth_rt_register_func_type
#define wasm_rt_trap berth_rt_trap

#include <wasm-rt.h>

#endif
