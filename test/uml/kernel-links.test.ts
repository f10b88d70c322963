/** Kinds of links that many kernels lack, on a kernel that has them: `ip` shows ours, and we read those of `ip`. */
import { execFileSync } from "node:child_process";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Conversation } from "../../host/kernel/netlink/conversation.ts";
import { NetlinkError } from "../../host/kernel/netlink/error.ts";
import type { LinkKind } from "../../host/kernel/netlink/link/kind.ts";
import { linkOf } from "../../host/kernel/netlink/link/link.ts";
import { createLink, deleteLink, listLinks, setLink } from "../../host/kernel/netlink/link/requests.ts";
import { openNetns } from "../../host/kernel/netns.ts";
import { linkIn, makeRoom, type Room } from "../netns/kernel-room.ts";
import { mac } from "../world/values.ts";

let room: Room;
let here: Conversation;

beforeAll(() => {
  room = makeRoom("ukl");
  here = room.here;
});

afterAll(() => {
  room[Symbol.dispose]();
});

/** Every test begins with two dummies and nothing else. */
beforeEach(() => {
  for (const { index } of listLinks(here)) if (index !== 1) deleteLink(here, index);
  for (const name of ["d0", "d1"]) createLink(here, { name, kind: { kind: "dummy" } });
});

const index = (name: string) => linkIn(here, name).index;
const json = (name: string) => room.json(room.near, `link show ${name}`)[0];
const byIp = (line: string) => room.show(room.near, line);
const inNear = (...argv: string[]) => execFileSync("ip", ["netns", "exec", room.near, ...argv]).toString();
const vlan = (id: number, protocol = 0x8100): LinkKind => ({ kind: "vlan", id, protocol });
const backup: LinkKind = { kind: "bond", options: { numbers: { mode: 1, miimon: 100 } } };

it("a dummy is made as asked, and read as `ip` made it", () => {
  createLink(here, { name: "d2", kind: { kind: "dummy" }, mac: mac("02:00:00:00:00:02"), mtu: 1400, up: true });
  expect(json("d2")).toMatchObject({ address: "02:00:00:00:00:02", mtu: 1400, linkinfo: { info_kind: "dummy" } });
  expect(linkIn(here, "d2")).toMatchObject({ kind: { kind: "dummy" }, mtu: 1400, up: true, carrier: true });
  byIp("link add d3 address 02:00:00:00:00:03 mtu 1300 type dummy");
  expect(linkIn(here, "d3")).toMatchObject({ kind: { kind: "dummy" }, mac: "02:00:00:00:00:03", mtu: 1300 });
});

describe("a VLAN", () => {
  it.each<[id: number, protocol: number, text: string]>([
    [1, 0x8100, "802.1Q"],
    [4094, 0x8100, "802.1Q"],
    [100, 0x88a8, "802.1ad"],
  ])("%i of protocol %i on a parent", (id, protocol, text) => {
    createLink(here, { name: "v0", kind: vlan(id, protocol), parent: index("d0") });
    expect(json("v0")).toMatchObject({
      link: "d0",
      linkinfo: { info_kind: "vlan", info_data: { protocol: text, id } },
    });
    expect(linkIn(here, "v0")).toMatchObject({ kind: vlan(id, protocol), parent: index("d0"), mtu: 1500 });
    expect(linkIn(here, "v0").mac).toBe(linkIn(here, "d0").mac);
    expect(inNear("cat", "/proc/net/vlan/v0")).toContain(`VID: ${id}\t`);
    deleteLink(here, index("v0"));
    byIp(`link add link d0 name v0 type vlan proto ${text} id ${id}`);
    expect(linkIn(here, "v0")).toMatchObject({ kind: vlan(id, protocol), parent: index("d0") });
  });

  it("on a VLAN, and in another namespace than its parent", () => {
    createLink(here, { name: "outer", kind: vlan(7, 0x88a8), parent: index("d0") });
    createLink(here, { name: "inner", kind: vlan(7), parent: index("outer") });
    expect(json("inner")).toMatchObject({ link: "outer" });
    using netns = openNetns(`/run/netns/${room.far}`);
    createLink(here, { name: "away", kind: vlan(8), parent: index("d0"), netnsFd: netns.fd });
    expect(linkIn(room.there, "away")).toMatchObject({ kind: vlan(8), parent: index("d0") });
    expect(linkIn(room.there, "away").parentNetnsId).toBeGreaterThanOrEqual(0);
    deleteLink(here, index("d0"));
    expect(listLinks(room.there).map((one) => linkOf(one).name)).toEqual(["lo"]); // it goes with its parent
  });

  it("carries frames with its tag", () => {
    createLink(here, { name: "e0", kind: { kind: "veth" }, peer: { name: "e1" } });
    setLink(here, index("e0"), { up: true });
    setLink(here, index("e1"), { up: true });
    for (const [name, parent] of [
      ["t0", "e0"],
      ["t1", "e1"],
    ] as const)
      createLink(here, { name, kind: vlan(42), parent: index(parent), up: true });
    using netns = openNetns(`/run/netns/${room.far}`);
    setLink(here, index("t1"), { netnsFd: netns.fd });
    setLink(room.there, linkIn(room.there, "t1").index, { up: true });
    byIp("addr add 10.42.0.1/24 dev t0");
    room.show(room.far, "addr add 10.42.0.2/24 dev t1");
    expect(inNear("ping", "-c1", "-W5", "10.42.0.2")).toContain("1 received");
    deleteLink(room.there, linkIn(room.there, "t1").index);
  });

  it.each<[what: string, kind: LinkKind, parent: string | undefined, text: string]>([
    ["a number beyond 4094", vlan(4095), "d0", "(ERANGE): 8021q: Invalid VLAN id"],
    ["a protocol that is none", vlan(5, 0x0800), "d0", "(EPROTONOSUPPORT): 8021q: Invalid VLAN protocol"],
    ["no parent", vlan(5), undefined, "(EINVAL): 8021q: link not specified"],
    ["a loopback for a parent", vlan(5), "lo", "(EOPNOTSUPP): 8021q: VLANs not supported on device"],
  ])("that cannot be: %s", (_, kind, parent, text) => {
    const demand = { name: "v1", kind, ...(parent === undefined ? {} : { parent: index(parent) }) };
    expect(() => createLink(here, demand)).toThrow(NetlinkError);
    expect(() => createLink(here, demand)).toThrow(/^Cannot create link "v1" of kind vlan: /);
    expect(() => createLink(here, demand)).toThrow(text);
  });

  it("a number twice on one parent is refused with the present link", () => {
    createLink(here, { name: "v0", kind: vlan(5), parent: index("d0") });
    expect(() => createLink(here, { name: "v1", kind: vlan(5), parent: index("d0") })).toThrow(
      /^Cannot create link "v1" of kind vlan: .*\(EEXIST\): 8021q: VLAN device already exists/,
    );
    createLink(here, { name: "v1", kind: vlan(5, 0x88a8), parent: index("d0") });
  });
});

describe("a bond", () => {
  it("has members, which leave again", () => {
    createLink(here, { name: "b0", kind: backup, up: true });
    for (const name of ["d0", "d1"]) setLink(here, index(name), { master: index("b0") });
    expect(inNear("cat", "/sys/class/net/b0/bonding/slaves").trim()).toBe("d0 d1");
    expect([json("d0"), json("d1")]).toMatchObject([{ master: "b0" }, { master: "b0" }]);
    expect([linkIn(here, "d0"), linkIn(here, "d1")]).toMatchObject([
      { master: index("b0"), up: true, mac: linkIn(here, "b0").mac },
      { master: index("b0"), up: true, mac: linkIn(here, "b0").mac },
    ]);
    expect(linkIn(here, "b0").carrier).toBe(true);
    setLink(here, index("d0"), { master: 0 });
    expect(inNear("cat", "/sys/class/net/b0/bonding/slaves").trim()).toBe("d1");
    expect(linkIn(here, "d0").master).toBeUndefined();
    deleteLink(here, index("b0"));
    expect(linkIn(here, "d1").master).toBeUndefined();
  });

  it("has a VLAN, which is up with the bond's MAC", () => {
    createLink(here, { name: "b0", kind: backup, mac: mac("02:00:00:00:00:b0"), up: true });
    setLink(here, index("d0"), { master: index("b0") });
    createLink(here, { name: "b0.100", kind: vlan(100), parent: index("b0"), up: true });
    expect(json("b0.100")).toMatchObject({ link: "b0", address: "02:00:00:00:00:b0" });
    expect(linkIn(here, "b0.100")).toMatchObject({ kind: vlan(100), parent: index("b0"), carrier: true });
  });

  it("takes a member from another, but no loopback and none of its own VLANs", () => {
    createLink(here, { name: "b0", kind: backup });
    createLink(here, { name: "b1", kind: backup });
    createLink(here, { name: "b0.5", kind: vlan(5), parent: index("b0") });
    const enslave = (name: string, bond: string) => () => setLink(here, index(name), { master: index(bond) });
    enslave("d0", "b1")();
    enslave("d0", "b0")(); // leaves the other
    expect(inNear("cat", "/sys/class/net/b1/bonding/slaves").trim()).toBe("");
    expect(enslave("lo", "b0")).toThrow(/^Cannot set link 1 master \d+: .*\(EPERM\): Can not enslave VLAN challenged/);
    expect(enslave("b0.5", "b0")).toThrow(/^Cannot set link \d+ master \d+: .*\(ENETDOWN\)$/);
    expect(enslave("d1", "d0")).toThrow(/^Cannot set link \d+ master \d+: .*\(EOPNOTSUPP\)$/);
    expect([linkIn(here, "d0").master, linkIn(here, "d1").master]).toEqual([index("b0"), undefined]);
  });
});

/**
 * Kinds that we do not make are kept as they came: made by `ip`, read, made again from our reading, they are the same
 * to `ip`.
 */
describe("a kind that is not ours", () => {
  it.each<[name: string, line: string, ofIp: object]>([
    ["ipvlan", "link add link d0 name x0 type ipvlan mode l3s private", { mode: "l3s", private: true }],
    ["ipvlan", "link add link d0 name x0 type ipvlan mode l2 vepa", { mode: "l2", vepa: true }],
    ["vrf", "link add x0 type vrf table 1000", { table: 1000 }],
  ])("%s by `%s`", (name, line, ofIp) => {
    byIp(line);
    const before = json("x0");
    expect(before.linkinfo).toMatchObject({ info_kind: name, info_data: ofIp });
    const { kind, parent } = linkIn(here, "x0");
    expect(kind).toMatchObject({ kind: "other", name });
    deleteLink(here, index("x0"));
    createLink(here, { name: "x0", kind: kind ?? expect.unreachable(), parent });
    expect(json("x0").linkinfo).toEqual(before.linkinfo);
    expect(linkIn(here, "x0")).toMatchObject({ kind, parent });
  });

  it("an ipvlan has its parent's MAC, which cannot be changed", () => {
    byIp("link add link d0 name x0 type ipvlan mode l2");
    expect(linkIn(here, "x0").mac).toBe(linkIn(here, "d0").mac);
    expect(() => setLink(here, index("x0"), { mac: mac("02:00:00:00:00:77") })).toThrow(
      /^Cannot set link \d+ address 02:00:00:00:00:77: .*\(EOPNOTSUPP\)/,
    );
  });

  it("a member of a vrf has its master", () => {
    byIp("link add x0 type vrf table 1000");
    setLink(here, index("d0"), { master: index("x0") });
    expect([linkIn(here, "d0").master, json("d0").master]).toEqual([index("x0"), "x0"]);
  });

  const bare = (name: string) => () => createLink(here, { name: "x1", kind: { kind: "other", name, attributes: [] } });
  it("that lacks something is refused in the words of its driver", () => {
    expect(bare("vrf")).toThrow(/^Cannot create link "x1" of kind vrf: .*\(EINVAL\): VRF table id is missing$/);
    expect(bare("ipvlan")).toThrow(/^Cannot create link "x1" of kind ipvlan: .*\(EINVAL\)$/);
    expect(bare("no-such")).toThrow(/^Cannot create link "x1" of kind no-such: .*Unknown device type$/);
  });
});
