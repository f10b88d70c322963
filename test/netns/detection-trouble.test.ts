/** Conflict detection in trouble, on the real kernel: links that go, rivals that ask at the same moment. */

import { readdirSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { Announcer } from "../../host/coordinator/announcer.ts";
import { CARRIER_WAIT_MS } from "../../host/coordinator/probe-session.ts";
import { encodeArpAnnouncement } from "../../host/kernel/packet/arp.ts";
import { ETH_P_ARP } from "../../host/kernel/packet/ethernet.ts";
import { arpFilter } from "../../host/kernel/packet/segment.ts";
import { openPacketSocket } from "../../host/kernel/packet/socket.ts";
import { ip } from "../world/values.ts";
import { conflictOf, detect, type Lab, makeLab, type Pod, run, WINDOW_MS } from "./detection-lab.ts";

const FREE: [string, string] = ["10.6.0.70", "fd00::70"];
const unreachable = (error: unknown) => expect.unreachable(String(error));
const openFds = () => readdirSync("/proc/self/fd").length;

let lab: Lab;
let pod: Pod;
let owner: Pod;
let scripted: Pod;

beforeAll(() => {
  lab = makeLab("bkdt");
  pod = lab.addPod();
  scripted = lab.addPod();
  owner = lab.addPod({ addresses: ["10.6.0.1/24", "fd00::1/64"], ipv6: true });
});

afterAll(() => lab[Symbol.dispose]());

it("frames of a VLAN that is not configured are ignored, although they arrive without their tag", async () => {
  const { netnsPath, index, mac } = scripted.link;
  using socket = openPacketSocket({ netnsPath, link: index, etherType: ETH_P_ARP, filter: arpFilter([]) });
  const announcement = encodeArpAnnouncement(mac, ip("10.6.0.70"));
  const tagged = Uint8Array.of(...announcement.subarray(0, 12), 0x81, 0, 0, 7, ...announcement.subarray(12));
  const outcome = detect(pod, FREE);
  await sleep(20);
  socket.send(tagged);
  expect((await outcome).conflict).toBeUndefined();
  const again = detect(pod, FREE, { windowMs: 20_000 });
  await sleep(20);
  socket.send(announcement);
  expect((await again).conflict).toEqual(conflictOf("10.6.0.70", scripted));
});

describe("a link", () => {
  afterEach(() => vi.useRealTimers());

  const rejects = (reason: string, text: RegExp) => ({
    name: "DetectionError",
    reason,
    link: "eth0",
    message: expect.stringMatching(text),
  });

  it("that is down is an error", async () => {
    const down = lab.addPod({ up: false });
    await expect(detect(down, FREE)).rejects.toMatchObject(
      rejects("link", /^Cannot probe on link "eth0": it is down$/),
    );
  });

  it("that is not there cannot, nor a namespace that is gone", async () => {
    const absent = { ...pod, link: { ...pod.link, index: 999 } };
    await expect(detect(absent, FREE)).rejects.toMatchObject(rejects("link", /ENODEV/));
    const gone = { ...pod, link: { ...pod.link, netnsPath: "/run/netns/bkdt-never" } };
    await expect(detect(gone, FREE)).rejects.toMatchObject(rejects("link", /ENOENT/));
  });

  it("that has gone is reported when it was to announce", () => {
    const errors: unknown[] = [];
    for (const gone of [{ index: 999 }, { netnsPath: "/run/netns/bkdt-never" }]) {
      using announcer = new Announcer(); // sends at its end what is still to be announced
      announcer.announce("eth0", {
        link: { ...pod.link, ...gone },
        addresses: [ip("10.6.0.70")],
        onError: (error) => errors.push(error),
      });
    }
    expect(errors).toMatchObject([{ name: "PacketError" }, { name: "NetnsError" }]);
  });

  it("without ARP cannot", async () => {
    const quiet = lab.addPod();
    quiet.ip("link set eth0 arp off");
    await expect(detect(quiet, FREE)).rejects.toMatchObject(rejects("kind", /NOARP/));
  });

  it("that is a tap cannot, and it says so at once", async () => {
    const tap = lab.addPod();
    tap.ip("link del eth0");
    tap.ip("tuntap add eth0 mode tap");
    tap.ip("link set eth0 up");
    const [{ ifindex }] = JSON.parse(tap.exec("ip", "-j", "link", "show", "eth0"));
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }); // which nothing advances
    const link = { ...tap.link, index: ifindex, kind: "tun" };
    await expect(detect({ ...tap, link }, FREE)).rejects.toMatchObject(
      rejects("kind", /it is a tap, which has no carrier/),
    );
  });

  it.each<[string, (doomed: Pod) => void, RegExp]>([
    ["goes down", (doomed) => doomed.ip("link set eth0 down"), /ENETDOWN|it is down/],
    ["is deleted", (doomed) => doomed.ip("link del eth0"), /ENETDOWN|it does not exist any more/],
    [
      "moves to another namespace",
      (doomed) => doomed.ip(`link set eth0 netns ${lab.node}`),
      /ENETDOWN|it does not exist any more/,
    ],
    ["loses its carrier", (doomed) => lab.ip(lab.switch, `link set ${doomed.port} down`), /it has lost its carrier/],
  ])("that %s in the middle cannot, and it says so at once", async (_, end, text) => {
    const doomed = lab.addPod();
    const outcome = detect(doomed, FREE, { windowMs: 20_000 });
    await sleep(20);
    end(doomed);
    await expect(outcome).rejects.toMatchObject(rejects("link", text));
  });

  it("whose namespace is removed in the middle lives until the end", async () => {
    const doomed = lab.addPod();
    const outcome = detect(doomed, FREE);
    await sleep(20);
    run("ip", "netns", "del", doomed.netns);
    expect((await outcome).conflict).toBeUndefined();
  });

  it("that gets its carrier late is asked from then on", async () => {
    const late = lab.addPod();
    lab.ip(lab.switch, `link set ${late.port} down`);
    const outcome = detect(late, ["10.6.0.1"]);
    await sleep(WINDOW_MS);
    lab.ip(lab.switch, `link set ${late.port} up`);
    const { conflict, ms } = await outcome;
    expect(conflict).toEqual(conflictOf("10.6.0.1", owner));
    expect(ms).toBeGreaterThanOrEqual(WINDOW_MS);
  });

  it("that never gets one is given up", async () => {
    const dead = lab.addPod();
    lab.ip(lab.switch, `link set ${dead.port} down`);
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const outcome = expect(detect(dead, FREE)).rejects.toMatchObject(
      rejects("link", /it has had no carrier for 10000 ms/),
    );
    await vi.advanceTimersByTimeAsync(CARRIER_WAIT_MS);
    await outcome;
  });
});

it("a link whose queue is full is an error when no frame gets out, and none when one does", async () => {
  const full = lab.addPod();
  full.exec("tc", "qdisc", "add", "dev", "eth0", "root", "bfifo", "limit", "1");
  await expect(detect(full, FREE)).rejects.toMatchObject({
    reason: "kernel",
    message: expect.stringMatching(/queue is full/),
  });
  const outcome = detect(full, ["10.6.0.1"], { windowMs: 2_000 });
  setTimeout(() => full.exec("tc", "qdisc", "del", "dev", "eth0", "root"), 20);
  expect((await outcome).conflict).toEqual(conflictOf("10.6.0.1", owner));
});

it("a request that is given up ends at once, before and in the middle", async () => {
  await expect(detect(pod, FREE, { signal: AbortSignal.abort("no more") })).rejects.toMatchObject({
    name: "DetectionError",
    reason: "aborted",
    cause: "no more",
  });
  const controller = new AbortController();
  const outcome = detect(pod, FREE, { signal: controller.signal, windowMs: 20_000 });
  setTimeout(() => controller.abort(), 20);
  await expect(outcome).rejects.toMatchObject({ reason: "aborted" });
});

describe("two that ask for one address", () => {
  it.each<[string, number]>([
    ["10.6.0.9", 0],
    ["fd00::9", WINDOW_MS / 2],
    ["10.6.0.9", WINDOW_MS - 60],
  ])("%s, %i ms apart: one of them detects the other", async (address, apart) => {
    const other = lab.addPod();
    for (let round = 0; round < 5; ) {
      let overlap = true;
      const first = detect(pod, [address]).finally(() => {
        overlap = false;
      });
      const second = sleep(apart).then(async () => ({ inTime: overlap, ...(await detect(other, [address])) }));
      const outcomes = await Promise.all([first, second]);
      // A loaded machine may start the second after the first's window: such a round shows nothing.
      if (!outcomes[1].inTime) continue;
      round++;
      const conflicts = outcomes.map(({ conflict }) => conflict);
      expect(conflicts.filter((conflict) => conflict !== undefined).length).toBeGreaterThan(0);
      expect([conflictOf(address, other), undefined]).toContainEqual(conflicts[0]);
      expect([conflictOf(address, pod), undefined]).toContainEqual(conflicts[1]);
    }
  });

  it("a moment after the other's window: the other's announcement reveals it", async () => {
    for (const address of ["10.6.0.9", "fd00::9"]) {
      const outcome = detect(pod, [address], { windowMs: 20_000 });
      await sleep(20);
      using announcer = new Announcer();
      announcer.announce("eth0", { link: scripted.link, addresses: [ip(address)], onError: unreachable });
      expect((await outcome).conflict).toEqual(conflictOf(address, scripted));
    }
  });
});

it("leaves no descriptor open, however it ends", async () => {
  const counts = [Number.NaN];
  const isStable = () => counts.push(openFds()) && counts.at(-1) === counts.at(-2);
  await expect.poll(isStable, { interval: 100, timeout: 30_000 }).toBe(true);
  const before = openFds();
  await detect(pod, ["10.6.0.1"]);
  await detect(pod, FREE, { windowMs: 20 });
  await detect(pod, FREE, { signal: AbortSignal.abort() }).catch(() => {});
  await detect({ ...pod, link: { ...pod.link, index: 999 } }, FREE).catch(() => {});
  await expect.poll(openFds, { interval: 20, timeout: 30_000 }).toBe(before);
});
