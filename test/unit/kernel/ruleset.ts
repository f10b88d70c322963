/** record/ruleset.nft as a value. Called by the tests of nf_tables. */
import {
  NF_INET_LOCAL_OUT,
  NF_INET_POST_ROUTING,
  NF_INET_PRE_ROUTING,
  NF_IP_PRI_MANGLE,
  NF_IP_PRI_NAT_SRC,
} from "../../../host/kernel/netlink/nftables/constants.ts";
import {
  masquerade,
  matchDnat,
  matchGroup,
  matchInterface,
  matchInterfaceSet,
  matchLinkKind,
  matchMark,
  matchNewConnection,
  setMark,
} from "../../../host/kernel/netlink/nftables/statement.ts";
import type { NftTable } from "../../../host/plan/nft-table.ts";

export const ruleset: NftTable = {
  name: "berth",
  sets: [{ name: "ours", interfaces: ["veth1", "veth0a1b2c3d4e5"] }],
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
        [
          ...matchInterfaceSet("iifname", "ours"),
          ...matchInterfaceSet("oifname", "ours", true),
          ...matchDnat(),
          ...masquerade(),
        ],
        [...matchInterface("iifname", "veth*"), ...matchInterface("oifname", "eth0"), ...matchDnat(), ...masquerade()],
        [
          ...matchGroup("iifgroup", 7),
          ...matchGroup("oifgroup", 7, true),
          ...matchLinkKind("iifkind", "veth"),
          ...matchLinkKind("oifkind", "veth", true),
          ...matchDnat(),
          ...masquerade(),
        ],
      ],
    },
  ],
};
