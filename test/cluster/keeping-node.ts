/**
 * A node's registry with all that keeps it in agreement with objects and pods: the watches of its own allocations and pods, the reconciler, the collector.
 * Its clock is the test's to advance; timers are slow enough to leave the looks to the test.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readPod } from "../../host/agent/cluster/identity.ts";
import { Collector } from "../../host/agent/gc/collector.ts";
import { LostAddresses } from "../../host/agent/gc/lost-addresses.ts";
import { OwnAllocations } from "../../host/agent/gc/own-allocations.ts";
import { type Events, openEvents } from "../../host/kubernetes/events.ts";
import { Reflector } from "../../host/kubernetes/reflector.ts";
import { createFaultCounter } from "../../host/lib/fault.ts";
import { formatIp, parseIp } from "../../host/net/ip.ts";
import { type Mac, parseMac } from "../../host/net/mac.ts";
import type { KubernetesRegistry } from "../../host/registry/kubernetes/kubernetes-registry.ts";
import { openKubernetesRegistry } from "../../host/registry/kubernetes/kubernetes-registry.ts";
import type { Allocation, Claim, ClaimOutcome } from "../../host/registry/registry.ts";
import { decodePod, type Pod } from "../../host/resources/pod.ts";
import { connectAgentClient } from "../../scripts/lab/cluster/in-process.ts";
import type { LabPod } from "../../scripts/lab/cluster/pods.ts";
import type { ControlPlane } from "../../scripts/lab/control-plane.ts";
import { recordLog } from "../unit/agent/recorded-log.ts";
import { WatchedApi } from "./registry-world.ts";

export const GRACE_MS = 60_000;
export const COOLDOWN_MS = 30_000;
const COOLDOWNS = { defaultMs: COOLDOWN_MS, byPool: new Map<string, number>() };
const HOUR_MS = 3_600_000;

export function requireMac(text: string): Mac {
  const mac = parseMac(text);
  if (mac === undefined) throw new Error(`${text} is no MAC`);
  return mac;
}

interface Parts {
  readonly registry: KubernetesRegistry;
  readonly own: OwnAllocations;
  readonly collector: Collector;
  readonly pods: Reflector<Pod>;
  readonly lost: LostAddresses;
  readonly events: Events;
}

export class KeepingNode {
  readonly name: string;
  readonly api: WatchedApi;
  readonly #recorded = recordLog();
  readonly lines = this.#recorded.lines;
  #directory = mkdtempSync(join(tmpdir(), "berth-keeping-"));
  #aheadMs = 0;
  #parts: Parts | undefined;

  static async open(plane: ControlPlane, name: string): Promise<KeepingNode> {
    const api = await connectAgentClient(plane, name);
    const node = new KeepingNode(name, new WatchedApi(api));
    await node.start();
    return node;
  }

  private constructor(name: string, api: WatchedApi) {
    this.name = name;
    this.api = api;
  }

  get parts(): Parts {
    if (this.#parts === undefined) throw new Error(`Node ${this.name} is not running`);
    return this.#parts;
  }
  get registry(): KubernetesRegistry {
    return this.parts.registry;
  }

  nowMs = (): number => Math.floor(performance.now()) + this.#aheadMs;
  advance(milliseconds: number): void {
    this.#aheadMs += milliseconds;
  }

  /** Resolves when the first comparison is through. */
  async start(): Promise<void> {
    const { name: node, api, nowMs } = this;
    const { log } = this.#recorded;
    const common = { api, node, nowMs, log, random: () => 0.5 };
    const events = openEvents({ api, component: "berth-agent", node, log });
    const lost = new LostAddresses({ events, log });
    const isLivePod = async (namespace: string, name: string, uid: string): Promise<boolean> => {
      const pod = await readPod(api, { namespace, name });
      return pod?.uid === uid;
    };
    const registry = await openKubernetesRegistry({
      ...{
        ...common,
        directory: this.#directory,
        bootId: "boot-1",
        lockWaitMs: 5_000,
        faultCounter: createFaultCounter(),
      },
      ...{ cooldowns: COOLDOWNS, poolSize: () => 1_000, onFreed: () => {}, isLivePod },
      isPodGone: (row) => collector.isPodGone(row),
      onLost: (row, by) => lost.report(row, by),
      onDeath: (error) => this.lines.push(`fatal ${error.message}`),
    });
    const pods = new Reflector<Pod>({
      ...{ api, log, random: () => 0.5, name: "pods of this node", path: "/api/v1/pods" },
      fieldSelector: `spec.nodeName=${node}`,
      decode: (object) => decodePod(object, "API server"),
      keyOf: ({ metadata }) => `${Object(metadata).namespace}/${Object(metadata).name}`,
      onChange: (change) =>
        change.kind === "set" ? collector.podChanged(change.value) : collector.podDeleted(change.before),
    });
    const collector: Collector = new Collector(
      { api, node, log, registry, pods: { isSynced: () => pods.isSynced, find: (key) => pods.items.get(key) } },
      {
        settings: () => ({ intervalMs: HOUR_MS, graceMs: GRACE_MS, cooldowns: COOLDOWNS }),
        nowMs,
        random: () => 0.5,
      },
    );
    pods.start();
    const own = new OwnAllocations(
      { api, node, log, registry, lost, collector },
      { graceMs: () => GRACE_MS, nowMs, random: () => 0.5 },
    );
    this.#parts = { registry, own, collector, pods, lost, events };
    await pods.synced(AbortSignal.timeout(30_000));
    await own.reconciled(AbortSignal.timeout(30_000));
  }

  async stop(): Promise<void> {
    const { registry, own, collector, pods, events } = this.parts;
    this.#parts = undefined;
    await pods.close();
    await own.close();
    await collector.close();
    await events.close();
    await registry.close();
  }

  /** The node's disk is lost. */
  wipe(): void {
    rmSync(this.#directory, { recursive: true, force: true });
    this.#directory = mkdtempSync(join(tmpdir(), "berth-keeping-"));
  }

  async close(): Promise<void> {
    if (this.#parts !== undefined) await this.stop();
    await this.api.close();
    rmSync(this.#directory, { recursive: true, force: true });
  }

  claim(
    address: string,
    pod: Pick<LabPod, "namespace" | "name" | "uid">,
    changes: Partial<Claim> = {},
  ): Promise<ClaimOutcome> {
    const ip = parseIp(address);
    if (ip === undefined) throw new Error(`${address} is no address`);
    const { ifName = "eth0" } = changes;
    const proposals = [{ space: "", ip, prefixLength: 16, pool: "blue", ifName }];
    const who = { owner: pod.uid, namespace: pod.namespace, pod: pod.name, containerId: `c-${pod.uid}` };
    return this.registry.claim({ ...who, ifName, network: "lab", proposals, ...changes });
  }

  /** The ADD of a pod. */
  async attach(address: string, pod: LabPod, changes: Partial<Claim> = {}): Promise<Allocation> {
    const outcome = await this.claim(address, pod, changes);
    const [first] = outcome.kind === "bound" ? outcome.held : [];
    if (first === undefined) throw new Error(`${address} could not be had: ${outcome.kind}`);
    return first;
  }

  /** The DEL of a pod, of the container that {@link attach} named. */
  detach(pod: LabPod): Promise<readonly Allocation[]> {
    return this.registry.release({ containerId: `c-${pod.uid}`, ifName: "eth0" });
  }

  /** All looks that timers would take: the objects, the pods, what has cooled. */
  async look(): Promise<void> {
    const { own, collector, registry } = this.parts;
    await own.reconcile();
    await collector.sweep();
    await registry.idle();
    await registry.expire();
    await registry.idle();
  }

  /** `10.6.0.1 Bound u1 c-u1`, of the journal. */
  async rows(): Promise<string[]> {
    const rows = await this.registry.list(undefined, 1_000);
    return rows.map(({ ip, state, owner, containerId }) => `${formatIp(ip)} ${state} ${owner} ${containerId}`);
  }
}
