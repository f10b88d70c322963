/** Links on the real kernel: what we make, `ip` shows, and what is there, we read. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readFirstLinkNames } from "../../host/kernel/link-names.ts";
import type { Conversation } from "../../host/kernel/netlink/conversation.ts";
import { linkOf } from "../../host/kernel/netlink/link/link.ts";
import {
  createLink,
  deleteLink,
  findLink,
  findLinkByIndex,
  listLinks,
  setLink,
  setLinkKind,
} from "../../host/kernel/netlink/link/requests.ts";
import { openNetns } from "../../host/kernel/netns.ts";
import { mac } from "../world/values.ts";
import { linkIn, makeRoom, type Room } from "./kernel-room.ts";
import { showIn } from "./kernel-scene.ts";

let room: Room;
let near: string;
let far: string;
let here: Conversation;
let there: Conversation;

beforeAll(() => {
  room = makeRoom("bkl");
  ({ near, far, here, there } = room);
});

afterAll(() => {
  room[Symbol.dispose]();
});

const json = (netns: string, line: string) => room.json(netns, line);

const veth = (name: string, index: number) => ({
  name,
  kind: { kind: "veth" } as const,
  index,
  peer: { name: `${name}p` },
});

describe("names of the first links", () => {
  it("are those of the namespace, also of very many, and none of the caller's", () => {
    using netns = openNetns(`/run/netns/${far}`);
    const read = () => readFirstLinkNames({ fd: netns.fd, path: far });
    const all = () => listLinks(there).map((link) => linkOf(link).name);
    createLink(there, { name: "dot.1", kind: { kind: "bridge" } });
    expect(read().sort()).toEqual(all().sort());
    for (let at = 0; at < 60; at++) createLink(there, { name: `abcdefghijk${at}`, kind: { kind: "bridge" } });
    const found = read();
    expect(found.length).toBeGreaterThan(15);
    expect(all()).toEqual(expect.arrayContaining(found));
    for (const name of all().filter((each) => each.startsWith("abcdefghijk") || each === "dot.1"))
      deleteLink(there, linkIn(there, name).index);
    expect(read().sort()).toEqual(all().sort());
  });
});

describe("links", () => {
  it("a veth with its peer in another namespace, both as asked", () => {
    using netns = openNetns(`/run/netns/${far}`);
    const peer = { name: "p0", mac: mac("02:00:00:00:00:02"), mtu: 1400, netnsFd: netns.fd };
    createLink(here, { name: "v0", kind: { kind: "veth" }, mac: mac("02:00:00:00:00:01"), mtu: 1400, up: true, peer });
    setLink(there, linkIn(there, "p0").index, { up: true });
    const [near0, far0] = [linkIn(here, "v0"), linkIn(there, "p0")];
    expect(near0).toMatchObject({
      kind: { kind: "veth" },
      mac: "02:00:00:00:00:01",
      mtu: 1400,
      up: true,
      carrier: true,
    });
    expect(far0).toMatchObject({ kind: { kind: "veth" }, mac: "02:00:00:00:00:02", mtu: 1400, up: true });
    expect([near0.parent, far0.parent]).toEqual([far0.index, near0.index]);
    expect(near0.parentNetnsId).toBeGreaterThanOrEqual(0);
    expect(json(far, "link show p0")[0]).toMatchObject({ address: "02:00:00:00:00:02", mtu: 1400 });
  });

  it("a veth with as many queues as asked, at both ends", () => {
    using netns = openNetns(`/run/netns/${far}`);
    const peer = { name: "q1", netnsFd: netns.fd, queues: 1 };
    createLink(here, { name: "q0", kind: { kind: "veth" }, queues: 1, peer });
    for (const [namespace, name] of [
      [near, "q0"],
      [far, "q1"],
    ] as const) {
      expect(json(namespace, `-d link show ${name}`)[0]).toMatchObject({ num_tx_queues: 1, num_rx_queues: 1 });
    }
  });

  it("a bridge and its member, a macvlan and its mode", () => {
    createLink(here, { name: "b0", kind: { kind: "bridge" } });
    const [v0, b0] = [linkIn(here, "v0"), linkIn(here, "b0")];
    setLink(here, v0.index, { master: b0.index });
    expect(linkIn(here, "v0").master).toBe(b0.index);
    expect(json(near, "link show v0")[0].master).toBe("b0");
    setLink(here, v0.index, { master: 0 });
    expect(linkIn(here, "v0").master).toBeUndefined();
    createLink(here, { name: "m0", kind: { kind: "macvlan", mode: 4 }, parent: v0.index });
    expect(linkIn(here, "m0")).toMatchObject({ kind: { kind: "macvlan", mode: 4 }, parent: v0.index });
    setLinkKind(here, linkIn(here, "m0").index, { kind: "macvlan", mode: 1 });
    expect(json(near, "link show m0")[0].linkinfo.info_data.mode).toBe("private");
  });

  it("up, MAC, MTU, name and namespace change", () => {
    createLink(here, veth("w0", 50));
    setLink(here, 50, { mac: mac("02:00:00:00:00:50"), mtu: 1300, up: true });
    expect(linkIn(here, "w0")).toMatchObject({
      index: 50,
      mac: "02:00:00:00:00:50",
      mtu: 1300,
      up: true,
      carrier: false,
    });
    setLink(here, 50, { up: false });
    setLink(here, 50, { name: "w1" });
    expect(linkOf(findLinkByIndex(here, 50) ?? expect.unreachable())).toMatchObject({ name: "w1", up: false });
    using netns = openNetns(`/run/netns/${far}`);
    setLink(here, 50, { netnsFd: netns.fd });
    expect(findLink(here, "w1")).toBeUndefined();
    expect(deleteLink(there, linkIn(there, "w1").index)).toBe(true);
    expect(findLink(here, "w0p")).toBeUndefined(); // both ends go
  });

  it("settings of both families change in one request", () => {
    createLink(here, veth("f0", 52));
    setLink(here, 52, { rpFilter: 2, addressGeneration: 1 });
    expect(showIn(near, "-4 netconf show dev f0")).toContain("rp_filter loose");
    expect(json(near, "-d link show f0")[0].inet6_addr_gen_mode).toBe("none");
    expect(deleteLink(here, 52)).toBe(true);
  });

  it("are listed as `ip` lists them, and are gone when deleted", () => {
    const names = json(near, "link show").map((one: { ifname: string }) => one.ifname);
    const links = listLinks(here).map(linkOf);
    expect(links.map(({ name }) => name).sort()).toEqual(names.sort());
    // a list says of each what a question for it says
    expect(links).toEqual(links.map(({ index }) => linkOf(findLinkByIndex(here, index) ?? expect.unreachable())));
    const { index } = linkIn(here, "m0");
    expect([deleteLink(here, index), deleteLink(here, index)]).toEqual([true, false]);
    expect(findLinkByIndex(here, index)).toBeUndefined();
  });

  it("that cannot be made or changed are errors in the kernel's words", () => {
    const kind = { kind: "macvlan", mode: 4 } as const;
    expect(() => createLink(here, { name: "b0", kind: { kind: "bridge" } })).toThrow(
      /^Cannot create link "b0" of kind bridge: .*EEXIST/,
    );
    expect(() => createLink(here, { name: "m1", kind, parent: 999 })).toThrow(/^Cannot create link "m1".*ENODEV/);
    expect(() => createLink(here, { name: "x1", kind: { kind: "other", name: "no-such", attributes: [] } })).toThrow(
      /^Cannot create link "x1" of kind no-such: .*Unknown device type/,
    );
    expect(() => setLink(here, 999, { up: true })).toThrow(/^Cannot set link 999 up: .*ENODEV/);
    expect(() => setLink(here, linkIn(here, "v0").index, { mtu: 1 })).toThrow(/^Cannot set link \d+ mtu 1: .*mtu less/);
  });
});
