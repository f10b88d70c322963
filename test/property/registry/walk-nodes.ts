/**
 * The world of a walk: nodes with the cluster's registry and its reconciler on one API server, and pods that come and
 * go. Everything happens one step at a time: the walk decides what becomes of a call, when a notice arrives, and when
 * an agent ends.
 */

import { vi } from "vitest";
import { Reconciler } from "../../../host/agent/gc/reconciler.ts";
import { formatIp } from "../../../host/net/ip.ts";
import type { Allocation } from "../../../host/registry/registry.ts";
import type { Workload } from "../../../host/resources/member.ts";
import { MemoryApiServer } from "../../fakes/memory-api-server.ts";
import { openDisk } from "../../fakes/memory-journal.ts";
import { TestClock } from "../../world/clock.ts";
import { type ClusterNode, openClusterNode } from "../../world/node.ts";
import { PendingCalls } from "../../world/pending-calls.ts";
import type { Seeded } from "../../world/seeded.ts";
import { EMPTY_SNAPSHOT } from "../../world/subjects.ts";

export const COOLDOWN_MS = 30_000;
const GRACE_MS = 20_000;

export interface WalkPod {
  readonly name: string;
  readonly uid: string;
  readonly node: string;
  readonly workload?: Workload;
  /** The families it asks for. */
  readonly sides: readonly (4 | 6)[];
  isGone: boolean;
  /** Abort controller of the ADD under way. */
  adding?: AbortController | undefined;
}

/** A NIC that has the address, as the pod sees it. */
export interface Live {
  readonly pod: WalkPod;
  readonly containerId: string;
  readonly address: string;
}

interface Agent extends ClusterNode {
  readonly reconciler: Reconciler;
}

export class WalkNode {
  readonly name: string;
  disk = openDisk();
  boot = 1;
  agent: Agent | undefined;
  /** Allocations that the node no longer has in the API server, of which no notice has arrived yet. */
  readonly notices: string[] = [];
  /** DELs that no agent has answered. */
  readonly spool: { containerId: string; ifName: string }[] = [];

  constructor(name: string) {
    this.name = name;
  }
}

/** Everything that waits for promises has run. */
export function flush(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

export class Nodes {
  readonly server = new MemoryApiServer();
  readonly nodes: WalkNode[];
  readonly pods: WalkPod[] = [];
  readonly live = new Set<Live>();
  readonly calls = new PendingCalls<WalkNode>((text) => this.note(text));
  readonly log: string[] = [];
  readonly problems: string[] = [];
  isCalm = false;
  readonly random: Seeded;
  readonly poolSize: number;
  readonly cooldownMs: number;
  /** Clock of the fake timers. */
  readonly #clock: TestClock;
  #last = 0;

  constructor(
    random: Seeded,
    { nodes, poolSize, cooldownMs }: { nodes: number; poolSize: number; cooldownMs: number },
  ) {
    this.random = random;
    this.poolSize = poolSize;
    this.cooldownMs = cooldownMs;
    const startMs = performance.now();
    this.#clock = new TestClock({ read: () => 1_000_000 + performance.now() - startMs });
    this.nodes = Array.from({ length: nodes }, (_, index) => new WalkNode(`n${index + 1}`));
    this.server.onWritten = ({ before, after }) => {
      const name = (after ?? before)?.metadata.name ?? "";
      const text =
        after === undefined
          ? "gone"
          : `${after.spec.state} ${JSON.stringify(after.spec.holders)} on ${after.spec.node}`;
      this.note(`  object ${name}: ${text}`);
      for (const node of this.nodes) {
        if (before?.spec.node === node.name && after?.spec.node !== node.name) node.notices.push(name);
      }
    };
  }

  get nowMs(): number {
    return this.#clock.nowMs();
  }

  next(prefix: string): string {
    return `${prefix}${++this.#last}`;
  }

  note(text: string): void {
    this.log.push(`${Math.round(this.nowMs - 1_000_000)} ${text}`);
  }

  async start(node: WalkNode): Promise<void> {
    this.note(`${node.name} starts`);
    const random = (): number => this.random.u32() / 2 ** 32;
    const isPodGone = async (row: Pick<Allocation, "owner">): Promise<boolean> => this.isGone(row.owner);
    const vendorConf = { ...EMPTY_SNAPSHOT.vendorConf, allocationCooldownMs: this.cooldownMs };
    const agent = await openClusterNode({
      ...{ name: node.name, disk: node.disk, bootId: `boot-${node.boot}`, clock: this.#clock, server: this.server },
      ...{ random, poolSize: this.poolSize, isPodGone, snapshot: { ...EMPTY_SNAPSHOT, vendorConf } },
      gate: (call, commit) => (this.isCalm ? Promise.resolve().then(commit) : this.calls.hold(node, call, commit)),
      isLivePod: async (_namespace, name, uid) =>
        this.pods.some((pod) => pod.name === name && pod.uid === uid && !pod.isGone),
      onLost: (row, by) =>
        this.note(`${node.name} lost ${formatIp(row.ip)} of ${row.owner} to ${by.owner} (${by.state})`),
    });
    node.notices.length = 0;
    const reconciler = new Reconciler(
      {
        ...{ api: agent.api, node: node.name, registry: agent.registry, log: agent.log },
        relists: () => 0,
        isTold: async () => true,
        collector: { isPodGone, adopted: () => {} },
        lost: { prune: async () => {} },
        machine: { prove: async () => undefined },
      },
      { graceMs: () => GRACE_MS, nodeLostMs: () => 10 * GRACE_MS, nowMs: this.#clock.nowMs, random },
    );
    node.agent = Object.assign(agent, { reconciler });
    reconciler.reconcile().catch(() => {});
  }

  deliver(node: WalkNode): void {
    const name = node.notices.shift();
    if (name === undefined || node.agent === undefined) return;
    node.agent.reconciler.hasten([name]);
    node.agent.reconciler.reconcileDue().catch(() => {});
  }

  /** `kill -9`. What it has sent may still be carried out. */
  crash(node: WalkNode): void {
    const { agent } = node;
    if (agent === undefined) return;
    this.note(`${node.name} ends`);
    agent.crash();
    agent.registry.close().catch(() => {});
    agent.reconciler.close().catch(() => {});
    node.agent = undefined;
    this.calls.end(node);
    for (const pod of this.pods) {
      if (pod.node !== node.name || pod.adding === undefined) continue;
      pod.adding = undefined;
    }
  }

  isGone(owner: string): boolean {
    return this.pods.every((pod) => pod.uid !== owner || pod.isGone);
  }

  async advance(milliseconds: number): Promise<void> {
    await vi.advanceTimersByTimeAsync(milliseconds);
  }

  /** I1: no two pods have one address, and the API server has its object for as long as a pod has it. */
  check(): void {
    const byAddress = Map.groupBy(this.live, ({ address }) => address);
    for (const [address, all] of byAddress) {
      if (all.length > 1) this.problems.push(`${address} is live for ${all.map(({ pod }) => pod.uid).join(" and ")}`);
      const spec = this.server.objects.get(address)?.spec;
      const holders = JSON.stringify(spec?.holders ?? []);
      const isSo = all.every(
        ({ pod }) => spec?.state === "Bound" && spec.node === pod.node && holders.includes(`"${pod.uid}"`),
      );
      if (!isSo)
        this.problems.push(
          `${address} is live for ${all.map(({ pod }) => pod.uid).join()}, but its object is ${spec?.state ?? "absent"} ${holders}`,
        );
    }
  }
}
