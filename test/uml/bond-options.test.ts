/**
 * Every option of a bond, each set on a bond of its own: the kernel's state by its files in /sys, by `ip` and by our
 * own reading.
 */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { createConversation } from "../../host/kernel/netlink/conversation.ts";
import { NetlinkError } from "../../host/kernel/netlink/error.ts";
import { BOND_NUMBERS, type BondNumber, type BondOptions } from "../../host/kernel/netlink/link/bond.ts";
import { createLink, deleteLink, findLink, setLink, setLinkKind } from "../../host/kernel/netlink/link/requests.ts";
import { openRouteSocket } from "../../host/kernel/netlink/socket.ts";
import { linkIn } from "../netns/kernel-room.ts";
import { ip, mac } from "../world/values.ts";

/** The guest's own namespace: /sys shows its links, and no others exist. */
const socket = openRouteSocket("/proc/self/ns/net");
const here = createConversation(socket);

const remove = (names: readonly string[]) => {
  for (const name of names) {
    const found = findLink(here, name);
    if (found !== undefined) deleteLink(here, found.index);
  }
};

beforeAll(() => {
  for (const name of ["m0", "m1"]) createLink(here, { name, kind: { kind: "dummy" } });
});

afterEach(() => remove(["b0", "b1"]));

afterAll(() => {
  remove(["m0", "m1"]);
  socket[Symbol.dispose]();
});

/** The bond's file of that name. */
const file = (bond: string, name: string) => readFileSync(`/sys/class/net/${bond}/bonding/${name}`, "utf8").trim();

function bondIn(name: string): BondOptions {
  const { kind } = linkIn(here, name);
  return kind?.kind === "bond" ? kind.options : expect.unreachable(name);
}

const bond = (options: BondOptions) => ({ kind: "bond", options }) as const;
const shown = (name: string) =>
  JSON.parse(execFileSync("ip", ["-d", "-j", "link", "show", name]).toString())[0].linkinfo.info_data;

/** Names of `ip` that differ from the kernel's. */
const IP_NAMES: { [Name in BondNumber]?: string } = {
  peer_notif_delay: "peer_notify_delay",
  missed_max: "arp_missed_max",
  lacp_rate: "ad_lacp_rate",
  lacp_active: "ad_lacp_active",
};

/** The numbers; those that the option needs come before it. */
type Row = readonly [option: BondNumber, numbers: BondOptions["numbers"], file: string, text: string, ofIp: unknown];
const backup = { mode: 1 };
const lacp = { mode: 4 };
const rows: Row[] = [
  ["mode", { mode: 0 }, "mode", "balance-rr 0", "balance-rr"],
  ["mode", { mode: 1 }, "mode", "active-backup 1", "active-backup"],
  ["mode", { mode: 2 }, "mode", "balance-xor 2", "balance-xor"],
  ["mode", { mode: 3 }, "mode", "broadcast 3", "broadcast"],
  ["mode", { mode: 4 }, "mode", "802.3ad 4", "802.3ad"],
  ["mode", { mode: 5 }, "mode", "balance-tlb 5", "balance-tlb"],
  ["mode", { mode: 6 }, "mode", "balance-alb 6", "balance-alb"],
  ["miimon", { ...backup, miimon: 250 }, "miimon", "250", 250],
  ["updelay", { ...backup, miimon: 100, updelay: 400 }, "updelay", "400", 400],
  ["downdelay", { ...backup, miimon: 100, downdelay: 300 }, "downdelay", "300", 300],
  ["peer_notif_delay", { ...backup, miimon: 100, peer_notif_delay: 500 }, "peer_notif_delay", "500", 500],
  ["use_carrier", { ...backup, use_carrier: 0 }, "use_carrier", "0", 0],
  ["arp_interval", { ...backup, arp_interval: 700 }, "arp_interval", "700", 700],
  ["arp_validate", { ...backup, arp_interval: 700, arp_validate: 3 }, "arp_validate", "all 3", "all"],
  ["arp_all_targets", { ...backup, arp_all_targets: 1 }, "arp_all_targets", "all 1", "all"],
  ["missed_max", { ...backup, missed_max: 5 }, "arp_missed_max", "5", 5],
  ["primary_reselect", { ...backup, primary_reselect: 2 }, "primary_reselect", "failure 2", "failure"],
  ["fail_over_mac", { ...backup, fail_over_mac: 1 }, "fail_over_mac", "active 1", "active"],
  ["num_peer_notif", { ...backup, num_peer_notif: 7 }, "num_grat_arp", "7", 7],
  ["xmit_hash_policy", { ...lacp, xmit_hash_policy: 1 }, "xmit_hash_policy", "layer3+4 1", "layer3+4"],
  ["resend_igmp", { ...backup, resend_igmp: 9 }, "resend_igmp", "9", 9],
  ["all_slaves_active", { ...backup, all_slaves_active: 1 }, "all_slaves_active", "1", 1],
  ["min_links", { ...lacp, min_links: 2 }, "min_links", "2", 2],
  ["lp_interval", { ...backup, lp_interval: 3 }, "lp_interval", "3", 3],
  ["packets_per_slave", { mode: 0, packets_per_slave: 12 }, "packets_per_slave", "12", 12],
  ["lacp_rate", { ...lacp, lacp_rate: 1 }, "lacp_rate", "fast 1", "fast"],
  ["lacp_active", { ...lacp, lacp_active: 0 }, "lacp_active", "off 0", "off"],
  ["ad_select", { ...lacp, ad_select: 2 }, "ad_select", "count 2", "count"],
  ["ad_actor_sys_prio", { ...lacp, ad_actor_sys_prio: 300 }, "ad_actor_sys_prio", "300", 300],
  ["ad_user_port_key", { ...lacp, ad_user_port_key: 777 }, "ad_user_port_key", "777", 777],
  ["tlb_dynamic_lb", { mode: 5, tlb_dynamic_lb: 0 }, "tlb_dynamic_lb", "0", 0],
];

/** Options that name a member, and those of kernels or of an `ip` younger than these. */
const ELSEWHERE = new Set<BondNumber>(["primary", "active_slave", "coupled_control", "broadcast_neighbor"]);

describe("an option given at birth", () => {
  it.each(rows)("%s of %j", (option, numbers, name, text, ofIp) => {
    createLink(here, { name: "b0", kind: bond({ numbers }) });
    expect(file("b0", name)).toBe(text);
    expect(bondIn("b0").numbers).toMatchObject(numbers);
    expect(shown("b0")[IP_NAMES[option] ?? option]).toEqual(ofIp);
  });

  it("is each of them, but for those that name a member", () => {
    expect(new Set(rows.map(([option]) => option))).toEqual(
      new Set(BOND_NUMBERS.filter((name) => !ELSEWHERE.has(name))),
    );
  });
});

describe("an option that changes on a bond that is there", () => {
  it.each(rows.filter(([option]) => option !== "mode"))("%s of %j", (option, numbers, name, text) => {
    const { [option]: value, ...before } = numbers;
    createLink(here, { name: "b0", kind: bond({ numbers: before }) });
    const { index } = linkIn(here, "b0");
    expect(file("b0", name), "before").not.toBe(text);
    setLinkKind(here, index, bond({ numbers: { [option]: value } }));
    expect(file("b0", name)).toBe(text);
    expect(bondIn("b0").numbers).toMatchObject(numbers);
  });
});

it("addresses: targets of ARP, of neighbour solicitations, and the actor's system", () => {
  const arpIpTargets = [ip("10.6.0.1"), ip("10.6.0.2")];
  const nsIp6Targets = [ip("fd06::1"), ip("fd06::2")];
  const options = { numbers: { mode: 1, arp_interval: 100 }, arpIpTargets, nsIp6Targets };
  createLink(here, { name: "b0", kind: bond(options) });
  expect(file("b0", "arp_ip_target")).toBe("10.6.0.1 10.6.0.2");
  expect(shown("b0").ns_ip6_target).toEqual(["fd06::1", "fd06::2"]);
  expect(bondIn("b0")).toMatchObject({ arpIpTargets, nsIp6Targets });
  const { index } = linkIn(here, "b0");
  setLinkKind(here, index, bond({ numbers: {}, arpIpTargets: [ip("10.6.0.9")], nsIp6Targets: [] }));
  expect(file("b0", "arp_ip_target")).toBe("10.6.0.9");
  expect(shown("b0").ns_ip6_target).toBeUndefined();
  deleteLink(here, index);

  const actorSystem = mac("02:00:00:00:00:0b");
  createLink(here, { name: "b0", kind: bond({ numbers: { mode: 4 }, actorSystem }) });
  expect(file("b0", "ad_actor_system")).toBe(actorSystem);
  expect(bondIn("b0").actorSystem).toBe(actorSystem);
});

it("members by index: the primary and the active one", () => {
  createLink(here, { name: "b0", kind: bond({ numbers: { mode: 1, miimon: 100 } }), up: true });
  const [b0, m0, m1] = ["b0", "m0", "m1"].map((name) => linkIn(here, name).index);
  if (b0 === undefined || m0 === undefined || m1 === undefined) throw new Error("no links");
  for (const member of [m0, m1]) setLink(here, member, { master: b0 });
  setLinkKind(here, b0, bond({ numbers: { primary: m1, primary_reselect: 2 } }));
  expect([file("b0", "primary"), bondIn("b0").numbers.primary, shown("b0").primary]).toEqual(["m1", m1, "m1"]);
  for (const [name, member] of [
    ["m0", m0],
    ["m1", m1],
  ] as const) {
    setLinkKind(here, b0, bond({ numbers: { active_slave: member } }));
    expect([file("b0", "active_slave"), bondIn("b0").numbers.active_slave]).toEqual([name, member]);
  }
  setLinkKind(here, b0, bond({ numbers: { primary: 0 } }));
  expect([file("b0", "primary"), bondIn("b0").numbers.primary]).toEqual(["", undefined]);
  deleteLink(here, b0);
  expect([linkIn(here, "m0").master, linkIn(here, "m1").master]).toEqual([undefined, undefined]);
});

describe("a refusal of the kernel", () => {
  it.each<[what: string, numbers: BondOptions["numbers"], text: string]>([
    ["a mode that is none", { mode: 9 }, "invalid argument (EINVAL): invalid option value at byte 56"],
    ["a rate that is none", { mode: 4, lacp_rate: 7 }, "invalid argument (EINVAL): invalid option value at byte 64"],
    [
      "an option of another mode",
      { mode: 1, lacp_rate: 1 },
      "denied (EACCES): option not supported in mode at byte 64",
    ],
    ["a delay without the interval it is made of", { mode: 1, updelay: 400 }, "not permitted (EPERM)"],
  ])("%s", (_, numbers, text) => {
    expect(() => createLink(here, { name: "b1", kind: bond({ numbers }) })).toThrow(NetlinkError);
    expect(() => createLink(here, { name: "b1", kind: bond({ numbers }) })).toThrow(
      new RegExp(`^Cannot create link "b1" of kind bond: .*${RegExp.escape(text)}`),
    );
    expect(findLink(here, "b1")).toBeUndefined();
  });

  it("another mode while the bond is up, or has members", () => {
    createLink(here, { name: "b0", kind: bond({ numbers: { mode: 1, miimon: 100 } }), up: true });
    const { index } = linkIn(here, "b0");
    const change = () => setLinkKind(here, index, bond({ numbers: { mode: 4 } }));
    expect(change).toThrow(/^Cannot set link \d+ type bond: .*\(EBUSY\): .* bond is up at byte \d+$/);
    setLink(here, index, { up: false });
    setLink(here, linkIn(here, "m0").index, { master: index });
    expect(change).toThrow(/^Cannot set link \d+ type bond: .*\(ENOTEMPTY\): .* bond device has slaves at byte \d+$/);
    setLink(here, linkIn(here, "m0").index, { master: 0 });
    change();
    expect(file("b0", "mode")).toBe("802.3ad 4");
  });

  it("not a primary that is no link: it is ignored", () => {
    createLink(here, { name: "b0", kind: bond({ numbers: { mode: 1, primary: 999 } }) });
    expect([file("b0", "primary"), bondIn("b0").numbers.primary]).toEqual(["", undefined]);
  });
});
