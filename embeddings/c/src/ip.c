#include "internal.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int berth_ip_parse(const char *text, struct berth_ip *ip)
{
    struct berth_ip found = {.family = strchr(text, ':') == NULL ? AF_INET : AF_INET6};
    if (inet_pton(found.family, text, found.bytes) != 1)
        return BERTH_STATUS_BAD_ARGUMENT;
    *ip = found;
    return BERTH_STATUS_OK;
}

const char *berth_ip_format(const struct berth_ip *ip, char text[BERTH_IP_TEXT])
{
    if (inet_ntop(ip->family, ip->bytes, text, BERTH_IP_TEXT) == NULL)
        text[0] = '\0';
    return text;
}

int berth_ip_from_sockaddr(const struct sockaddr *address, struct berth_ip *ip)
{
    if (address->sa_family == AF_INET) {
        struct sockaddr_in socket;
        memcpy(&socket, address, sizeof socket);
        *ip = (struct berth_ip){.family = AF_INET, .v4 = socket.sin_addr};
        return BERTH_STATUS_OK;
    }
    if (address->sa_family != AF_INET6)
        return BERTH_STATUS_BAD_FAMILY;
    struct sockaddr_in6 socket;
    memcpy(&socket, address, sizeof socket);
    if (socket.sin6_scope_id != 0)
        return BERTH_STATUS_BAD_ARGUMENT;
    *ip = (struct berth_ip){.family = AF_INET6, .v6 = socket.sin6_addr};
    return BERTH_STATUS_OK;
}

socklen_t berth_ip_to_sockaddr(const struct berth_ip *ip, in_port_t port, struct sockaddr_storage *address)
{
    memset(address, 0, sizeof *address);
    if (ip->family == AF_INET) {
        struct sockaddr_in socket = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = ip->v4};
        memcpy(address, &socket, sizeof socket);
        return sizeof socket;
    }
    struct sockaddr_in6 socket = {.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = ip->v6};
    memcpy(address, &socket, sizeof socket);
    return sizeof socket;
}

bool berth_ip_equal(const struct berth_ip *a, const struct berth_ip *b)
{
    return a->family == b->family && memcmp(a->bytes, b->bytes, width_of(a->family)) == 0;
}

/* Copies the text before `end` where inet_pton finds it ended; false when it is too long for an address. */
static bool cut(const char *text, const char *end, char head[BERTH_IP_TEXT])
{
    size_t length = (size_t)(end - text);
    if (length >= BERTH_IP_TEXT)
        return false;
    memcpy(head, text, length);
    head[length] = '\0';
    return true;
}

/* A decimal number without sign, blank or leading zero; -1 for any other text, and above `most`. */
static int parse_length(const char *text, int most)
{
    if (text[0] < '0' || text[0] > '9' || (text[0] == '0' && text[1] != '\0'))
        return -1;
    char *end;
    long length = strtol(text, &end, 10);
    return *end == '\0' && length <= most ? (int)length : -1;
}

int berth_prefix_parse(const char *text, struct berth_prefix *prefix)
{
    char head[BERTH_IP_TEXT];
    struct berth_prefix found;
    const char *slash = strchr(text, '/');
    if (slash == NULL || !cut(text, slash, head) || berth_ip_parse(head, &found.ip) < 0)
        return BERTH_STATUS_BAD_ARGUMENT;
    int length = parse_length(slash + 1, 8 * (int)width_of(found.ip.family));
    if (length < 0)
        return BERTH_STATUS_BAD_ARGUMENT;
    found.length = (uint8_t)length;
    *prefix = found;
    return BERTH_STATUS_OK;
}

const char *berth_prefix_format(const struct berth_prefix *prefix, char text[BERTH_PREFIX_TEXT])
{
    char ip[BERTH_IP_TEXT];
    snprintf(text, BERTH_PREFIX_TEXT, "%s/%" PRIu8, berth_ip_format(&prefix->ip, ip), prefix->length);
    return text;
}

static struct berth_range range_of(const struct berth_prefix *prefix)
{
    struct berth_range range = {prefix->ip, prefix->ip};
    for (size_t bit = prefix->length; bit < 8 * width_of(prefix->ip.family); bit++) {
        uint8_t place = (uint8_t)(0x80 >> bit % 8);
        range.first.bytes[bit / 8] &= (uint8_t)~place;
        range.last.bytes[bit / 8] |= place;
    }
    return range;
}

int berth_range_parse(const char *text, struct berth_range *range)
{
    struct berth_prefix prefix;
    if (berth_prefix_parse(text, &prefix) == BERTH_STATUS_OK) {
        *range = range_of(&prefix);
        return BERTH_STATUS_OK;
    }
    char head[BERTH_IP_TEXT];
    struct berth_range found;
    const char *dash = strchr(text, '-');
    if (!cut(text, dash == NULL ? text + strlen(text) : dash, head) || berth_ip_parse(head, &found.first) < 0)
        return BERTH_STATUS_BAD_ARGUMENT;
    if (berth_ip_parse(dash == NULL ? head : dash + 1, &found.last) < 0)
        return BERTH_STATUS_BAD_ARGUMENT;
    if (found.first.family != found.last.family)
        return BERTH_STATUS_BAD_FAMILY;
    if (memcmp(found.first.bytes, found.last.bytes, width_of(found.first.family)) > 0)
        return BERTH_STATUS_BAD_RANGE;
    *range = found;
    return BERTH_STATUS_OK;
}

const char *berth_range_format(const struct berth_range *range, char text[BERTH_RANGE_TEXT])
{
    char first[BERTH_IP_TEXT];
    char last[BERTH_IP_TEXT];
    if (berth_ip_equal(&range->first, &range->last))
        return berth_ip_format(&range->first, text);
    snprintf(text, BERTH_RANGE_TEXT, "%s-%s", berth_ip_format(&range->first, first), berth_ip_format(&range->last, last));
    return text;
}

const char *berth_size_format(const struct berth_size *size, char text[BERTH_SIZE_TEXT])
{
    uint32_t words[] = {
        (uint32_t)size->over,
        (uint32_t)(size->high >> 32),
        (uint32_t)size->high,
        (uint32_t)(size->low >> 32),
        (uint32_t)size->low,
    };
    char digits[BERTH_SIZE_TEXT];
    char *digit = &digits[BERTH_SIZE_TEXT - 1];
    *digit = '\0';
    uint32_t left;
    do {
        uint64_t rest = 0;
        left = 0;
        for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
            rest = rest << 32 | words[i];
            words[i] = (uint32_t)(rest / 10);
            rest %= 10;
            left |= words[i];
        }
        *--digit = (char)('0' + rest);
    } while (left != 0);
    return strcpy(text, digit);
}
