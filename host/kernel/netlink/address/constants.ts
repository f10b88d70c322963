/** Numbers of address messages, as the kernel spells them. Sources: linux/rtnetlink.h, linux/if_addr.h. */

export const RTM_NEWADDR = 20;
export const RTM_DELADDR = 21;
export const RTM_GETADDR = 22;

export const IFA_ADDRESS = 1;
export const IFA_LOCAL = 2;
/** Label of the address; by default the name of its link. */
export const IFA_LABEL = 3;
/** Times of creation and change, and lifetimes. */
export const IFA_CACHEINFO = 6;
export const IFA_FLAGS = 8;

/** IPv6: one of the changing addresses that the kernel adds beside one with MANAGETEMPADDR. */
export const IFA_F_TEMPORARY = 0x01;
/** No duplicate detection by the kernel. */
export const IFA_F_NODAD = 0x02;
export const IFA_F_DADFAILED = 0x08;
/** Duplicate address detection is in progress. */
export const IFA_F_TENTATIVE = 0x40;
/** Without a lifetime, thus not learned from a router. */
export const IFA_F_PERMANENT = 0x80;
/** The kernel has made it of a prefix that a router advertised (RFC 4862). */
export const IFA_F_MANAGETEMPADDR = 0x100;
/** The kernel adds no route to the prefix. */
export const IFA_F_NOPREFIXROUTE = 0x200;
/**
 * Flags set by the process that adds the address; the others are state: NODAD, OPTIMISTIC, HOMEADDRESS, MANAGETEMPADDR,
 * NOPREFIXROUTE, MCAUTOJOIN.
 */
export const IFA_F_CHOSEN = 0x02 | 0x04 | 0x10 | 0x100 | 0x200 | 0x400;
