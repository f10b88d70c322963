#include "internal.h"

/* The address that a call left in the exchange buffer; or the call's status. */
static int take_ip(struct berth_core *core, sa_family_t family, int32_t status, struct berth_ip *ip)
{
    if (status < 0)
        return status;
    *ip = read_ip(output(core), family);
    return BERTH_STATUS_OK;
}

/* The same as a prefix: 1, or 0 when the call found `none`. */
static int take_prefix(struct berth_core *core, sa_family_t family, int length, int32_t status, int32_t none,
                       struct berth_prefix *prefix)
{
    if (status < 0)
        return status == none ? 0 : status;
    *prefix = (struct berth_prefix){read_ip(output(core), family), (uint8_t)length};
    return 1;
}

int berth_prefix_first(struct berth_core *core, const struct berth_prefix *prefix, struct berth_ip *first)
{
    sa_family_t family = prefix->ip.family;
    int status = pass_ip(core, &prefix->ip);
    if (status < 0)
        return status;
    return take_ip(core, family, berth_raw_prefix_first(core, number_of(family), prefix->length), first);
}

int berth_prefix_last(struct berth_core *core, const struct berth_prefix *prefix, struct berth_ip *last)
{
    sa_family_t family = prefix->ip.family;
    int status = pass_ip(core, &prefix->ip);
    if (status < 0)
        return status;
    return take_ip(core, family, berth_raw_prefix_last(core, number_of(family), prefix->length), last);
}

int berth_prefix_mask(struct berth_core *core, sa_family_t family, int length, struct berth_ip *mask)
{
    int status = open_exchange(core);
    if (status < 0)
        return status;
    return take_ip(core, family, berth_raw_prefix_mask(core, number_of(family), length), mask);
}

int berth_prefix_next(struct berth_core *core, const struct berth_prefix *prefix, struct berth_prefix *next)
{
    sa_family_t family = prefix->ip.family;
    int status = pass_ip(core, &prefix->ip);
    if (status < 0)
        return status;
    int32_t found = berth_raw_prefix_next(core, number_of(family), prefix->length);
    return take_prefix(core, family, prefix->length, found, BERTH_STATUS_NONE, next);
}

int berth_prefix_part(struct berth_core *core, const struct berth_prefix *prefix, int length, uint32_t index,
                      struct berth_prefix *part)
{
    sa_family_t family = prefix->ip.family;
    int status = pass_ip(core, &prefix->ip);
    if (status < 0)
        return status;
    int32_t found = berth_raw_prefix_part(core, number_of(family), prefix->length, length, index);
    return take_prefix(core, family, length, found, BERTH_STATUS_OUTSIDE, part);
}

int berth_prefix_common(struct berth_core *core, const struct berth_ip *a, const struct berth_ip *b,
                        struct berth_prefix *common)
{
    sa_family_t family = a->family;
    size_t width = width_of(family);
    if (b->family != family)
        return BERTH_STATUS_BAD_FAMILY;
    uint8_t *buffer;
    int status = reserve(core, 2, 16, &buffer);
    if (status < 0)
        return status;
    memcpy(buffer, a->bytes, width);
    memcpy(buffer + width, b->bytes, width);
    int32_t length = berth_raw_prefix_common(core, number_of(family));
    if (length < 0)
        return length;
    struct berth_prefix found = {*a, (uint8_t)length};
    status = berth_prefix_first(core, &found, &found.ip);
    if (status == BERTH_STATUS_OK)
        *common = found;
    return status;
}
