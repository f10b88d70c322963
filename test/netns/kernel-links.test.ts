/** Links on the real kernel, beyond the cases of kernel-apply.test.ts and kernel-observe.test.ts. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { readFirstLinkNames } from "../../host/kernel/link-names.ts";
import { linkOf } from "../../host/kernel/netlink/link/link.ts";
import { createLink, deleteLink, listLinks, setLink } from "../../host/kernel/netlink/link/requests.ts";
import { openNetns } from "../../host/kernel/netns.ts";
import { linkIn, makeRoom, type Room } from "./kernel-room.ts";

let room: Room;

beforeAll(() => {
  room = makeRoom("bkl");
});

afterAll(() => {
  room[Symbol.dispose]();
});

it("the names of the first links are those of the namespace, also of very many, and none of the caller's", () => {
  const { far, there } = room;
  using netns = openNetns(`/run/netns/${far}`);
  const read = () => readFirstLinkNames({ fd: netns.fd, path: far });
  const all = () => listLinks(there).map((link) => linkOf(link).name);
  createLink(there, { name: "éth.1", kind: { kind: "bridge" } });
  expect(read().sort()).toEqual(all().sort());
  for (let at = 0; at < 60; at++) createLink(there, { name: `abcdefghijk${at}`, kind: { kind: "bridge" } });
  const found = read();
  expect(found.length).toBeGreaterThan(15);
  expect(all()).toEqual(expect.arrayContaining(found));
  for (const name of all().filter((each) => each.startsWith("abcdefghijk") || each === "éth.1"))
    deleteLink(there, linkIn(there, name).index);
  expect(read().sort()).toEqual(all().sort());
});

it("links that cannot be made or changed are errors in the kernel's words", () => {
  const { here } = room;
  const kind = { kind: "macvlan", mode: 4 } as const;
  createLink(here, { name: "b0", kind: { kind: "bridge" } });
  expect(() => createLink(here, { name: "b0", kind: { kind: "bridge" } })).toThrow(
    /^Cannot create link "b0" of kind bridge: .*EEXIST/,
  );
  expect(() => createLink(here, { name: "m1", kind, parent: 999 })).toThrow(/^Cannot create link "m1".*ENODEV/);
  expect(() => createLink(here, { name: "x1", kind: { kind: "other", name: "no-such", attributes: [] } })).toThrow(
    /^Cannot create link "x1" of kind no-such: .*Unknown device type/,
  );
  expect(() => setLink(here, 999, { up: true })).toThrow(/^Cannot set link 999 up: .*ENODEV/);
  expect(() => setLink(here, linkIn(here, "b0").index, { mtu: 1 })).toThrow(/^Cannot set link \d+ mtu 1: .*mtu less/);
});
