/** Numbers of neighbour messages, as the kernel spells them. Sources: linux/rtnetlink.h, linux/neighbour.h. */

export const RTM_NEWNEIGH = 28;
export const RTM_DELNEIGH = 29;
export const RTM_GETNEIGH = 30;

export const NDA_DST = 1;
export const NDA_LLADDR = 2;
export const NDA_CACHEINFO = 3;
export const NDA_IFINDEX = 8;

export const NUD_FAILED = 0x20;
/** Without resolution: broadcast, loopback. */
export const NUD_NOARP = 0x40;
export const NUD_PERMANENT = 0x80;

/** The kernel answers for the address (proxy ARP). */
export const NTF_PROXY = 0x08;
