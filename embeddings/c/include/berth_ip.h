/*
 * Addresses, prefixes and ranges as values and as text. No core is needed for any of it.
 *
 * Functions that answer `int` give 0, or a negative status (enum berth_status, berth_strerror).
 */
#ifndef BERTH_IP_H
#define BERTH_IP_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Bytes that a text needs at most, with its end. */
enum {
    BERTH_IP_TEXT = INET6_ADDRSTRLEN,
    BERTH_PREFIX_TEXT = INET6_ADDRSTRLEN + 4,
    BERTH_RANGE_TEXT = 2 * INET6_ADDRSTRLEN,
    BERTH_SIZE_TEXT = 40,
};

/*
 * An address: `family` is AF_INET or AF_INET6 and says whether `v4` or `v6` is it. An IPv4-mapped address
 * (::ffff:10.0.0.1) is an IPv6 one, and no zone is kept.
 */
struct berth_ip {
    sa_family_t family;
    union {
        struct in_addr v4;
        struct in6_addr v6;
        uint8_t bytes[16];
    };
};

/* All addresses from `first` to `last`, both included. */
struct berth_range {
    struct berth_ip first;
    struct berth_ip last;
};

/* All addresses that share the first `length` bits with `ip`. */
struct berth_prefix {
    struct berth_ip ip;
    uint8_t length;
};

/* A number of addresses, 0 to 2^128: over * 2^128 + high * 2^64 + low. */
struct berth_size {
    uint64_t over;
    uint64_t high;
    uint64_t low;
};

/* "10.0.0.1", "fd00::1". BERTH_STATUS_BAD_ARGUMENT for any other text, one with a zone ("fe80::1%eth0") too. */
int berth_ip_parse(const char *text, struct berth_ip *ip);

/* Writes the address as text, and gives the text. */
const char *berth_ip_format(const struct berth_ip *ip, char text[BERTH_IP_TEXT]);

/*
 * The address of a socket. BERTH_STATUS_BAD_FAMILY unless it is sockaddr_in or sockaddr_in6;
 * BERTH_STATUS_BAD_ARGUMENT when it has a zone (sin6_scope_id).
 */
int berth_ip_from_sockaddr(const struct sockaddr *address, struct berth_ip *ip);

/* Fills in a sockaddr_in or sockaddr_in6 and gives its length. `port` is in the host's byte order. */
socklen_t berth_ip_to_sockaddr(const struct berth_ip *ip, in_port_t port, struct sockaddr_storage *address);

bool berth_ip_equal(const struct berth_ip *a, const struct berth_ip *b);

/* "10.0.0.0/24". Bits of the host are kept. BERTH_STATUS_BAD_ARGUMENT for any other text. */
int berth_prefix_parse(const char *text, struct berth_prefix *prefix);

const char *berth_prefix_format(const struct berth_prefix *prefix, char text[BERTH_PREFIX_TEXT]);

/*
 * "10.0.0.0-10.0.0.9", "10.0.0.0/24" or "10.0.0.1". BERTH_STATUS_BAD_ARGUMENT for any other text,
 * BERTH_STATUS_BAD_FAMILY for ends of two families, BERTH_STATUS_BAD_RANGE for an end before the start.
 */
int berth_range_parse(const char *text, struct berth_range *range);

/* "10.0.0.0-10.0.0.9", or "10.0.0.1" for a range of one address. */
const char *berth_range_format(const struct berth_range *range, char text[BERTH_RANGE_TEXT]);

/* The number in decimal. */
const char *berth_size_format(const struct berth_size *size, char text[BERTH_SIZE_TEXT]);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
