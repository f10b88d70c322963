/* Shared parts of the library's sources: the instance, and the exchange buffer through which bytes pass. */
#ifndef BERTH_INTERNAL_H
#define BERTH_INTERNAL_H

#include "runtime.h"

#include "berth_core.h"
#include "berth_core_wasm.h"

struct berth_core {
    Z_berth_core_instance_t wasm;
};

/* Bytes of an address; 0 for what is no family. */
static inline size_t width_of(sa_family_t family)
{
    return family == AF_INET ? 4 : family == AF_INET6 ? 16 : 0;
}

/* Returns the core's number of the family; 0, which it refuses, if there is none. */
static inline int32_t number_of(sa_family_t family)
{
    return family == AF_INET ? 4 : family == AF_INET6 ? 6 : 0;
}

static inline uint8_t *memory_at(const struct berth_core *core, int32_t address)
{
    return core->wasm.w2c_memory.data + (uint32_t)address;
}

/* Makes `*buffer` the exchange buffer, with room for `count` items. It holds until the next call into the core. */
static inline int reserve(struct berth_core *core, size_t count, size_t item_bytes, uint8_t **buffer)
{
    if (count > BERTH_MAX_EXCHANGE / item_bytes)
        return BERTH_STATUS_OVER_CEILING;
    int32_t address = berth_raw_exchange(core, (int32_t)(count * item_bytes));
    if (address < 0)
        return address;
    *buffer = memory_at(core, address);
    return BERTH_STATUS_OK;
}

/* Makes room for an address: before an operation that takes one, so that it cannot be lost. */
static inline int open_exchange(struct berth_core *core)
{
    int32_t address = berth_raw_exchange(core, 16);
    return address < 0 ? address : BERTH_STATUS_OK;
}

/* The exchange buffer after a call that wrote to it. */
static inline const uint8_t *output(struct berth_core *core)
{
    return memory_at(core, berth_raw_exchange(core, 0));
}

static inline struct berth_ip read_ip(const uint8_t *bytes, sa_family_t family)
{
    struct berth_ip ip = {.family = family};
    if (family == AF_INET)
        memcpy(ip.bytes, bytes, 4);
    else
        memcpy(ip.bytes, bytes, 16);
    return ip;
}

/* Copies the address to the exchange buffer. */
static inline int pass_ip(struct berth_core *core, const struct berth_ip *ip)
{
    uint8_t *buffer;
    int status = reserve(core, 1, 16, &buffer);
    if (status == BERTH_STATUS_OK)
        memcpy(buffer, ip->bytes, ip->family == AF_INET ? 4 : 16);
    return status;
}

/* Copies packed addresses to the exchange buffer. */
static inline int pass_packed(struct berth_core *core, sa_family_t family, const void *packed, size_t count)
{
    uint8_t *buffer;
    int status = reserve(core, count, width_of(family), &buffer);
    if (status == BERTH_STATUS_OK && count > 0)
        memcpy(buffer, packed, count * width_of(family));
    return status;
}

/* Reads the 17 bytes of a number of addresses. */
struct berth_size berth_read_size(const uint8_t *bytes);

/* Makes a set of what an operation of the core answered: its handle, or a status. */
int berth_adopt_set(struct berth_core *core, sa_family_t family, int32_t handle, struct berth_set *set);

#endif
