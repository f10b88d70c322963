/**
 * Numbers of link messages, as the kernel spells them; those of bonds are in bond.ts. Sources: linux/rtnetlink.h,
 * linux/if_link.h, linux/veth.h, linux/if.h, linux/if_ether.h.
 */

export const RTM_NEWLINK = 16;
export const RTM_DELLINK = 17;
export const RTM_GETLINK = 18;
export const RTM_NEWLINKPROP = 108;
export const RTM_DELLINKPROP = 109;

export const IFLA_ADDRESS = 1;
export const IFLA_IFNAME = 3;
export const IFLA_MTU = 4;
export const IFLA_LINK = 5;
export const IFLA_MASTER = 10;
export const IFLA_OPERSTATE = 16;
export const IFLA_LINKINFO = 18;
export const IFLA_IFALIAS = 20;
export const IFLA_AF_SPEC = 26;
export const IFLA_GROUP = 27;
export const IFLA_NET_NS_FD = 28;
export const IFLA_EXT_MASK = 29;
export const IFLA_NUM_TX_QUEUES = 31;
export const IFLA_NUM_RX_QUEUES = 32;
export const IFLA_LINK_NETNSID = 37;
export const IFLA_PROP_LIST = 52;
export const IFLA_ALT_IFNAME = 53;

export const IFLA_INFO_KIND = 1;
export const IFLA_INFO_DATA = 2;
export const VETH_INFO_PEER = 1;
export const IFLA_INET_CONF = 1;
export const IFLA_INET6_CONF = 2;
export const IFLA_INET6_ADDR_GEN_MODE = 8;
export const IFLA_MACVLAN_MODE = 1;
export const MACVLAN_MODE_BRIDGE = 4;
/** In IFLA_INFO_DATA of an ipvlan. */
export const IFLA_IPVLAN_MODE = 1;
export const IFLA_VLAN_ID = 1;
export const IFLA_VLAN_PROTOCOL = 5;

export const ETH_P_8021Q = 0x8100;

/** Omits the counters of the protocols from the answer. */
export const RTEXT_FILTER_SKIP_STATS = 1 << 3;

export const IFF_UP = 0x1;
export const IFF_LOOPBACK = 0x8;
export const IFF_NOARP = 0x80;
export const IFF_LOWER_UP = 0x10000;
export const IF_OPER_UP = 6;
