/**
 * Numbers of address messages, as the kernel spells them.
 * Sources: linux/rtnetlink.h, linux/if_addr.h.
 * Effects: none.
 */

export const RTM_NEWADDR = 20;
export const RTM_GETADDR = 22;

export const IFA_ADDRESS = 1;
export const IFA_LOCAL = 2;
