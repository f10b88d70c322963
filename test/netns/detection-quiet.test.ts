/** The early stage: a link as the macvlan plugin leaves it before IPAM, raised without a word of the kernel's. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { detectConflict } from "../../host/coordinator/detect-conflict.ts";
import type { ProbeLink } from "../../host/coordinator/probe.ts";
import { PROBE_COUNT } from "../../host/coordinator/probe.ts";
import { withQuietLink } from "../../host/coordinator/quiet-link.ts";
import { readSysctl } from "../world/sysctl.ts";
import { ip } from "../world/values.ts";
import { capture } from "./detection-capture.ts";
import { conflictOf, type Lab, makeLab, never, type Pod, setSysctl, WINDOW_MS } from "./detection-lab.ts";

let lab: Lab;
let owner: Pod;

beforeAll(() => {
  lab = makeLab("bkdq");
  owner = lab.addPod({ addresses: ["10.6.0.1/24", "fd00::1/64"], ipv6: true });
});

afterAll(() => lab[Symbol.dispose]());

/** As the reference plugin makes it: in the pod, named, down, without an address, set to announce. */
function addChild(kind: "veth" | "macvlan" = "macvlan"): Pod {
  const pod = lab.addPod({ kind, ipv6: true, up: false });
  setSysctl(pod.netns, "ipv4/conf/eth0/arp_notify", "1");
  setSysctl(pod.netns, "ipv6/conf/eth0/ndisc_notify", "1");
  return pod;
}

interface Settings {
  readonly up: boolean;
  readonly disableIpv6: string;
  readonly acceptDad: string;
}

function settingsOf({ link, ip: show }: Pod): Settings {
  const read = (key: string) => readSysctl(link.netnsPath, `ipv6/conf/eth0/${key}`) ?? "absent";
  const [{ flags }] = JSON.parse(show("-j link show eth0"));
  return { up: flags.includes("UP"), disableIpv6: read("disable_ipv6"), acceptDad: read("accept_dad") };
}

const FOUND: Settings = { up: false, disableIpv6: "0", acceptDad: "1" };
const LEFT: Settings = { ...FOUND, acceptDad: "0" };

const quietly = <T>({ link }: Pod, work: (link: ProbeLink) => Promise<T>, signal = never) =>
  withQuietLink({ netnsPath: link.netnsPath, ifName: "eth0", staysUp: false }, work, signal);

const probe = (addresses: readonly string[]) => (link: ProbeLink) =>
  detectConflict({ link, addresses: addresses.map(ip), windowMs: WINDOW_MS, random: Math.random, signal: never });

describe("on the wire", () => {
  it("there are our probes and nothing else; then the main plugin raises the link, and the kernel announces without probing", async () => {
    const pod = addChild();
    const wire = await capture(lab, pod.port);
    expect(await quietly(pod, probe(["10.6.0.70", "fd00::70"]))).toBeUndefined();
    expect(settingsOf(pod)).toEqual(LEFT);
    const frames = await wire.read(pod.link.mac);
    expect(frames).toHaveLength(2 * PROBE_COUNT);
    const probe4 = /who-has 10\.6\.0\.70 tell 0\.0\.0\.0/;
    const probe6 = /:: > ff02::1:ff00:70: .* neighbor solicitation, .* who has fd00::70/;
    for (const [index, frame] of frames.entries()) expect(frame).toMatch(index % 2 === 0 ? probe4 : probe6);

    const later = await capture(lab, pod.port);
    pod.ip("addr add 10.6.0.70/24 dev eth0");
    pod.ip("addr add fd00::70/64 dev eth0");
    pod.ip("link set eth0 up");
    await expect.poll(() => pod.ip("-6 addr show dev eth0"), { timeout: 30_000 }).toContain("fe80::");
    expect(pod.ip("-6 addr show dev eth0 tentative")).toBe("");
    const announced = await later.read(pod.link.mac);
    expect(announced).toContainEqual(expect.stringMatching(/who-has 10\.6\.0\.70 .*tell 10\.6\.0\.70/));
    expect(announced).toContainEqual(
      expect.stringMatching(/neighbor advertisement, .* tgt is fd00::70, Flags \[override\]/),
    );
    expect(announced.filter((frame) => frame.includes("neighbor solicitation"))).toEqual([]);
  });

  it("the observer would see the kernel's packets of a link that is raised as it is", async () => {
    const pod = addChild();
    const wire = await capture(lab, pod.port);
    pod.ip("link set eth0 up");
    await expect.poll(() => pod.ip("-6 addr show dev eth0 -tentative"), { timeout: 30_000 }).toContain("fe80::");
    const frames = (await wire.read(pod.link.mac)).join("\n");
    for (const text of ["multicast listener report", "neighbor solicitation"]) expect(frames).toContain(text);
  });
});

describe("a link that is down", () => {
  it.each(["macvlan", "veth"] as const)(
    "finds a conflict and is left as it was, but for duplicate detection: %s",
    async (kind) => {
      const pod = addChild(kind);
      for (const address of ["10.6.0.1", "fd00::1"]) {
        expect(await quietly(pod, probe([address]))).toEqual(conflictOf(address, owner));
        expect(settingsOf(pod)).toEqual(LEFT);
      }
    },
  );

  it("stays up when a coordinator announces, with its IPv6 back and no duplicate detection", async () => {
    const pod = addChild();
    const wire = await capture(lab, pod.port);
    const options = { netnsPath: pod.link.netnsPath, ifName: "eth0", staysUp: true };
    expect(await withQuietLink(options, probe(["10.6.0.71", "fd00::71"]), never)).toBeUndefined();
    expect(settingsOf(pod)).toEqual({ up: true, disableIpv6: "0", acceptDad: "0" });
    pod.ip("addr add fd00::71/64 dev eth0");
    expect(pod.ip("-6 addr show dev eth0 tentative")).toBe("");
    const frames = await wire.read(pod.link.mac);
    expect(frames.filter((frame) => /neighbor solicitation|who-has/.test(frame))).toHaveLength(2 * PROBE_COUNT);
    const taken = addChild();
    const quiet = { netnsPath: taken.link.netnsPath, ifName: "eth0", staysUp: true };
    await expect(withQuietLink(quiet, () => Promise.reject(new Error("no")), never)).rejects.toThrow("no");
    expect(settingsOf(taken)).toEqual(FOUND);
  });

  it("is up, with a carrier and without IPv6, while work runs; its IPv6 stays off when it was", async () => {
    const pod = addChild();
    setSysctl(pod.netns, "ipv6/conf/eth0/disable_ipv6", "1");
    const meanwhile = await quietly(pod, async (link) => {
      expect(link).toEqual({ ...pod.link, kind: "macvlan" });
      expect(pod.ip("link show eth0")).toContain("LOWER_UP");
      return settingsOf(pod);
    });
    expect(meanwhile).toEqual({ up: true, disableIpv6: "1", acceptDad: "1" });
    expect(settingsOf(pod)).toEqual({ up: false, disableIpv6: "1", acceptDad: "0" });
  });

  it("is left wholly as it was when work fails", async () => {
    const pod = addChild();
    await expect(quietly(pod, () => Promise.reject(new Error("no")))).rejects.toThrow("no");
    expect(settingsOf(pod)).toEqual(FOUND);
    const thrower = () => {
      throw new Error("at once");
    };
    await expect(quietly(pod, thrower)).rejects.toThrow("at once");
    expect(settingsOf(pod)).toEqual(FOUND);
  });

  it("waits for its carrier, until the request is given up", async () => {
    const pod = addChild("veth");
    lab.ip(lab.switch, `link set ${pod.port} down`);
    const controller = new AbortController();
    const outcome = quietly(pod, () => Promise.reject(new Error("called")), controller.signal);
    controller.abort();
    await expect(outcome).rejects.toMatchObject({ name: "DetectionError", reason: "aborted" });
    expect(settingsOf(pod)).toEqual(FOUND);
    const waiting = quietly(pod, probe(["10.6.0.1"]));
    lab.ip(lab.switch, `link set ${pod.port} up`);
    expect(await waiting).toEqual(conflictOf("10.6.0.1", owner));
  });

  it("that is deleted meanwhile: the error of work is the error", async () => {
    const pod = addChild();
    const work = async (link: ProbeLink) => {
      const outcome = probe(["10.6.0.70"])(link);
      pod.ip("link del eth0");
      return await outcome;
    };
    await expect(quietly(pod, work)).rejects.toMatchObject({ name: "DetectionError", reason: "link" });
  });

  it("that is deleted when work has succeeded cannot be put back, which is an error", async () => {
    const pod = addChild();
    const work = async () => void pod.ip("link del eth0");
    await expect(quietly(pod, work)).rejects.toMatchObject({ name: "DetectionError", reason: "kernel" });
  });
});

it("a link that is up stays up with its addresses; only duplicate detection is switched off", async () => {
  const pod = lab.addPod({ addresses: ["10.6.0.50/24", "fd00::50/64"], ipv6: true });
  const before = pod.ip("addr show dev eth0 scope global");
  expect(await quietly(pod, probe(["10.6.0.1"]))).toEqual(conflictOf("10.6.0.1", owner));
  expect(settingsOf(pod)).toEqual({ up: true, disableIpv6: "0", acceptDad: "0" });
  expect(pod.ip("addr show dev eth0 scope global")).toBe(before);
});

it("a link that cannot carry probes is named", async () => {
  const pod = addChild();
  const { netnsPath } = pod.link;
  const work = () => Promise.reject(new Error("called"));
  const rejects = (ifName: string, path = netnsPath) =>
    expect(withQuietLink({ netnsPath: path, ifName, staysUp: false }, work, never)).rejects;
  await rejects("eth9").toThrow('Cannot probe on link "eth9": there is no such link');
  await rejects("eth0", "/run/netns/bkdq-never").toMatchObject({ name: "DetectionError", reason: "kernel" });
  await rejects("lo").toThrow('Cannot probe on link "lo": it is not an Ethernet link');
  expect(pod.ip("link show lo")).not.toContain("LOWER_UP");
});
