import { describe, expect, it } from "vitest";
import { attribute, encodeUint32, nest } from "../../../host/kernel/netlink/attribute.ts";
import { decodeLink } from "../../../host/kernel/netlink/families.ts";
import { decodeBond, encodeBond } from "../../../host/kernel/netlink/link/bond.ts";
import { decodeKind, encodeKind, kindName, type LinkKind } from "../../../host/kernel/netlink/link/kind.ts";
import { type LinkSpec, linkOf } from "../../../host/kernel/netlink/link/link.ts";
import { createLink, deleteLink, newLink, setLink } from "../../../host/kernel/netlink/link/requests.ts";
import { ip, mac } from "../../world/values.ts";
import { type Ask, answersTo, expectSame, itSends, readRecorded, sentFor } from "./recorded.ts";
import { SILENT } from "./silent-conversation.ts";

const actorSystem = mac("02:00:00:00:00:0b");
const lacp = { mode: 4, miimon: 100, updelay: 200, downdelay: 300, xmit_hash_policy: 1, min_links: 1, lacp_rate: 1 };
const targets = [ip("10.6.0.1"), ip("10.6.0.2")];
const kinds = {
  d0: { kind: "dummy" },
  "v0.5": { kind: "vlan", id: 5, protocol: 0x8100 },
  "v0.6": { kind: "vlan", id: 4094, protocol: 0x88a8 },
  bond7: { kind: "bond", options: { numbers: { ...lacp, ad_actor_sys_prio: 7 }, actorSystem } },
  bond8: { kind: "bond", options: { numbers: { mode: 1, arp_interval: 50 }, arpIpTargets: targets } },
} satisfies Record<string, LinkKind>;

const demands: Record<string, LinkSpec> = {
  "ip link add address 02:00:00:00:00:03 mtu 1400 name v2 type veth peer address 02:00:00:00:00:04 name p2": {
    ...{ name: "v2", kind: { kind: "veth" }, mac: mac("02:00:00:00:00:03"), mtu: 1400 },
    peer: { name: "p2", mac: mac("02:00:00:00:00:04") },
  },
  "ip link add link v0 name m0 address 02:00:00:00:00:05 type macvlan mode bridge": {
    ...{ name: "m0", kind: { kind: "macvlan", mode: 4 }, parent: 7, mac: mac("02:00:00:00:00:05") },
  },
  "ip link add link v0 name m1 index 20 address 02:00:00:00:00:07 type macvlan mode private": {
    ...{ name: "m1", kind: { kind: "macvlan", mode: 1 }, index: 20, parent: 7, mac: mac("02:00:00:00:00:07") },
  },
  "ip link add b1 type bridge": { name: "b1", kind: { kind: "bridge" } },
};

const changes: Record<string, Ask> = {
  "ip link set v1 master b0": (to) => setLink(to, 8, { master: 9 }),
  "ip link set v1 nomaster": (to) => setLink(to, 8, { master: 0 }),
  "ip link set v1 mtu 1400": (to) => setLink(to, 8, { mtu: 1400 }),
  "ip link set v1 address 02:00:00:00:00:0a": (to) => setLink(to, 8, { mac: mac("02:00:00:00:00:0a") }),
  "ip link set v1 down": (to) => setLink(to, 8, { up: false }),
  "ip link set v1 name w1": (to) => setLink(to, 8, { name: "w1" }),
  "ip link set w1 up": (to) => setLink(to, 8, { up: true }),
  "ip link set w1 alias to-pod": (to) => setLink(to, 8, { alias: "to-pod" }),
  "ip link set w1 group 7": (to) => setLink(to, 8, { group: 7 }),
  "ip link set v0 alias gone": (to) => setLink(to, 7, { alias: "gone" }),
  'ip link set v0 alias ""': (to) => setLink(to, 7, { alias: "" }),
  "ip link set w1 master b0": (to) => setLink(to, 8, { master: 9 }),
  "ip link del m0": (to) => deleteLink(to, 4),
};

describe("link requests", () => {
  itSends("link", demands, newLink, changes);

  it("refuse a name with a NUL, which would cut it short", () => {
    expect(() => setLink(SILENT, 4, { name: "a\0b" })).toThrow(/NUL/);
  });
});

function shown(name: string) {
  const [message] = answersTo("link", `ip link show dev ${name}`);
  return message ?? expect.unreachable();
}

describe("links", () => {
  it("are read as `ip link show` shows them", () => {
    expect(linkOf(decodeLink(shown("w1")))).toMatchObject({
      ...{ index: 8, name: "w1", kind: { kind: "veth" }, mac: "02:00:00:00:00:0a", mtu: 1400, up: true, carrier: true },
      ...{ parent: 7, parentNetnsId: undefined, master: 9, alias: "to-pod", group: 7 },
    });
    expect(linkOf(decodeLink(shown("v0")))).toMatchObject({ index: 7, alias: "", group: 0 });
    expect(linkOf(decodeLink(shown("m1")))).toMatchObject({
      ...{ index: 20, kind: { kind: "macvlan", mode: 1 }, parent: 7, up: false, carrier: false, master: undefined },
    });
    expect(linkOf(decodeLink(shown("b0")))).toMatchObject({ kind: { kind: "bridge" }, parent: undefined });
    expect(linkOf(decodeLink(shown("lo")))).toMatchObject({ index: 1, kind: undefined, mac: "00:00:00:00:00:00" });
  });

  it("with values of a wrong length are refused", () => {
    const message = decodeLink(shown("w1"));
    for (const type of [4, 5, 10, 27, 37]) {
      const attributes = [...message.attributes, attribute(type, new Uint8Array(3))];
      expect(() => linkOf({ ...message, attributes })).toThrow(/3 bytes, want 4/);
    }
  });
});

describe("kinds", () => {
  it.each(sentFor("link", demands))("are read from what `ip` sends: $command", ({ value, message }) =>
    expect(decodeKind(decodeLink(message).attributes)).toEqual(value.kind),
  );

  it("that are unknown survive a round trip", () => {
    const attributes = [attribute(1, encodeUint32(9)), { type: 77, flags: 0x8000, value: new Uint8Array(3) }];
    const kind: LinkKind = { kind: "other", name: "ipvlan", attributes };
    const [read] = [decodeKind([{ ...encodeKind(kind), flags: 0 }])];
    expect(read).toEqual({ ...kind, name: "ipvlan" });
    expect(read && kindName(read)).toBe("ipvlan");
  });

  it("without their data, or with data that lie, are refused", () => {
    const bare = (name: string) => nest(18, [attribute(1, new TextEncoder().encode(`${name}\0`))]);
    expect(() => decodeKind([bare("macvlan")])).toThrow(/no macvlan mode/);
    expect(() => decodeKind([bare("vlan")])).toThrow(/no VLAN id/);
    expect(decodeKind([bare("veth")])).toEqual({ kind: "veth" });
    expect(decodeKind([nest(18, [])])).toBeUndefined();
  });

  it("of bonds: every option survives a round trip, and an actor of five bytes is refused", () => {
    const options = { numbers: { primary: 70_000, use_carrier: 0 }, nsIp6Targets: [ip("fd00::1")] };
    expect(decodeBond(encodeBond(options))).toEqual(options);
    expect(() => decodeBond([attribute(26, new Uint8Array(5))])).toThrow(/actor system of 5 bytes/);
    expect(() => decodeBond([attribute(1, new Uint8Array(2))])).toThrow(/2 bytes, want 1/);
  });
});

const commands = readRecorded("kinds").map(({ command }) => command);
const commandFor = (name: string) =>
  commands.find((command) => command.startsWith("ip link add") && command.split(" ").includes(name)) ??
  expect.unreachable(name);

function answered(name: string) {
  const messages = answersTo("kinds", `ip link show dev ${name}`);
  const message = messages.find((one) => linkOf(decodeLink(one)).name === name);
  return message ?? expect.unreachable(name);
}

describe.each<[name: string, kind: LinkKind]>(Object.entries(kinds))("%s", (name, kind) => {
  const demand: LinkSpec = { name, kind, ...(kind.kind === "vlan" && { parent: 7 }) };

  it("is asked for as `ip` asks, and the kernel made it", () => {
    expectSame("kinds", commandFor(name), (conversation) => createLink(conversation, demand));
    const row = readRecorded("kinds").find(({ command }) => command === commandFor(name));
    expect(row?.received.map(({ payload }) => payload)).toEqual(["00000000"]);
  });

  it("is written with everything that was requested", () => {
    expect(linkOf(decodeLink(answered(name)))).toMatchObject(demand);
  });
});
