/** Conflict detection on the real kernel: a switch, pods on veth and macvlan, and rivals of all kinds. */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Mac } from "../../host/net/mac.ts";
import { ip, mac } from "../world/values.ts";
import { conflictOf, detect, type Lab, makeLab, type Pod, WINDOW_MS } from "./detection-lab.ts";
import { answer, isToAll, playRival, type Received } from "./detection-rival.ts";

/** After the window, however late this program is. */
const LATE_MS = WINDOW_MS + 400;

let lab: Lab;
let pod: Pod;
let owner: Pod;
let scripted: Pod;
/** On one parent, so that they are siblings. */
let child: Pod;
let childOwner: Pod;

beforeAll(() => {
  lab = makeLab("bkdc");
  pod = lab.addPod();
  scripted = lab.addPod();
  owner = lab.addPod({ addresses: ["10.6.0.1/24", "fd00::1/64"], ipv6: true });
  child = lab.addPod({ kind: "macvlan" });
  childOwner = lab.addPod({ kind: "macvlan", addresses: ["10.6.0.2/24", "fd00::2/64"], ipv6: true });
});

afterAll(() => lab[Symbol.dispose]());

describe("a kernel that has the address", () => {
  it.each<[string, () => Pod, string, () => Pod]>([
    ["veth, IPv4", () => pod, "10.6.0.1", () => owner],
    ["veth, IPv6", () => pod, "fd00::1", () => owner],
    ["from veth to macvlan, IPv4", () => pod, "10.6.0.2", () => childOwner],
    ["from veth to macvlan, IPv6", () => pod, "fd00::2", () => childOwner],
    ["macvlan siblings, IPv4", () => child, "10.6.0.2", () => childOwner],
    ["macvlan siblings, IPv6", () => child, "fd00::2", () => childOwner],
    ["from macvlan to veth, IPv4", () => child, "10.6.0.1", () => owner],
    ["from macvlan to veth, IPv6", () => child, "fd00::1", () => owner],
  ])("%s: is a conflict at once", async (_, asker, address, rival) => {
    const { conflict, ms } = await detect(asker(), [address], { windowMs: 20 * WINDOW_MS });
    expect(conflict).toEqual(conflictOf(address, rival()));
    // The first probe was enough: the second has another third of the window to go.
    expect(ms).toBeLessThan(5 * WINDOW_MS);
  });

  it("is found beside addresses that are free, of both families", async () => {
    const free = ["10.6.0.70", "fd00::70", "10.6.0.71", "fd00::71"];
    expect((await detect(pod, [...free, "fd00::1"])).conflict).toEqual(conflictOf("fd00::1", owner));
    expect((await detect(pod, [...free, "10.6.0.1"])).conflict).toEqual(conflictOf("10.6.0.1", owner));
    expect((await detect(pod, free)).conflict).toBeUndefined();
  });

  it("whose MAC is ours is none", async () => {
    const ownMacs = new Set([owner.link.mac]);
    expect((await detect(pod, ["10.6.0.1", "fd00::1"], { ownMacs })).conflict).toBeUndefined();
  });

  it("probed on the parent link of a node: children of the same parent are not received, others are", async () => {
    const [up] = JSON.parse(lab.ip(lab.node, "-j link show uplink"));
    const link = { netnsPath: `/run/netns/${lab.node}`, index: up.ifindex, name: "uplink", mac: mac(up.address) };
    expect((await detect({ ...pod, link }, ["10.6.0.1", "fd00::77"])).conflict).toEqual(conflictOf("10.6.0.1", owner));
    expect((await detect({ ...pod, link }, ["10.6.0.2"])).conflict).toBeUndefined();
  });
});

describe.each(["veth", "macvlan"] as const)("an address that is on our own link already: %s", (kind) => {
  const both = ["10.6.0.40", "fd00::40"];

  it("is no conflict with ourselves, but with another owner", async () => {
    const late = lab.addPod({ kind, addresses: ["10.6.0.40/24", "fd00::40/64"], ipv6: true });
    expect((await detect(late, both)).conflict).toBeUndefined();
    const rival = lab.addPod({ addresses: ["10.6.0.40/24", "fd00::40/64"], ipv6: true });
    for (const address of both) expect((await detect(late, [address])).conflict).toEqual(conflictOf(address, rival));
    for (const one of [late, rival]) one.ip("addr flush dev eth0");
  });
});

describe("silence", () => {
  it("with no other owner takes the whole window", async () => {
    for (const asker of [pod, child]) {
      const { conflict, ms } = await detect(asker, ["10.6.0.70", "fd00::70"]);
      expect(conflict).toBeUndefined();
      expect(ms).toBeGreaterThanOrEqual(WINDOW_MS);
      expect(ms).toBeLessThan(5 * WINDOW_MS);
    }
  });

  it("about nothing is not waited for", async () => {
    expect((await detect(pod, [])).ms).toBeLessThan(WINDOW_MS);
  });

  it("about two hundred addresses of both families at once", async () => {
    const many = Array.from({ length: 200 }, (_, index) => [`10.6.9.${index}`, `fd00::9:${index}`]).flat();
    expect((await detect(pod, many)).conflict).toBeUndefined();
    expect((await detect(pod, [...many, "fd00::1"])).conflict).toEqual(conflictOf("fd00::1", owner));
  });
});

const pairs: [string, string][] = [
  ["IPv4", "10.6.0.7"],
  ["IPv6", "fd00::7"],
];

/** The owner that answers nothing but the question to it alone. */
const confirm = (question: Received, rival: ReturnType<typeof playRival>): void => {
  const { target, from, packet } = question;
  const to = "operation" in packet ? packet.destination : packet.destinationMac;
  if (!isToAll(question)) rival.send(target.family, answer(to, from, target));
};

describe.each(pairs)("%s, a rival", (_, address) => {
  it("that answers only the third probe is detected", async () => {
    using rival = playRival(scripted, [address], ({ target, from, before }, { send }) => {
      if (before >= 2) send(target.family, answer(scripted.link.mac, from, target));
    });
    const { conflict, ms } = await detect(pod, [address]);
    expect(conflict).toEqual(conflictOf(address, scripted));
    expect(rival.received.map(isToAll)).toEqual([true, true, true, false]);
    expect(ms).toBeGreaterThan(WINDOW_MS / 2);
  });

  it("that answers after the window is not: that is the meaning of the window", async () => {
    let answered = () => {};
    const late = new Promise<void>((resolve) => (answered = resolve));
    using _rival = playRival(scripted, [address], ({ target, from, before }, { send }) => {
      if (before % 3 !== 0) return;
      setTimeout(() => {
        send(target.family, answer(scripted.link.mac, from, target));
        answered();
      }, LATE_MS);
    });
    expect((await detect(pod, [address])).conflict).toBeUndefined();
    await late;
    expect((await detect(pod, [address], { windowMs: 2 * LATE_MS })).conflict).toBeDefined();
  });

  it("that answered in time is detected, even when this program was busy until after the window", async () => {
    using rival = playRival(scripted, [address], confirm);
    const outcome = detect(pod, [address]);
    await sleep(WINDOW_MS / 2);
    rival.send(ip(address).family, answer(scripted.link.mac, pod.link.mac, ip(address)));
    const end = performance.now() + WINDOW_MS;
    while (performance.now() < end); // the event loop stands still
    expect((await outcome).conflict).toEqual(conflictOf(address, scripted));
  });

  it("that has answered already is not asked again by a program that was busy", async () => {
    using rival = playRival(scripted, [address], confirm);
    const outcome = detect(pod, [address]);
    await sleep(WINDOW_MS / 10);
    rival.send(ip(address).family, answer(scripted.link.mac, pod.link.mac, ip(address)));
    const end = performance.now() + WINDOW_MS;
    while (performance.now() < end);
    expect((await outcome).conflict).toEqual(conflictOf(address, scripted));
    await sleep(10);
    expect(rival.received.map(isToAll)).toEqual([true, false]);
  });
});

describe.each(pairs)("%s, a switch that answers all questions to all in place of the owner", (_, address) => {
  const GONE = mac("02:aa:bb:cc:dd:ee");
  const suppress = (owner: Mac) =>
    playRival(scripted, [address], (question, { send }) => {
      const { target, from } = question;
      if (isToAll(question)) send(target.family, answer(owner, from, target, { source: scripted.link.mac }));
    });

  it("is no conflict when the owner is gone; another machine is, and so is the owner when it speaks", async () => {
    using rival = suppress(GONE);
    const { conflict, ms } = await detect(pod, [address, "10.6.0.70"]);
    expect(conflict).toBeUndefined();
    expect(ms).toBeGreaterThanOrEqual(2 * WINDOW_MS);
    const late = detect(pod, [address]);
    await sleep(WINDOW_MS / 2);
    rival.send(ip(address).family, answer(owner.link.mac, pod.link.mac, ip(address)));
    expect((await late).conflict).toEqual(conflictOf(address, owner));
    const again = detect(pod, [address], { windowMs: 2 * WINDOW_MS });
    await sleep(WINDOW_MS);
    rival.send(ip(address).family, answer(GONE, pod.link.mac, ip(address)));
    expect((await again).conflict?.mac).toBe(GONE);
  });

  it("is a conflict at once when the owner answers the question to it alone", async () => {
    const living = lab.addPod();
    using _living = playRival(living, [address], confirm);
    using _switch = suppress(living.link.mac);
    const { conflict, ms } = await detect(pod, [address], { windowMs: 20 * WINDOW_MS });
    expect(conflict).toEqual(conflictOf(address, living));
    expect(ms).toBeLessThan(5 * WINDOW_MS);
  });
});
