/**
 * Numbers of link messages, as the kernel spells them.
 * Sources: linux/rtnetlink.h, linux/if_link.h, linux/if.h.
 * Effects: none.
 */

export const RTM_NEWLINK = 16;
export const RTM_GETLINK = 18;

export const IFLA_ADDRESS = 1;
export const IFLA_IFNAME = 3;
export const IFLA_EXT_MASK = 29;

/** Leaves the counters of the protocols out of the answer. */
export const RTEXT_FILTER_SKIP_STATS = 1 << 3;

export const IFF_UP = 0x1;
