/**
 * Numbers of neighbour messages, as the kernel spells them.
 * Sources: linux/rtnetlink.h, linux/neighbour.h.
 */

export const RTM_NEWNEIGH = 28;
export const RTM_DELNEIGH = 29;
export const RTM_GETNEIGH = 30;

export const NDA_DST = 1;
export const NDA_LLADDR = 2;
export const NDA_IFINDEX = 8;

export const NUD_NONE = 0x00;
export const NUD_INCOMPLETE = 0x01;
export const NUD_REACHABLE = 0x02;
export const NUD_STALE = 0x04;
export const NUD_DELAY = 0x08;
export const NUD_PROBE = 0x10;
export const NUD_FAILED = 0x20;
/** Needs none: broadcast, loopback. */
export const NUD_NOARP = 0x40;
export const NUD_PERMANENT = 0x80;

/** Answered for, not known. */
export const NTF_PROXY = 0x08;
export const NTF_ROUTER = 0x80;
