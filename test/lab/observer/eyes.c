/* Reads a segment five times a second: the MACs that answer for addresses, by ARP and NDP, and the addresses of NICs
 * in network namespaces, by rtnetlink. It decides nothing.
 *
 *   nsenter --net=SEGMENT eyes LINK IPV4 IPV6      the questions' senders, and the link that they leave by
 *
 * stdin, one order a line; its end is the end:
 *   range FIRST LAST       addresses to ask in turn, SHARE of all ranges in each round
 *   record ADDRESS         to ask in each round, like recent answerers
 *   forget ADDRESS
 *   netns LABEL GLOB       namespaces to read, called LABEL/file name; another glob of the label replaces it
 *
 * stdout, one line a round, times of CLOCK_MONOTONIC in milliseconds:
 *   {"atMs":1,"cpuMs":1,"nics":[[NAME,LINK,MAC,ADDRESS,IS_UP]],"asked":[ADDRESS],"answers":[[ADDRESS,MAC]]}
 *   once for each address of a NIC; a NIC without one has an empty ADDRESS
 *
 * Namespaces are left again at once: a socket that stayed open would keep one alive. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/if_packet.h>
#include <linux/rtnetlink.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    ROUND_MS = 200,
    /* Addresses of a round: each one of a /24 has its turn in two seconds. */
    SHARE = 26,
    /* For so long after its last answer an address is asked in each round. */
    LATELY_MS = 3000,
    MAX_HOT = 8192,
    MAX_RANGES = 64,
    MAX_GLOBS = 64,
    LINKS_OF_ONE = 512,
    OUTPUT_BYTES = 4 << 20,
    PIPE_BYTES = 1 << 20,
};

/* IPv4 as ::ffff:a.b.c.d, so that both families are sixteen bytes. */
typedef struct in6_addr Address;

static struct {
    Address address;
    int is_recorded;
    int64_t answered_ms;
    int64_t asked_round;
} hot[MAX_HOT];
static int hot_count;

/* Numbers are the last four bytes. */
static struct {
    Address first;
    uint32_t size;
} ranges[MAX_RANGES];
static int range_count;
static uint64_t cursor;

static struct {
    char label[64];
    char pattern[512];
} globs[MAX_GLOBS];
static int glob_count;

static char output[OUTPUT_BYTES];
static size_t output_length;

static int arp_socket, ndp_socket, link_index;
static uint8_t own_mac[6];
static Address own_v4, own_v6;

static void fail(const char *what) {
    fprintf(stderr, "eyes: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

__attribute__((format(printf, 1, 2))) static void put(const char *format, ...) {
    va_list values;
    va_start(values, format);
    output_length += vsnprintf(output + output_length, sizeof output - output_length, format, values);
    va_end(values);
    if (output_length >= sizeof output) {
        errno = EMSGSIZE;
        fail("a round");
    }
}

/* Between the elements of an array. */
static void put_comma(void) {
    if (output[output_length - 1] != '[') put(",");
}

static int is_v4(const Address *address) { return IN6_IS_ADDR_V4MAPPED(address); }

static const char *text_of(const Address *address) {
    static char text[INET6_ADDRSTRLEN];
    if (is_v4(address)) inet_ntop(AF_INET, address->s6_addr + 12, text, sizeof text);
    else inet_ntop(AF_INET6, address, text, sizeof text);
    return text;
}

static int parse(const char *text, Address *address) {
    if (inet_pton(AF_INET6, text, address) == 1) return 1;
    memset(address, 0, sizeof *address);
    address->s6_addr[10] = address->s6_addr[11] = 0xff;
    return inet_pton(AF_INET, text, address->s6_addr + 12) == 1;
}

static uint32_t number_of(const Address *address) {
    uint32_t number;
    memcpy(&number, address->s6_addr + 12, 4);
    return ntohl(number);
}

static void set_number(Address *address, uint32_t number) {
    number = htonl(number);
    memcpy(address->s6_addr + 12, &number, 4);
}

static int find_hot(const Address *address) {
    for (int index = 0; index < hot_count; index++)
        if (IN6_ARE_ADDR_EQUAL(&hot[index].address, address)) return index;
    return -1;
}

static int add_hot(const Address *address) {
    int index = find_hot(address);
    if (index >= 0) return index;
    if (hot_count == MAX_HOT) {
        errno = ENOSPC;
        fail("addresses in use");
    }
    memset(&hot[hot_count], 0, sizeof hot[0]);
    hot[hot_count].address = *address;
    hot[hot_count].answered_ms = INT64_MIN / 2;
    return hot_count++;
}

/* Gives an address that is neither recorded nor answers its turn with the rest. */
static void cool_down(int64_t at_ms) {
    for (int index = 0; index < hot_count; index++)
        if (!hot[index].is_recorded && hot[index].answered_ms < at_ms - LATELY_MS) hot[index--] = hot[--hot_count];
}

static void set_glob(const char *label, const char *pattern) {
    int index = 0;
    while (index < glob_count && strcmp(globs[index].label, label) != 0) index++;
    if (index == MAX_GLOBS) return;
    if (index == glob_count) glob_count++;
    snprintf(globs[index].label, sizeof globs[index].label, "%s", label);
    snprintf(globs[index].pattern, sizeof globs[index].pattern, "%s", pattern);
}

static void obey(const char *line) {
    char verb[16] = "", one[128] = "", two[512] = "";
    Address first, last;
    sscanf(line, "%15s %127s %511s", verb, one, two);
    if (strcmp(verb, "netns") == 0) return set_glob(one, two);
    if (!parse(one, &first)) return (void)fprintf(stderr, "eyes: not understood: %s\n", line);
    if (strcmp(verb, "record") == 0) hot[add_hot(&first)].is_recorded = 1;
    else if (strcmp(verb, "forget") == 0 && find_hot(&first) >= 0) hot[find_hot(&first)].is_recorded = 0;
    else if (strcmp(verb, "range") == 0 && parse(two, &last) && range_count < MAX_RANGES) {
        ranges[range_count].first = first;
        ranges[range_count++].size = number_of(&last) - number_of(&first) + 1;
    }
}

static void read_orders(void) {
    static char pending[1 << 16];
    static size_t length;
    for (;;) {
        ssize_t got = read(STDIN_FILENO, pending + length, sizeof pending - 1 - length);
        if (got == 0) exit(0);
        if (got < 0) return;
        length += (size_t)got;
        pending[length] = 0;
        char *line = pending;
        for (char *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
            *end = 0;
            obey(line);
        }
        length = strlen(line);
        memmove(pending, line, length + 1);
    }
}

static void send_frame(int fd, const uint8_t *frame, size_t length) {
    struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_ifindex = link_index, .sll_halen = 6};
    memcpy(to.sll_addr, frame, 6);
    sendto(fd, frame, length, 0, (struct sockaddr *)&to, sizeof to);
}

/* RFC 826; the sender has an address, or the question would be a probe (RFC 5227 §1.1). */
static void ask_arp(const Address *target) {
    uint8_t frame[42] = {255, 255, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1};
    memcpy(frame + 6, own_mac, 6);
    memcpy(frame + 22, own_mac, 6);
    memcpy(frame + 28, own_v4.s6_addr + 12, 4);
    memcpy(frame + 38, target->s6_addr + 12, 4);
    send_frame(arp_socket, frame, sizeof frame);
}

static uint32_t add_up(const uint8_t *bytes, size_t length, uint32_t sum) {
    for (size_t index = 0; index < length; index += 2) sum += (uint32_t)bytes[index] << 8 | bytes[index + 1];
    return sum;
}

/* RFC 4861 §4.3, with the option of the sender's MAC. Ethernet 14, IPv6 40, ICMPv6 32 bytes. */
static void ask_ndp(const Address *target) {
    uint8_t frame[86] = {0x33, 0x33, 0xff, [12] = 0x86, 0xdd, 0x60, [18] = 0, 32, 58, 255, [54] = 135};
    memcpy(frame + 3, target->s6_addr + 13, 3);
    memcpy(frame + 6, own_mac, 6);
    memcpy(frame + 22, &own_v6, 16);
    memcpy(frame + 38, "\xff\x02\0\0\0\0\0\0\0\0\0\x01\xff", 13);
    memcpy(frame + 51, target->s6_addr + 13, 3);
    memcpy(frame + 62, target, 16);
    frame[78] = frame[79] = 1;
    memcpy(frame + 80, own_mac, 6);
    uint32_t sum = add_up(frame + 22, 64, 32 + 58);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = ~((sum & 0xffff) + (sum >> 16));
    frame[56] = (uint8_t)(sum >> 8);
    frame[57] = (uint8_t)sum;
    send_frame(ndp_socket, frame, sizeof frame);
}

static void ask(const Address *address) {
    put_comma();
    put("\"%s\"", text_of(address));
    if (is_v4(address)) ask_arp(address);
    else ask_ndp(address);
}

static void ask_all(int64_t round) {
    for (int index = 0; index < hot_count; index++) {
        hot[index].asked_round = round;
        ask(&hot[index].address);
    }
    uint64_t total = 0;
    for (int index = 0; index < range_count; index++) total += ranges[index].size;
    for (uint64_t turn = 0; turn < SHARE && turn < total; turn++) {
        uint64_t number = cursor++ % total;
        int index = 0;
        for (; number >= ranges[index].size; index++) number -= ranges[index].size;
        Address address = ranges[index].first;
        set_number(&address, number_of(&address) + (uint32_t)number);
        int known = find_hot(&address);
        if (known < 0 || hot[known].asked_round != round) ask(&address);
    }
}

/* Puts the answers that wait. */
static void take_answers(int fd) {
    uint8_t frame[128];
    struct sockaddr_ll from;
    socklen_t size = sizeof from;
    for (;;) {
        ssize_t length = recvfrom(fd, frame, sizeof frame, 0, (struct sockaddr *)&from, &size);
        if (length < 0) return;
        if (from.sll_pkttype != PACKET_HOST || memcmp(frame, own_mac, 6) != 0) continue;
        Address address;
        if (fd == arp_socket) {
            if (length < 42 || frame[21] != 2) continue;
            memset(&address, 0, sizeof address);
            address.s6_addr[10] = address.s6_addr[11] = 0xff;
            memcpy(address.s6_addr + 12, frame + 28, 4);
        } else {
            if (length < 78 || frame[20] != 58 || frame[54] != 136) continue;
            memcpy(&address, frame + 62, 16);
        }
        hot[add_hot(&address)].answered_ms = now_ms();
        const uint8_t *mac = frame + 6;
        put_comma();
        put("[\"%s\",\"%02x:%02x:%02x:%02x:%02x:%02x\"]", text_of(&address), mac[0], mac[1], mac[2], mac[3], mac[4],
            mac[5]);
    }
}

static void hear_until(int64_t end_ms) {
    struct pollfd both[] = {{.fd = arp_socket, .events = POLLIN}, {.fd = ndp_socket, .events = POLLIN}};
    do {
        int64_t left = end_ms - now_ms();
        poll(both, 2, left > 0 ? (int)left : 0);
        take_answers(arp_socket);
        take_answers(ndp_socket);
    } while (now_ms() < end_ms);
}

/* The namespace that is being read. */
static struct {
    int index, is_up, has_address;
    char name[IF_NAMESIZE], mac[18];
} links[LINKS_OF_ONE];
static int link_count;

static void put_nic(const char *name, int index, const char *address) {
    links[index].has_address = 1;
    put_comma();
    put("[\"%s\",\"%s\",\"%s\",\"%s\",%d]", name, links[index].name, links[index].mac, address, links[index].is_up);
}

static void take_link(const struct nlmsghdr *message) {
    const struct ifinfomsg *link = NLMSG_DATA(message);
    if ((link->ifi_flags & IFF_LOOPBACK) != 0 || link_count == LINKS_OF_ONE) return;
    int length = (int)IFLA_PAYLOAD(message);
    memset(&links[link_count], 0, sizeof links[0]);
    links[link_count].index = link->ifi_index;
    links[link_count].is_up = (link->ifi_flags & IFF_UP) != 0;
    for (const struct rtattr *each = IFLA_RTA(link); RTA_OK(each, length); each = RTA_NEXT(each, length)) {
        const uint8_t *value = RTA_DATA(each);
        if (each->rta_type == IFLA_IFNAME) snprintf(links[link_count].name, IF_NAMESIZE, "%s", (const char *)value);
        if (each->rta_type == IFLA_ADDRESS && RTA_PAYLOAD(each) == 6)
            sprintf(links[link_count].mac, "%02x:%02x:%02x:%02x:%02x:%02x", value[0], value[1], value[2], value[3],
                    value[4], value[5]);
    }
    link_count++;
}

static void take_address(const struct nlmsghdr *message, const char *name) {
    const struct ifaddrmsg *found = NLMSG_DATA(message);
    uint32_t flags = found->ifa_flags;
    const uint8_t *bytes = NULL;
    int length = (int)IFA_PAYLOAD(message);
    for (const struct rtattr *each = IFA_RTA(found); RTA_OK(each, length); each = RTA_NEXT(each, length)) {
        if (each->rta_type == IFA_FLAGS) memcpy(&flags, RTA_DATA(each), 4);
        if (each->rta_type == IFA_LOCAL || (each->rta_type == IFA_ADDRESS && bytes == NULL)) bytes = RTA_DATA(each);
    }
    if (found->ifa_scope != RT_SCOPE_UNIVERSE || bytes == NULL) return;
    if ((flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED)) != 0) return;
    char text[INET6_ADDRSTRLEN];
    inet_ntop(found->ifa_family, bytes, text, sizeof text);
    for (int index = 0; index < link_count; index++)
        if (links[index].index == (int)found->ifa_index) put_nic(name, index, text);
}

/* Returns whether the dump is whole: a link or an address that changes meanwhile may break it. */
static int dump(int fd, uint16_t type, const char *name) {
    static uint8_t buffer[1 << 16];
    struct {
        struct nlmsghdr head;
        struct ifinfomsg body;
    } request = {.head = {.nlmsg_len = sizeof request, .nlmsg_type = type, .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP}};
    if (send(fd, &request, sizeof request, 0) < 0) return 0;
    for (;;) {
        ssize_t got = recv(fd, buffer, sizeof buffer, 0);
        if (got <= 0) return 0;
        size_t left = (size_t)got;
        for (struct nlmsghdr *each = (struct nlmsghdr *)buffer; NLMSG_OK(each, left); each = NLMSG_NEXT(each, left)) {
            if (each->nlmsg_type == NLMSG_DONE) return 1;
            if (each->nlmsg_type == NLMSG_ERROR) return 0;
            if (each->nlmsg_type == RTM_NEWLINK) take_link(each);
            if (each->nlmsg_type == RTM_NEWADDR) take_address(each, name);
        }
    }
}

static void read_namespace(const char *path, const char *label) {
    int ns = open(path, O_RDONLY | O_CLOEXEC);
    if (ns < 0) return;
    int entered = setns(ns, CLONE_NEWNET);
    close(ns);
    if (entered < 0) return;
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (fd < 0) return;
    char name[256];
    snprintf(name, sizeof name, "%.60s/%.190s", label, strrchr(path, '/') + 1);
    link_count = 0;
    if (dump(fd, RTM_GETLINK, name) && dump(fd, RTM_GETADDR, name))
        for (int index = 0; index < link_count; index++)
            if (!links[index].has_address) put_nic(name, index, "");
    close(fd);
}

static void read_namespaces(int home) {
    put("\"nics\":[");
    for (int index = 0; index < glob_count; index++) {
        glob_t found;
        if (glob(globs[index].pattern, GLOB_NOSORT, NULL, &found) != 0) continue;
        for (size_t each = 0; each < found.gl_pathc; each++) read_namespace(found.gl_pathv[each], globs[index].label);
        globfree(&found);
    }
    if (setns(home, CLONE_NEWNET) < 0) fail("back to the segment");
    put("],");
}

static int open_packets(uint16_t protocol) {
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, htons(protocol));
    struct sockaddr_ll at = {.sll_family = AF_PACKET, .sll_protocol = htons(protocol), .sll_ifindex = link_index};
    int bytes = 8 << 20;
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) < 0) fail("packet socket");
    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes);
    return fd;
}

static void write_out(void) {
    for (size_t done = 0; done < output_length;) {
        ssize_t written = write(STDOUT_FILENO, output + done, output_length - done);
        if (written < 0) exit(0);
        done += (size_t)written;
    }
}

static long cpu_ms(void) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000 + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1000;
}

int main(int count, char **words) {
    if (count != 4 || !parse(words[2], &own_v4) || !parse(words[3], &own_v6)) return 2;
    struct ifreq link = {0};
    snprintf(link.ifr_name, sizeof link.ifr_name, "%s", words[1]);
    link_index = (int)if_nametoindex(words[1]);
    int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    arp_socket = open_packets(ETH_P_ARP);
    ndp_socket = open_packets(ETH_P_IPV6);
    if (link_index == 0 || home < 0 || ioctl(arp_socket, SIOCGIFHWADDR, &link) < 0) fail(words[1]);
    memcpy(own_mac, link.ifr_hwaddr.sa_data, 6);
    fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
    fcntl(STDOUT_FILENO, F_SETPIPE_SZ, PIPE_BYTES);
    for (int64_t round = 1;; round++) {
        int64_t at_ms = now_ms();
        output_length = 0;
        read_orders();
        cool_down(at_ms);
        put("{\"atMs\":%lld,\"cpuMs\":%ld,", (long long)at_ms, cpu_ms());
        read_namespaces(home);
        put("\"asked\":[");
        ask_all(round);
        put("],\"answers\":[");
        hear_until(at_ms + ROUND_MS);
        put("]}\n");
        write_out();
    }
}
