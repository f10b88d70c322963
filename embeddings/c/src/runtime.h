/*
 * The runtime of the code that wasm2c writes: linear memory and traps, and nothing else, since the core has no imports and no table.
 * Stands before the generated code in place of <wasm-rt.h>, which it includes. The names are ours, so that a program may link another
 * module of wasm2c, with its own runtime, beside this one.
 */
#ifndef BERTH_RUNTIME_H
#define BERTH_RUNTIME_H

/* Every access is compared with the size of the memory: no signal handler, and 2 GiB of address space for each instance, not 8. */
#define WASM_RT_MEMCHECK_SIGNAL_HANDLER 0
/* The core calls itself nowhere; a counter of depth would be shared by all threads. */
#define WASM_RT_USE_STACK_DEPTH_COUNT 0

#define wasm_rt_allocate_memory berth_rt_allocate_memory
#define wasm_rt_free_memory berth_rt_free_memory
#define wasm_rt_grow_memory berth_rt_grow_memory
#define wasm_rt_is_initialized berth_rt_is_initialized
#define wasm_rt_register_func_type berth_rt_register_func_type
#define wasm_rt_trap berth_rt_trap

#include <wasm-rt.h>

#endif
