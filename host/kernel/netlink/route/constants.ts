/** Numbers of route messages, as the kernel spells them. Source: linux/rtnetlink.h. */

export const RTM_NEWROUTE = 24;
export const RTM_DELROUTE = 25;
export const RTM_GETROUTE = 26;

export const RTA_DST = 1;
export const RTA_SRC = 2;
export const RTA_IIF = 3;
export const RTA_OIF = 4;
export const RTA_GATEWAY = 5;
export const RTA_PRIORITY = 6;
export const RTA_PREFSRC = 7;
export const RTA_MULTIPATH = 9;
export const RTA_CACHEINFO = 12;
export const RTA_TABLE = 15;
export const RTA_MARK = 16;
export const RTA_VIA = 18;
export const RTA_NH_ID = 30;

/** In the fixed part for tables above 255, which are in RTA_TABLE. */
export const RT_TABLE_UNSPEC = 0;
export const RT_TABLE_MAIN = 254;
export const RT_TABLE_LOCAL = 255;

export const RTN_UNICAST = 1;
export const RTN_BLACKHOLE = 6;
export const RTN_UNREACHABLE = 7;
export const RTN_PROHIBIT = 8;
export const RTN_THROW = 9;

/** Learned from an ICMP redirect. */
export const RTPROT_REDIRECT = 1;
export const RTPROT_KERNEL = 2;
export const RTPROT_BOOT = 3;
export const RTPROT_RA = 9;

export const RT_SCOPE_UNIVERSE = 0;
export const RT_SCOPE_LINK = 253;

/** The gateway is reached on the link although no connected route covers it. */
export const RTNH_F_ONLINK = 4;
/** State of a route, not part of its definition: dead, no carrier, and the like. */
export const RTNH_F_STATE = 1 | 8 | 16 | 32 | 64;
/** A cached copy made by a lookup. */
export const RTM_F_CLONED = 0x200;
/** The answer names the table of a looked-up route. */
export const RTM_F_LOOKUP_TABLE = 0x1000;

/** Default metric of IPv6 routes (net/ip6_route.h). */
export const IP6_RT_PRIO_USER = 1024;
