/**
 * Numbers of nf_tables messages, as the kernel spells them.
 * Sources: linux/netfilter/nfnetlink.h, linux/netfilter/nf_tables.h, linux/netfilter/nf_conntrack_common.h,
 * linux/netfilter.h.
 */

const NFNL_SUBSYS_NFTABLES = 10;
const ofSubsystem = (message: number) => (NFNL_SUBSYS_NFTABLES << 8) | message;

export const NFNL_MSG_BATCH_BEGIN = 0x10;
export const NFNL_MSG_BATCH_END = 0x11;
/** In the resource field of a batch's ends. */
export const BATCH_RESOURCE = NFNL_SUBSYS_NFTABLES;

export const NFT_MSG_NEWTABLE = ofSubsystem(0);
export const NFT_MSG_GETTABLE = ofSubsystem(1);
export const NFT_MSG_DELTABLE = ofSubsystem(2);
export const NFT_MSG_NEWCHAIN = ofSubsystem(3);
export const NFT_MSG_GETCHAIN = ofSubsystem(4);
export const NFT_MSG_NEWRULE = ofSubsystem(6);
export const NFT_MSG_GETRULE = ofSubsystem(7);
export const NFT_MSG_NEWGEN = ofSubsystem(15);
export const NFT_MSG_GETGEN = ofSubsystem(16);

export const NFTA_GEN_ID = 1;
export const NFTA_GEN_PROC_NAME = 3;

/** In a question: every family. */
export const NFPROTO_UNSPEC = 0;
/** Both families in one table. */
export const NFPROTO_INET = 1;
export const NFPROTO_IPV4 = 2;
export const NFPROTO_IPV6 = 10;

export const NFTA_TABLE_NAME = 1;
export const NFTA_TABLE_FLAGS = 2;
export const NFT_TABLE_F_DORMANT = 1;

export const NFTA_CHAIN_TABLE = 1;
export const NFTA_CHAIN_NAME = 3;
export const NFTA_CHAIN_HOOK = 4;
export const NFTA_CHAIN_POLICY = 5;
export const NFTA_CHAIN_TYPE = 7;
export const NFTA_HOOK_HOOKNUM = 1;
export const NFTA_HOOK_PRIORITY = 2;

export const NFTA_RULE_TABLE = 1;
export const NFTA_RULE_CHAIN = 2;
export const NFTA_RULE_EXPRESSIONS = 4;
export const NFTA_LIST_ELEM = 1;
export const NFTA_EXPR_NAME = 1;
export const NFTA_EXPR_DATA = 2;

export const NFTA_DATA_VALUE = 1;
/** NFTA_DATA_VERDICT */
export const NFTA_DATA_DECISION = 2;

export const IFNAMSIZ = 16;

export const NF_INET_PRE_ROUTING = 0;
export const NF_INET_FORWARD = 2;
export const NF_INET_LOCAL_OUT = 3;
export const NF_INET_POST_ROUTING = 4;
export const NF_IP_PRI_MANGLE = -150;
export const NF_IP_PRI_FILTER = 0;
export const NF_IP_PRI_NAT_SRC = 100;
/** linux/netfilter.h */
export const NF_DROP = 0;

/** NFT_REG_VERDICT */
export const NFT_REG_DECISION = 0;
export const NFT_REG_1 = 1;
export const NFT_META_MARK = 3;
export const NFT_META_IIFNAME = 6;
export const NFT_META_OIFNAME = 7;
export const NFT_META_IIFGROUP = 21;
export const NFT_META_OIFGROUP = 22;
export const NFT_CT_STATE = 0;
export const NFT_CT_STATUS = 2;
export const NFT_CT_MARK = 3;
export const NFT_CMP_EQ = 0;
export const NFT_CMP_NEQ = 1;

/** NF_CT_STATE_BIT(IP_CT_NEW) */
export const CT_STATE_NEW = 1 << 3;
export const IPS_DST_NAT = 1 << 5;
