/*
 * Preloaded into ip and nft by record.ts: writes every netlink datagram that they send or receive to file descriptor 9,
 * one line each: `>` or `<`, a blank, hexadecimal digits.
 * Effects: wraps sendmsg, sendto, send, recvmsg and recvfrom.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/uio.h>

static int is_netlink(int fd) {
    int domain = 0;
    socklen_t length = sizeof domain;
    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 && domain == AF_NETLINK;
}

static void begin(char direction) {
    dprintf(9, "%c ", direction);
}

static void show(const unsigned char *bytes, size_t length) {
    for (size_t i = 0; i < length; i++) dprintf(9, "%02x", bytes[i]);
}

static void show_message(const struct msghdr *message, char direction, size_t left) {
    begin(direction);
    for (size_t i = 0; i < message->msg_iovlen && left > 0; i++) {
        size_t length = message->msg_iov[i].iov_len < left ? message->msg_iov[i].iov_len : left;
        show(message->msg_iov[i].iov_base, length);
        left -= length;
    }
    dprintf(9, "\n");
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
    ssize_t (*real)(int, const struct msghdr *, int) = dlsym(RTLD_NEXT, "sendmsg");
    if (is_netlink(fd)) show_message(message, '>', (size_t)-1);
    return real(fd, message, flags);
}

ssize_t sendto(int fd, const void *bytes, size_t length, int flags, const struct sockaddr *to, socklen_t size) {
    ssize_t (*real)(int, const void *, size_t, int, const struct sockaddr *, socklen_t) = dlsym(RTLD_NEXT, "sendto");
    if (is_netlink(fd)) begin('>'), show(bytes, length), dprintf(9, "\n");
    return real(fd, bytes, length, flags, to, size);
}

ssize_t send(int fd, const void *bytes, size_t length, int flags) {
    return sendto(fd, bytes, length, flags, NULL, 0);
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags) {
    ssize_t (*real)(int, struct msghdr *, int) = dlsym(RTLD_NEXT, "recvmsg");
    ssize_t length = real(fd, message, flags);
    if (length > 0 && is_netlink(fd) && (flags & MSG_PEEK) == 0) show_message(message, '<', (size_t)length);
    return length;
}
