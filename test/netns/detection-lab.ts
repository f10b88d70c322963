/**
 * A segment for tests of detection: a switch (a bridge in a namespace of its own), and pods on it.
 *
 *     pod ── eth0 ═ veth ═ port ─┐
 *     pod ── eth0 ═ veth ═ port ─┤ br0          A pod of kind macvlan hangs on `uplink` of the node's namespace,
 *                                ┊              which is a veth to a port of the switch.
 *     node uplink ═ veth ═ port ─┘
 *     pod ── eth0 ═ macvlan on uplink
 *
 * The switch itself says nothing: it has no IPv6 and no address. Effects: namespaces, removed by disposing of the lab.
 */
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { expect } from "vitest";
import { detectConflict } from "../../host/coordinator/detect-conflict.ts";
import type { Conflict, ProbeLink } from "../../host/coordinator/probe.ts";
import type { Mac } from "../../host/net/mac.ts";
import { ip, mac } from "../world/values.ts";

export const WINDOW_MS = 200;
export const never = new AbortController().signal;

export interface Pod {
  readonly netns: string;
  readonly link: ProbeLink;
  /** Name of the switch's port that all its frames pass. */
  readonly port: string;
  ip(line: string): string;
  exec(...argv: string[]): string;
}

export interface PodOptions {
  readonly kind?: "veth" | "macvlan";
  /** With prefix length; IPv6 without the kernel's duplicate detection. */
  readonly addresses?: readonly string[];
  /** Default: as a main plugin leaves it before IPAM, but up and without IPv6: it says nothing by itself. */
  readonly ipv6?: boolean;
  /** Default: up, with a carrier that passes frames. */
  readonly up?: boolean;
}

export interface Lab extends Disposable {
  /** Name of the switch's namespace. */
  readonly switch: string;
  readonly node: string;
  addPod(options?: PodOptions): Pod;
  /** `ip` in any namespace of the lab. */
  ip(netns: string, line: string): string;
}

const words = (line: string) => line.split(" ").filter((word) => word !== "");

export function run(...[file, ...args]: [string, ...string[]]): string {
  return execFileSync(file, args, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}

/** `sysctl -w` inside, by namespace name. */
export function setSysctl(netns: string, key: string, value: string): void {
  run("nsenter", `--net=/run/netns/${netns}`, "sh", "-c", `echo ${value} > /proc/sys/net/${key}`);
}

const CARRIER_PAUSE_MS = 10;

/** Until the kernel has noticed the carrier, it drops frames of the other end. */
function waitForCarrier(netns: string, name: string): void {
  const deadline = Date.now() + 10_000;
  const state = () => JSON.parse(run("ip", "-n", netns, "-j", "link", "show", name))[0].operstate;
  while (state() !== "UP") {
    if (Date.now() > deadline) expect.unreachable(`${name} of ${netns} has no carrier`);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, CARRIER_PAUSE_MS);
  }
}

/** `prefix` keeps the names of test files apart. */
export function makeLab(prefix: string): Lab {
  using undo = new DisposableStack();
  let count = 0;
  let held = undo;
  const addNetns = (name: string): string => {
    const netns = `${prefix}${name}${process.pid}`;
    run("ip", "netns", "add", netns);
    count++;
    held.defer(() => existsSync(`/run/netns/${netns}`) && run("ip", "netns", "del", netns));
    return netns;
  };
  const inNetns = (netns: string, line: string): string => run("ip", "-n", netns, ...words(line));
  const switchNetns = addNetns("s");
  const node = addNetns("n");
  for (const netns of [switchNetns, node]) setSysctl(netns, "ipv6/conf/default/disable_ipv6", "1");
  inNetns(switchNetns, "link add br0 type bridge");
  inNetns(switchNetns, "link set br0 up");
  const plug = (netns: string, name: string, port: string): void => {
    inNetns(switchNetns, `link add ${port} type veth peer name ${name} netns ${netns}`);
    inNetns(switchNetns, `link set ${port} master br0 up`);
  };
  plug(node, "uplink", "node");
  inNetns(node, "link set uplink up");
  waitForCarrier(switchNetns, "node");

  const addPod = ({ kind = "veth", addresses = [], ipv6 = false, up = true }: PodOptions = {}): Pod => {
    const number = count;
    const netns = addNetns(`p${number}x`);
    const port = kind === "veth" ? `port${number}` : "node";
    if (!ipv6 && up) setSysctl(netns, "ipv6/conf/default/disable_ipv6", "1");
    if (kind === "veth") plug(netns, "eth0", port);
    else inNetns(node, `link add link uplink name eth0 netns ${netns} type macvlan mode bridge`);
    for (const address of addresses) {
      const flag = address.includes(":") ? " nodad" : "";
      inNetns(netns, `addr add ${address} dev eth0${flag}`);
    }
    if (up) {
      inNetns(netns, "link set eth0 up");
      waitForCarrier(netns, "eth0");
      waitForCarrier(switchNetns, port);
    }
    const [link] = JSON.parse(inNetns(netns, "-j link show eth0"));
    return {
      netns,
      port,
      link: { netnsPath: `/run/netns/${netns}`, index: link.ifindex, name: "eth0", mac: mac(link.address) },
      ip: (line) => inNetns(netns, line),
      exec: (...argv) => run("nsenter", `--net=/run/netns/${netns}`, ...argv),
    };
  };
  held = undo.move();
  return { switch: switchNetns, node, addPod, ip: inNetns, [Symbol.dispose]: () => held.dispose() };
}

export interface Detected {
  readonly conflict: Conflict | undefined;
  readonly ms: number;
}

/** Conflict detection in the pod, and how long it took. */
export async function detect(
  { link }: Pod,
  addresses: readonly string[],
  options: { windowMs?: number; ownMacs?: ReadonlySet<Mac>; signal?: AbortSignal; random?: () => number } = {},
): Promise<Detected> {
  const start = performance.now();
  const question = { link, addresses: addresses.map(ip), windowMs: WINDOW_MS, random: Math.random, signal: never };
  return { conflict: await detectConflict({ ...question, ...options }), ms: performance.now() - start };
}

/** Returns the expected outcome when the rival has the address. */
export const conflictOf = (address: string, { link }: Pod): Conflict => ({ ip: ip(address), mac: link.mac });
