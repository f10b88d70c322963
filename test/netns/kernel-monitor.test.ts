/** Notifications of a namespace on the real kernel: carriers, addresses, and the end of duplicate detection. */
import { readdirSync } from "node:fs";
import { constants } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { loadNative, type Native } from "../../host/kernel/native.ts";
import { addressOf } from "../../host/kernel/netlink/address/address.ts";
import { IFA_F_DADFAILED } from "../../host/kernel/netlink/address/constants.ts";
import type { NetlinkError } from "../../host/kernel/netlink/error.ts";
import { decodeAddress, decodeLink } from "../../host/kernel/netlink/families.ts";
import { linkOf } from "../../host/kernel/netlink/link/link.ts";
import { createLink, setLink } from "../../host/kernel/netlink/link/requests.ts";
import type { Message } from "../../host/kernel/netlink/message.ts";
import { openMonitor, RTNLGRP_IPV6_IFADDR, RTNLGRP_LINK } from "../../host/kernel/netlink/monitor.ts";
import { openNetns } from "../../host/kernel/netns.ts";
import { formatIp } from "../../host/net/ip.ts";
import { linkIn, makeRoom, type Room } from "./kernel-room.ts";

let room: Room;
let path: string;
const openFds = () => readdirSync("/proc/self/fd").length;

beforeAll(() => {
  room = makeRoom("bkm");
  path = `/run/netns/${room.near}`;
  using netns = openNetns(`/run/netns/${room.far}`);
  createLink(room.here, { name: "v0", kind: { kind: "veth" }, up: true, peer: { name: "p0", netnsFd: netns.fd } });
});

afterAll(() => {
  room[Symbol.dispose]();
});

/** The first message for which `find` finds something, after `act`. */
function wait<T>(groups: number[], act: () => void, find: (message: Message) => T | undefined): Promise<T> {
  return new Promise((resolve, reject) => {
    const monitor = openMonitor(
      path,
      { groups },
      {
        message(message) {
          const found = find(message);
          if (found === undefined) return;
          monitor[Symbol.dispose]();
          resolve(found);
        },
        lost: reject,
      },
    );
    act();
  });
}

it("a carrier that comes is reported", async () => {
  expect(linkIn(room.here, "v0").carrier).toBe(false);
  const raise = () => setLink(room.there, linkIn(room.there, "p0").index, { up: true });
  const link = await wait([RTNLGRP_LINK], raise, (message) => {
    const reported = linkOf(decodeLink(message));
    return reported.name === "v0" && reported.carrier ? reported : undefined;
  });
  expect(link.up).toBe(true);
});

it("an address that the kernel finds taken is reported", async () => {
  room.show(room.far, "addr add fd00::5/64 dev p0 nodad");
  const add = () => room.show(room.near, "addr add fd00::5/64 dev v0");
  const address = await wait([RTNLGRP_IPV6_IFADDR], add, (message) => {
    const reported = message.type === 20 ? addressOf(decodeAddress(message)) : undefined;
    return reported !== undefined && (reported.flags & IFA_F_DADFAILED) !== 0 ? reported : undefined;
  });
  expect(formatIp(address.prefix.ip)).toBe("fd00::5");
});

it("lost or invalid notifications are reported, and the next one is received", async () => {
  const native = loadNative();
  const results = [-constants.errno.ENOBUFS, 5];
  const recv: Native["recv"] = (...words) => results.shift() ?? native.recv(...words);
  const lost: NetlinkError[] = [];
  await new Promise<void>((resolve) => {
    const listener = {
      message() {
        monitor[Symbol.dispose]();
        resolve();
      },
      lost: (error: NetlinkError) => void lost.push(error),
    };
    const monitor = openMonitor(path, { groups: [RTNLGRP_LINK] }, listener, { ...native, recv });
    setLink(room.here, linkIn(room.here, "v0").index, { mtu: 1400 });
  });
  expect(lost.map(({ errno }) => errno)).toEqual([constants.errno.ENOBUFS, constants.errno.EBADMSG]);
});

it("notifications wait for each other after the first, and are passed on at once when they are asked for", async () => {
  const native = loadNative();
  let watches = 0;
  const watch: Native["watch"] = (...words) => {
    watches++;
    return native.watch(...words);
  };
  const mtus: number[] = [];
  const listener = {
    message: (message: Message) => void mtus.push(linkOf(decodeLink(message)).mtu),
    lost: (error: NetlinkError) => expect.fail(error.message),
  };
  using monitor = openMonitor(path, { groups: [RTNLGRP_LINK], gatherMs: 300 }, listener, { ...native, watch });
  const change = (mtu: number) => setLink(room.here, linkIn(room.here, "v0").index, { mtu });
  change(1_301);
  await expect.poll(() => mtus.at(-1), { interval: 5 }).toBe(1_301);
  change(1_302);
  await sleep(50);
  expect(mtus).not.toContain(1_302);
  expect(monitor.drain()).toBe(true);
  expect(mtus.at(-1)).toBe(1_302);
  change(1_303);
  await expect.poll(() => mtus.at(-1), { interval: 5 }).toBe(1_303);
  // Nothing has come for a while: the next one is passed on at once.
  await expect.poll(() => watches, { interval: 5 }).toBe(2);
  change(1_304);
  await sleep(50);
  expect(mtus.at(-1)).toBe(1_304);
});

it.each<[keyof Native, RegExp]>([
  ["socket", /^Cannot open a netlink monitor: .*EPERM/],
  ["connect", /^Cannot connect a netlink monitor: .*EPERM/],
  ["setsockopt", /^Cannot join netlink group 1: .*EPERM/],
  ["watch", /^Cannot watch a netlink monitor: .*EPERM/],
])("names the failed call when %s fails, and closes", (name, message) => {
  const before = openFds();
  const broken = { ...loadNative(), [name]: () => -constants.errno.EPERM };
  const listener = { message: () => {}, lost: () => {} };
  expect(() => openMonitor(path, { groups: [RTNLGRP_LINK] }, listener, broken)).toThrow(message);
  expect(openFds()).toBe(before);
});
