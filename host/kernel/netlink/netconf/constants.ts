/** Numbers of netconf messages, as the kernel spells them. Sources: linux/rtnetlink.h, linux/netconf.h. */

export const RTM_NEWNETCONF = 80;
export const RTM_GETNETCONF = 82;

export const NETCONFA_IFINDEX = 1;
export const NETCONFA_FORWARDING = 2;
export const NETCONFA_RP_FILTER = 3;

/** In place of the index of a link: `all` and `default` of /proc/sys/net/ipv4/conf. */
export const NETCONFA_IFINDEX_ALL = -1;
export const NETCONFA_IFINDEX_DEFAULT = -2;
