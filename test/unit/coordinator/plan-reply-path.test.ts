/** Effect of the tables of nf_tables on packets. */
import { describe, expect, it } from "vitest";
import { REPLY_MARK, SNAT_GROUPS } from "../../../host/coordinator/plan/constants.ts";
import { podTable, snatTable } from "../../../host/coordinator/plan/plan-reply-path.ts";
import {
  CT_STATE_NEW,
  IPS_DST_NAT,
  NF_INET_FORWARD,
  NF_INET_LOCAL_OUT,
  NF_INET_POST_ROUTING,
  NF_INET_PRE_ROUTING,
  NF_IP_PRI_FILTER,
  NF_IP_PRI_MANGLE,
  NF_IP_PRI_NAT_SRC,
} from "../../../host/kernel/netlink/nftables/constants.ts";
import { type Packet, pass } from "./nft-model.ts";

const PACKET: Packet = {
  ...{ iifname: "eth0", oifname: "eth0", iifgroup: 0, state: 0, status: 0 },
  ...{ connectionMark: 0, packetMark: 0, isMasqueraded: false, isDropped: false },
};
/** Mark of other software. */
const OTHER_MARK = 0x8000_4000;

describe("in the pod", () => {
  const table = podTable("veth0", ["eth0", "net*"]);

  it("pods with the same NICs have the same table, of which what is sent is remembered", () => {
    expect(podTable("veth0", ["eth0", "net*"])).toBe(table);
    expect(podTable("veth0", ["eth0"])).not.toBe(table);
  });

  it.each([
    ["eth0", "veth0", true],
    ["veth0", "net*", true],
    ["net1", "veth0", false],
    ["eth0", "net*", false],
    ["docker0", "veth0", false],
    ["veth0", "docker0", false],
  ])("a packet that is forwarded from %s to %s: dropped %s", (iifname, oifname, isDropped) =>
    expect(pass(table, NF_INET_FORWARD, { ...PACKET, iifname, oifname }).isDropped).toBe(isDropped),
  );

  it.each<[what: string, packet: Partial<Packet>, mark: number]>([
    ["that opens a connection over the pair", { iifname: "veth0", state: CT_STATE_NEW }, REPLY_MARK],
    [
      "of a connection that is marked already",
      { iifname: "veth0", state: CT_STATE_NEW, connectionMark: OTHER_MARK },
      (OTHER_MARK | REPLY_MARK) >>> 0,
    ],
    ["that opens a connection over a NIC", { iifname: "eth0", state: CT_STATE_NEW }, 0],
    ["that answers the pod over the pair", { iifname: "veth0", state: 0 }, 0],
  ])("a packet %s: mark of the connection", (_, packet, connectionMark) =>
    expect(pass(table, NF_INET_PRE_ROUTING, { ...PACKET, ...packet })).toMatchObject({ connectionMark, packetMark: 0 }),
  );

  it.each<[what: string, packet: Partial<Packet>, mark: number]>([
    ["of a marked connection", { connectionMark: REPLY_MARK }, REPLY_MARK],
    ["that has another mark, too", { connectionMark: REPLY_MARK | OTHER_MARK, packetMark: 4 }, REPLY_MARK | 4],
    ["of a connection that others have marked", { connectionMark: OTHER_MARK, packetMark: 4 }, 4],
  ])("a reply %s: mark of the packet", (_, packet, packetMark) =>
    expect(pass(table, NF_INET_LOCAL_OUT, { ...PACKET, ...packet })).toMatchObject({ packetMark }),
  );

  it("connections are marked before they are routed, and marked replies are routed again", () =>
    expect(table.chains.map(({ type, hook, priority }) => [type, hook, priority])).toEqual([
      ["filter", NF_INET_PRE_ROUTING, NF_IP_PRI_MANGLE],
      ["route", NF_INET_LOCAL_OUT, NF_IP_PRI_MANGLE],
      ["filter", NF_INET_FORWARD, NF_IP_PRI_FILTER],
    ]));
});

describe("on the node", () => {
  const table = snatTable();
  const { all, untranslated, none } = SNAT_GROUPS;

  it.each<[group: number, oifname: string, status: number, isMasqueraded: boolean]>([
    [all, "eth0", 0, true],
    [all, "eth0", IPS_DST_NAT, true],
    [untranslated, "bond0", 0, true],
    [untranslated, "bond0", IPS_DST_NAT, false],
    [none, "eth0", 0, false],
    ...["veth0123abc", "cali7", "lxc0123", "cni0"].flatMap((name): [number, string, number, boolean][] => [
      [all, name, 0, false],
      [untranslated, name, 0, false],
    ]),
  ])(
    "a packet from group %i that leaves by %s with status %i: masqueraded %s",
    (iifgroup, oifname, status, expected) => {
      const packet = { ...PACKET, iifgroup, oifname, status };
      expect(pass(table, NF_INET_POST_ROUTING, packet).isMasqueraded).toBe(expected);
    },
  );

  it("source addresses are translated last", () =>
    expect(table.chains.map(({ type, hook, priority }) => [type, hook, priority])).toEqual([
      ["nat", NF_INET_POST_ROUTING, NF_IP_PRI_NAT_SRC],
    ]));
});
