/** Packet sockets on the real kernel: two namespaces over a veth, the other side's kernel answers. */
import { execFileSync } from "node:child_process";
import { readdirSync, readlinkSync } from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { loadNative, type Native } from "../../host/kernel/native.ts";
import { ARP_REPLY, decodeArp, encodeArpAnnouncement, encodeArpProbe } from "../../host/kernel/packet/arp.ts";
import { ETH_P_ARP, ETH_P_IPV6 } from "../../host/kernel/packet/ethernet.ts";
import {
  decodeNdp,
  encodeNdpAnnouncement,
  encodeNdpProbe,
  encodeNdpSolicitation,
  multicastMac,
  solicitedNode,
} from "../../host/kernel/packet/ndp.ts";
import { arpFilter, ndpFilter } from "../../host/kernel/packet/segment.ts";
import type { PacketError } from "../../host/kernel/packet/socket.ts";
import { openPacketSocket, type PacketSocket } from "../../host/kernel/packet/socket.ts";
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
const expectOpenFds = (count: number) => expect.poll(openFds, { interval: 5, timeout: 5_000 }).toBe(count);
/** Once what others left to be closed is closed. */
async function stableFds(): Promise<number> {
  const counts = [Number.NaN];
  const isStable = () => counts.push(openFds()) && counts.at(-1) === counts.at(-2);
  await expect.poll(isStable, { interval: 100, timeout: 5_000 }).toBe(true);
  return openFds();
}

beforeAll(async () => {
  execFileSync(join(import.meta.dirname, "../../native/build.sh"), ["addon"], { stdio: "inherit" });
  for (const netns of [near, far]) execFileSync("ip", ["netns", "add", netns]);
  run(near, `link add v0 index ${NEAR_LINK} address ${nearMac} type veth peer name v1 address ${farMac} netns ${far}`);
  run(far, "addr add 10.6.0.1/24 dev v1");
  run(far, "addr add fd00::1/64 dev v1 nodad");
  run(far, "link set v1 up");
  run(near, "link set v0 up");
  // Until the kernel has noticed the carrier, it drops what is sent.
  const isUp = () => expect(String(run(near, "link show v0"))).toContain("state UP");
  await vi.waitFor(isUp, { timeout: 10_000, interval: 10 });
});

afterAll(() => {
  for (const netns of [near, far]) execFileSync("ip", ["netns", "del", netns]);
});

const openArp = (addresses: string[], native?: Native) =>
  openPacketSocket(
    { netnsPath: nearPath, link: NEAR_LINK, etherType: ETH_P_ARP, filter: arpFilter(addresses.map(ip)) },
    native,
  );

const openNdp = (addresses: string[]) => {
  const groups = addresses.map(ip).map(solicitedNode).map(multicastMac);
  const filter = ndpFilter(addresses.map(ip));
  return openPacketSocket({ netnsPath: nearPath, link: NEAR_LINK, etherType: ETH_P_IPV6, filter, groups });
};

/** The next frame that comes. */
function nextFrame(socket: PacketSocket): Promise<Uint8Array> {
  return new Promise((resolve, reject) => socket.listen({ frame: resolve, failure: reject }));
}

describe("a packet socket", () => {
  it("receives the answer to an ARP probe", async () => {
    using socket = openArp(["10.6.0.1"]);
    const received = nextFrame(socket);
    socket.send(encodeArpProbe(nearMac, ip("10.6.0.1")));
    expect(decodeArp(await received)).toMatchObject({
      operation: ARP_REPLY,
      destination: nearMac,
      senderMac: farMac,
      senderIp: ip("10.6.0.1"),
    });
  });

  it("receives the answer to a solicitation from ::, which goes to all nodes, and to one from an address", async () => {
    run(near, "addr replace fd00::2/64 dev v0 nodad");
    const frames = [
      encodeNdpProbe(nearMac, ip("fd00::1"), Uint8Array.of(1, 2, 3, 4, 5, 6)),
      encodeNdpSolicitation(nearMac, ip("fd00::2"), ip("fd00::1")),
    ];
    for (const frame of frames) {
      using socket = openNdp(["fd00::1"]);
      const received = nextFrame(socket);
      socket.send(frame);
      const answer = decodeNdp(await received);
      expect(answer).toMatchObject({ kind: "advertisement", target: ip("fd00::1"), linkLayer: farMac });
    }
  });

  it("receives a rival's probe of its candidate, through a link that lets only joined groups in", async () => {
    using socket = openNdp(["fd00::77"]);
    const received = nextFrame(socket);
    run(far, "addr add fd00::77/64 dev v1"); // the kernel sends its probe within a second
    expect(decodeNdp(await received)).toMatchObject({
      kind: "solicitation",
      target: ip("fd00::77"),
      sourceMac: farMac,
    });
    expect(run(near, "maddr show dev v0").toString()).toContain("33:33:ff:00:00:77");
  });

  it("receives neither what it sent nor what its filter rejects", async () => {
    using socket = openArp(["10.6.0.50"]);
    using other = openArp(["10.6.0.1", "10.6.0.50"]);
    const received = nextFrame(other);
    socket.send(encodeArpProbe(nearMac, ip("10.6.0.50")));
    socket.send(encodeArpProbe(nearMac, ip("10.6.0.1")));
    expect(decodeArp(await received)?.operation).toBe(ARP_REPLY);
    expect(socket.receive()).toBeUndefined();
    expect(other.receive()).toBeUndefined();
  });

  it("announces: the other side's kernel learns the MAC", () => {
    run(far, `neigh replace 10.6.0.60 lladdr 02:00:00:00:00:99 nud stale dev v1`);
    run(far, `neigh replace fd00::60 lladdr 02:00:00:00:00:99 nud stale dev v1`);
    using arp = openArp([]);
    using ndp = openNdp([]);
    arp.send(encodeArpAnnouncement(nearMac, ip("10.6.0.60")));
    ndp.send(encodeNdpAnnouncement(nearMac, ip("fd00::60")));
    const table = run(far, "neigh show dev v1").toString();
    expect(table).toContain(`10.6.0.60 lladdr ${nearMac}`);
    expect(table).toContain(`fd00::60 lladdr ${nearMac}`);
  });

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

  it("tells its listener that the link went down, and receives again when it is up", async () => {
    using socket = openArp(["10.6.0.1"]);
    const failures: PacketError[] = [];
    const frames: Uint8Array[] = [];
    let wake = () => {};
    socket.listen({
      frame(frame) {
        frames.push(frame);
        wake();
      },
      failure(error) {
        failures.push(error);
        wake();
      },
    });
    const event = () => new Promise<void>((resolve) => (wake = resolve));
    let next = event();
    run(near, "link set v0 down");
    await next;
    expect(failures).toMatchObject([{ name: "PacketError", link: NEAR_LINK, errno: constants.errno.ENETDOWN }]);
    expect(failures[0]?.message).toMatch(/^Cannot receive on link 7: .*ENETDOWN/);
    expect(() => socket.send(encodeArpProbe(nearMac, ip("10.6.0.1")))).toThrow(/^Cannot send on link 7: .*ENETDOWN/);
    run(near, "link set v0 up");
    next = event();
    // more than once: the other side drops what it sends until its kernel has noticed the carrier
    const again = setInterval(() => socket.send(encodeArpProbe(nearMac, ip("10.6.0.1"))), 20);
    await next.finally(() => clearInterval(again));
    expect(decodeArp(frames[0] ?? expect.unreachable())?.operation).toBe(ARP_REPLY);
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

  const failing: [keyof Native, RegExp][] = [
    ["socket", /^Cannot open a packet socket on link 7: .*EPERM/],
    ["attachFilter", /^Cannot filter a packet socket on link 7: .*EPERM/],
    ["setsockopt", /^Cannot configure a packet socket on link 7: .*EPERM/],
    ["bind", /^Cannot bind a packet socket on link 7: .*EPERM/],
  ];
  it.each(failing)("names what failed when %s does, and closes", async (name, message) => {
    const before = await stableFds();
    expect(() => openArp([], { ...loadNative(), [name]: () => -constants.errno.EPERM })).toThrow(message);
    await expectOpenFds(before);
  });

  it("names what failed when watching or receiving does, and when the link or group is wrong", () => {
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

  it("takes microseconds for a round trip", async () => {
    using socket = openArp(["10.6.0.1"]);
    const times: number[] = [];
    let arrived = () => {};
    socket.listen({ frame: () => arrived(), failure: () => expect.unreachable() });
    const probe = encodeArpProbe(nearMac, ip("10.6.0.1"));
    for (let round = 0; round < 2_000; round++) {
      const start = performance.now();
      await new Promise<void>((resolve) => {
        arrived = resolve;
        socket.send(probe);
      });
      times.push(performance.now() - start);
    }
    times.sort((a, b) => a - b);
    const at = (part: number) => ((times[Math.floor(times.length * part)] ?? Number.NaN) * 1_000).toFixed(0);
    console.log(`ARP round trip over a veth: p50 ${at(0.5)} µs, p99 ${at(0.99)} µs`);
    expect(times[1_000]).toBeLessThan(1);
  });
});

it("the sockets are in the other namespace, we are not", () => {
  using _socket = openArp([]);
  expect(readlinkSync("/proc/thread-self/ns/net")).toBe(readlinkSync(`/proc/${process.pid}/ns/net`));
  expect(execFileSync("ip", ["netns", "exec", near, "cat", "/proc/net/packet"]).toString()).toMatch(/ 0806 +7 /);
  expect(readSysctl(nearPath, "ipv4/conf/v0/forwarding")).toMatch(/^[01]$/);
});
