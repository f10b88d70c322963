/**
 * Numbers of the netlink protocol, as the kernel spells them; each message family has its own in its folder. Sources:
 * linux/netlink.h, linux/socket.h, bits/socket.h.
 */

export const AF_UNSPEC = 0;
export const AF_UNIX = 1;
export const AF_INET = 2;
export const AF_INET6 = 10;
export const AF_NETLINK = 16;
export const SOCK_DGRAM = 2;
export const SOCK_RAW = 3;
export const SOCK_CLOEXEC = 0o2000000;
export const NETLINK_ROUTE = 0;
export const NETLINK_NETFILTER = 12;

export const MSG_TRUNC = 0x20;
export const MSG_DONTWAIT = 0x40;

export const SOL_NETLINK = 270;
export const NETLINK_CAP_ACK = 10;
export const NETLINK_EXT_ACK = 11;
export const NETLINK_GET_STRICT_CHK = 12;

/** In the type of an attribute whose value is a list of attributes. */
export const NLA_F_NESTED = 0x8000;

export const NLMSG_NOOP = 1;
export const NLMSG_ERROR = 2;
export const NLMSG_DONE = 3;

export const NLM_F_REQUEST = 0x1;
export const NLM_F_ACK = 0x4;
export const NLM_F_DUMP_INTR = 0x10;
/** For requests that create: replace an existing object, fail if it exists, create if it does not, append to others. */
export const NLM_F_REPLACE = 0x100;
export const NLM_F_EXCL = 0x200;
export const NLM_F_CREATE = 0x400;
export const NLM_F_APPEND = 0x800;
/** NLM_F_ROOT | NLM_F_MATCH */
export const NLM_F_DUMP = 0x300;
/** In an acknowledgement: only the header of the request is repeated. */
export const NLM_F_CAPPED = 0x100;
/** In an acknowledgement: attributes follow. */
export const NLM_F_ACK_TLVS = 0x200;

export const NLMSGERR_ATTR_MSG = 1;
export const NLMSGERR_ATTR_OFFS = 2;
