/** Packet sockets on the real kernel, beyond the cases of detection (detection-*.test.ts): floods, ends, failures. */
import { execFileSync } from "node:child_process";
import { readdirSync, readlinkSync } from "node:fs";
import { constants } from "node:os";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { loadNative, type Native } from "../../host/kernel/native.ts";
import { decodeArp, encodeArpAnnouncement, encodeArpProbe } from "../../host/kernel/packet/arp.ts";
import { ETH_P_ARP } from "../../host/kernel/packet/ethernet.ts";
import { arpFilter } from "../../host/kernel/packet/segment.ts";
import { openPacketSocket } from "../../host/kernel/packet/socket.ts";
import { readSysctl } from "../world/sysctl.ts";
import { ip, mac } from "../world/values.ts";

const near = `bkpn${process.pid}`;
const far = `bkpf${process.pid}`;
const nearPath = `/run/netns/${near}`;
const NEAR_LINK = 7;
const nearMac = mac("02:00:00:00:00:01");
const farMac = mac("02:00:00:00:00:02");
const run = (netns: string, line: string) => execFileSync("ip", ["-n", netns, ...line.split(" ")]);
const openFds = () => readdirSync("/proc/self/fd").length;
/** Closing is done aside. */
const expectOpenFds = (count: number) => expect.poll(openFds, { interval: 5, timeout: 30_000 }).toBe(count);
/** The number of descriptors, once those that others left to be closed are closed. */
async function stableFds(): Promise<number> {
  const counts = [Number.NaN];
  const isStable = () => counts.push(openFds()) && counts.at(-1) === counts.at(-2);
  await expect.poll(isStable, { interval: 100, timeout: 30_000 }).toBe(true);
  return openFds();
}

beforeAll(async () => {
  for (const netns of [near, far]) execFileSync("ip", ["netns", "add", netns]);
  run(near, `link add v0 index ${NEAR_LINK} address ${nearMac} type veth peer name v1 address ${farMac} netns ${far}`);
  run(far, "addr add 10.6.0.1/24 dev v1");
  run(far, "link set v1 up");
  run(near, "link set v0 up");
  // Until the kernel has noticed the carrier, it drops all frames.
  const isUp = () => expect(String(run(near, "link show v0"))).toContain("state UP");
  await vi.waitFor(isUp, { timeout: 30_000, interval: 10 });
});

afterAll(() => {
  for (const netns of [near, far]) execFileSync("ip", ["netns", "del", netns]);
});

const openArp = (addresses: string[], native?: Native) =>
  openPacketSocket(
    { netnsPath: nearPath, link: NEAR_LINK, etherType: ETH_P_ARP, filter: arpFilter(addresses.map(ip)) },
    native,
  );

describe("a packet socket", () => {
  it("passes a flood in turns, all of it, in order", async () => {
    using socket = openArp(["10.6.0.61"]);
    using farSocket = openPacketSocket({
      netnsPath: `/run/netns/${far}`,
      link: Number(JSON.parse(run(far, "-j link show dev v1").toString())[0].ifindex),
      etherType: ETH_P_ARP,
      filter: arpFilter([]),
    });
    const count = 200;
    for (let index = 0; index < count; index++) {
      farSocket.send(
        encodeArpAnnouncement(mac(`02:00:00:00:01:${index.toString(16).padStart(2, "0")}`), ip("10.6.0.61")),
      );
    }
    let turns = 0;
    const received: string[] = [];
    await new Promise<void>((resolve) => {
      socket.listen({
        frame(frame) {
          received.push(decodeArp(frame)?.senderMac ?? "");
          if (received.length % 64 === 1) setImmediate(() => turns++);
          if (received.length === count) resolve();
        },
        failure: () => expect.unreachable(),
      });
    });
    expect(received).toEqual(
      Array.from({ length: count }, (_, index) => `02:00:00:00:01:${index.toString(16).padStart(2, "0")}`),
    );
    expect(turns).toBeGreaterThanOrEqual(3);
  });

  it("may be disposed of by its own listener", async () => {
    const before = await stableFds();
    for (let round = 0; round < 20; round++) {
      const socket = openArp(["10.6.0.1"]);
      await new Promise<void>((resolve) => {
        socket.listen({
          frame() {
            socket[Symbol.dispose]();
            resolve();
          },
          failure: () => expect.unreachable(),
        });
        for (let probe = 0; probe < 3; probe++) socket.send(encodeArpProbe(nearMac, ip("10.6.0.1")));
      });
    }
    await expectOpenFds(before);
  });

  it("that was disposed of says so, and does not touch a descriptor that may be another's by now", () => {
    const socket = openArp(["10.6.0.1"]);
    for (let round = 0; round < 2; round++) socket[Symbol.dispose]();
    expect(() => socket.send(encodeArpProbe(nearMac, ip("10.6.0.1")))).toThrow(/^Cannot send on link 7: .*EBADF/);
    expect(() => socket.receive()).toThrow(/^Cannot receive on link 7: .*EBADF/);
  });

  it.each<[keyof Native, RegExp]>([
    ["socket", /^Cannot open a packet socket on link 7: .*EPERM/],
    ["attachFilter", /^Cannot filter a packet socket on link 7: .*EPERM/],
    ["setsockopt", /^Cannot configure a packet socket on link 7: .*EPERM/],
    ["bind", /^Cannot bind a packet socket on link 7: .*EPERM/],
  ])("names the failed call when %s fails, and closes", async (name, message) => {
    const before = await stableFds();
    expect(() => openArp([], { ...loadNative(), [name]: () => -constants.errno.EPERM })).toThrow(message);
    await expectOpenFds(before);
  });

  it("names the failed call of watching or receiving, and a wrong link or group", () => {
    const native = loadNative();
    using unwatched = openArp([], { ...native, watch: () => -constants.errno.EEXIST });
    expect(() => unwatched.listen({ frame: () => {}, failure: () => {} })).toThrow(
      /^Cannot listen on link 7: .*EEXIST/,
    );
    using broken = openArp([], { ...native, recv: () => -constants.errno.EIO });
    expect(() => broken.receive()).toThrow(/^Cannot receive on link 7: .*EIO/);
    const results = [-constants.errno.EINTR, -constants.errno.EINTR, 3];
    using interrupted = openArp([], { ...native, recv: () => results.shift() ?? 0 });
    expect(interrupted.receive()).toHaveLength(3);
    const options = { netnsPath: nearPath, link: 99, etherType: ETH_P_ARP, filter: arpFilter([]) };
    expect(() => openPacketSocket(options)).toThrow(/^Cannot bind a packet socket on link 99: .*ENODEV/);
    expect(() => openPacketSocket({ ...options, groups: [nearMac] })).toThrow(
      /^Cannot join 02:.* on link 99: .*ENODEV/,
    );
  });
});

it("the sockets are in the other namespace, we are not", () => {
  using _socket = openArp([]);
  expect(readlinkSync("/proc/thread-self/ns/net")).toBe(readlinkSync(`/proc/${process.pid}/ns/net`));
  expect(execFileSync("ip", ["netns", "exec", near, "cat", "/proc/net/packet"]).toString()).toMatch(/ 0806 +7 /);
  expect(readSysctl(nearPath, "ipv4/conf/v0/forwarding")).toMatch(/^[01]$/);
});
