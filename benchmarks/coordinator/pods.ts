/**
 * Pods by number, made in lots outside of the measurement: bare namespaces, or with a NIC as a main plugin leaves it.
 * Effects: namespaces below /run/netns, gone after `delete`; files in the node's directory.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { RETIRED_GROUP } from "../../host/coordinator/plan/constants.ts";
import { REMOVAL_GROUP } from "../../host/kernel/link-remover.ts";
import { berthBin, referenceBin } from "../../test/lab/cnitool.ts";
import { requireCommand } from "../../test/lab/command.ts";
import type { Netns } from "../../test/lab/netns.ts";
import { until } from "../../test/lab/waiting.ts";
import { requireUninterrupted } from "../harness/interruption.ts";
import { runBatch, type Step, type Subject } from "../harness/runner.ts";
import { callEnvironment } from "../ipam/contestant.ts";
import { coordinatorConf, type Families, PLAIN, podAddress, preparedResult } from "./configuration.ts";
import type { Node } from "./node.ts";

export type Nic =
  /** None: the main plugin makes it. */
  | { readonly kind: "none" }
  /** Down and without an address: as macvlan has it when it calls its IPAM. */
  | { readonly kind: "bare" }
  /** Up, with addresses and default routes: as macvlan leaves it. */
  | { readonly kind: "ready"; readonly families: Families; readonly v4?: string | undefined };

const WARM_UP_LOT = 50;

/** The pods of one node. Each number is given once. */
export class Pods {
  readonly #prefix: string;
  readonly #node: Netns;
  readonly #uplink: string;
  #next = 1;
  #made: number[] = [];

  constructor(prefix: string, node: Netns, uplink: string) {
    this.#prefix = `${prefix}-pod-`;
    this.#node = node;
    this.#uplink = uplink;
  }

  /**
   * Path of the pod's namespace; `{n}` is allowed, for the runner, and without a number it is the start of all paths.
   */
  path(number: number | "{n}" | ""): string {
    return `/run/netns/${this.#prefix}${number}`;
  }

  /** Makes `count` pods; gives the first's number. The others follow it. */
  async make(count: number, nicOf: (index: number) => Nic): Promise<number> {
    requireUninterrupted();
    const first = this.#next;
    this.#next += count;
    const numbers = Array.from({ length: count }, (_, index) => first + index);
    this.#made.push(...numbers);
    await this.#run(numbers.map((number, index) => this.#script(number, nicOf(index))));
    return first;
  }

  /**
   * Removes the namespaces, as a runtime does after the DEL, and waits until the node's ends of their pairs are gone,
   * too.
   */
  async remove(first: number, count: number): Promise<void> {
    const numbers = new Set(Array.from({ length: count }, (_, index) => first + index));
    this.#made = this.#made.filter((number) => !numbers.has(number));
    await this.#delete([...numbers]);
    for (const group of [RETIRED_GROUP, REMOVAL_GROUP]) {
      const isGone = async (): Promise<boolean> => (await this.#node.ip(`-oneline link show group ${group}`)) === "";
      await until("no pair of a detached pod is left", isGone);
    }
  }

  /** Removes all namespaces. */
  delete(): Promise<void> {
    return this.#delete(this.#made.splice(0));
  }

  #delete(numbers: readonly number[]): Promise<void> {
    const names = numbers.map((number) => `${this.#prefix}${number}`);
    return this.#run(names.map((name) => `[ ! -e /run/netns/${name} ] || ip netns delete ${name} || true`));
  }

  #script(number: number, nic: Nic): string {
    const name = `${this.#prefix}${number}`;
    const lines = [`ip netns add ${name}`];
    if (nic.kind !== "none")
      lines.push(`ip link add link ${this.#uplink} name eth0 netns ${name} type macvlan mode bridge`);
    const inside = ["link set lo up", ...(nic.kind === "ready" ? readyNic(number, nic) : [])];
    return [...lines, `ip -n ${name} -batch - <<END`, ...inside, "END"].join("\n");
  }

  async #run(script: readonly string[]): Promise<void> {
    await requireCommand(this.#node.enter(["sh", "-e"]), { stdin: `${script.join("\n")}\n`, timeoutMs: 300_000 });
  }
}

function readyNic(number: number, { families, v4 }: Extract<Nic, { kind: "ready" }>): string[] {
  const addresses = podAddress(number);
  const ofIpv6 = [`addr add ${addresses.v6}/64 dev eth0 nodad`, "link set eth0 up", "route add default via fd00:6::1"];
  return [
    `addr add ${v4 ?? addresses.v4}/16 dev eth0`,
    ...(families === "IPv4" ? ["link set eth0 up"] : ofIpv6),
    "route add default via 10.6.0.1",
  ];
}

/** The environment of a plugin's call for the pod `{n}` of the node. */
export function podEnvironment(node: Node, command: "ADD" | "DEL"): Record<string, string> {
  const place = { directory: node.directory, netnsPath: node.pods.path("{n}") };
  return callEnvironment(command, place, { ...node.agent.env, CNI_PATH: `${berthBin}:${referenceBin}` });
}

/** A plugin's call for the pod `{n}`. */
export function pluginStep(
  node: Node,
  plugin: "macvlan" | "berth" | "coordinator",
  command: "ADD" | "DEL",
  stdinFile: string,
): Step {
  const path = join(plugin === "macvlan" ? referenceBin : berthBin, plugin);
  return { path, stdinFile, env: podEnvironment(node, command) };
}

/** Writes a file into the node's directory; gives its path. */
export function writeConf(node: Node, name: string, text: string): string {
  const path = join(node.directory, name);
  writeFileSync(path, text);
  return path;
}

export interface Prepared {
  readonly first: number;
  readonly count: number;
  readonly add: Subject;
  readonly del: Subject;
}

export interface PrepareOptions {
  readonly families: Families;
  readonly asks?: boolean;
  /** The IPv4 address of each, by its index; default: one of its own. */
  readonly v4?: (index: number) => string;
}

/** Pods with a NIC that is ready, and the coordinator's calls for them. */
export async function preparePods(
  node: Node,
  count: number,
  { families, asks = false, v4 }: PrepareOptions,
): Promise<Prepared> {
  const first = await node.pods.make(count, (index) => ({ kind: "ready", families, v4: v4?.(index) }));
  for (let index = 0; index < count; index++) {
    const number = first + index;
    const result = preparedResult(node.pods.path(number), number, families, v4?.(index));
    writeConf(node, `coordinator-${number}.json`, coordinatorConf(PLAIN, asks, result));
  }
  const call = (command: "ADD" | "DEL"): Step =>
    pluginStep(node, "coordinator", command, join(node.directory, "coordinator-{n}.json"));
  return { first, count, add: call("ADD"), del: call("DEL") };
}

/** Pods that are attached before the measuring and stay. */
export async function attachOthers(node: Node, count: number): Promise<void> {
  const { first, add } = await preparePods(node, count, { families: "dual stack" });
  await runBatch({ subject: add, atOnce: 1, first, count }, node.netns);
}

/** So many pods come and go: an agent runs for weeks, and V8 compiles its functions in the first hundreds of calls. */
export async function warmUp(node: Node, count: number): Promise<void> {
  for (let done = 0; done < count; done += WARM_UP_LOT) {
    const { first, add, del } = await preparePods(node, WARM_UP_LOT, { families: "dual stack" });
    for (const subject of [add, del]) await runBatch({ subject, atOnce: 1, first, count: WARM_UP_LOT }, node.netns);
    await node.pods.remove(first, WARM_UP_LOT);
  }
}
