/** ruleset.nft as a value. */
import {
  IFNAMSIZ,
  NF_INET_LOCAL_OUT,
  NF_INET_POST_ROUTING,
  NF_INET_PRE_ROUTING,
  NF_IP_PRI_MANGLE,
  NF_IP_PRI_NAT_SRC,
  NFT_CMP_EQ,
  NFT_CMP_NEQ,
  NFT_META_IIFNAME,
  NFT_REG_1,
} from "../../../host/kernel/netlink/nftables/constants.ts";
import {
  masquerade,
  matchDnat,
  matchGroup,
  matchInterface,
  matchMark,
  matchNewConnection,
  setMark,
} from "../../../host/kernel/netlink/nftables/statement.ts";
import type { Expression, NftTable } from "../../../host/plan/nft-table.ts";

/** linux/netfilter/nf_tables.h: expressions that Berth's own rules do without. */
const NFT_META_IIFKIND = 26;
const NFT_META_OIFKIND = 27;

function matchKind(key: number, kind: string, operation: number): Expression[] {
  return [
    { name: "meta", key, register: NFT_REG_1, sets: false },
    { name: "cmp", register: NFT_REG_1, operation, value: new TextEncoder().encode(kind.padEnd(IFNAMSIZ, "\0")) },
  ];
}

/** `iifname "veth*"` */
function matchStart(start: string): Expression[] {
  const value = new TextEncoder().encode(start);
  return [
    { name: "meta", key: NFT_META_IIFNAME, register: NFT_REG_1, sets: false },
    { name: "cmp", register: NFT_REG_1, operation: NFT_CMP_EQ, value },
  ];
}

export const ruleset: NftTable = {
  name: "berth",
  chains: [
    {
      name: "enter",
      type: "filter",
      hook: NF_INET_PRE_ROUTING,
      priority: NF_IP_PRI_MANGLE,
      rules: [[...matchInterface("iifname", "veth0"), ...matchNewConnection(), ...setMark("ct", 1, 1)]],
    },
    {
      name: "answer",
      type: "route",
      hook: NF_INET_LOCAL_OUT,
      priority: NF_IP_PRI_MANGLE,
      rules: [[...matchMark("ct", 1, 1), ...setMark("meta", 1, 1)]],
    },
    {
      name: "leave",
      type: "nat",
      hook: NF_INET_POST_ROUTING,
      priority: NF_IP_PRI_NAT_SRC,
      rules: [
        [...matchStart("veth"), ...matchInterface("oifname", "eth0"), ...matchDnat(), ...masquerade()],
        [
          ...matchGroup("iifgroup", 7),
          ...matchGroup("oifgroup", 7, true),
          ...matchKind(NFT_META_IIFKIND, "veth", NFT_CMP_EQ),
          ...matchKind(NFT_META_OIFKIND, "veth", NFT_CMP_NEQ),
          ...matchDnat(),
          ...masquerade(),
        ],
      ],
    },
  ],
};
