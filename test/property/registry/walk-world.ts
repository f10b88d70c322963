/**
 * Nodes with the cluster's registry and its reconciler on one API server, pods that come and go, and everything that can happen in between, one step at a time: the
 * scheduler decides when a call is carried out, when and whether it is answered, when a watch tells of it, when an agent ends.
 */
import { vi } from "vitest";
import { Reconciler } from "../../../host/agent/gc/reconciler.ts";
import { ApiUnavailable, type KubeApi, type KubeCall, type KubeObject } from "../../../host/kubernetes/kube-api.ts";
import { createFaultCounter } from "../../../host/lib/fault.ts";
import { openLog } from "../../../host/lib/log.ts";
import { formatIp } from "../../../host/net/ip.ts";
import { openRegistryOn } from "../../../host/registry/kubernetes/kubernetes-registry.ts";
import type { Allocation } from "../../../host/registry/registry.ts";
import { decodeIpAllocation, type IpAllocation } from "../../../host/resources/ip-allocation.ts";
import { MemoryApiServer, type StoredObject } from "../../fakes/memory-api-server.ts";
import { openMemoryJournal } from "../../fakes/memory-journal.ts";
import type { Seeded } from "../core/seeded.ts";
import { type Live, WalkNode, type WalkPod } from "./walk-node.ts";

export const COOLDOWN_MS = 30_000;
export const GRACE_MS = 20_000;

interface Pending {
  readonly node: string;
  readonly call: KubeCall;
  readonly commit: () => KubeObject;
  readonly answerWith: (answer: () => KubeObject) => void;
  /** Carried out: what the answer will be. */
  answer?: () => KubeObject;
  /** The caller does not wait any more. */
  isOver: boolean;
}

function decode(object: StoredObject): IpAllocation {
  return decodeIpAllocation({ ...object, apiVersion: "ipam.vendor.io/v1", kind: "IPAllocation" }, "the walk");
}

/** Everything that waits for promises has run. */
export function flush(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

export class WalkWorld {
  readonly server = new MemoryApiServer();
  readonly nodes: WalkNode[];
  readonly pods: WalkPod[] = [];
  readonly live = new Set<Live>();
  pending: Pending[] = [];
  readonly log: string[] = [];
  readonly problems: string[] = [];
  isCalm = false;
  readonly random: Seeded;
  readonly poolSize: number;
  readonly cooldownMs: number;
  readonly #startMs = performance.now();
  #last = 0;

  constructor(
    random: Seeded,
    { nodes, poolSize, cooldownMs }: { nodes: number; poolSize: number; cooldownMs: number },
  ) {
    this.random = random;
    this.poolSize = poolSize;
    this.cooldownMs = cooldownMs;
    this.nodes = Array.from({ length: nodes }, (_, index) => new WalkNode(`n${index + 1}`));
    this.server.onWritten = ({ before, after }) => {
      const name = (after ?? before)?.metadata.name ?? "";
      const text =
        after === undefined
          ? "gone"
          : `${after.spec.state} ${JSON.stringify(after.spec.holders)} on ${after.spec.node}`;
      this.note(`  object ${name}: ${text}`);
      for (const node of this.nodes) {
        const [was, is] = [before?.spec.node === node.name, after?.spec.node === node.name];
        if (is && after !== undefined) node.events.push({ kind: "object", object: decode(after) });
        else if (was && before !== undefined) node.events.push({ kind: "gone", name, uid: before.metadata.uid });
      }
    };
  }

  get nowMs(): number {
    return 1_000_000 + performance.now() - this.#startMs;
  }

  next(prefix: string): string {
    return `${prefix}${++this.#last}`;
  }

  note(text: string): void {
    this.log.push(`${Math.round(this.nowMs - 1_000_000)} ${text}`);
  }

  async start(node: WalkNode): Promise<void> {
    this.note(`${node.name} starts`);
    const agent: { isDead: boolean } = { isDead: false };
    const nowMs = (): number => this.nowMs;
    const cooldowns = { defaultMs: this.cooldownMs, byPool: new Map<string, number>() };
    const bootId = `boot-${node.boot}`;
    const onFreed = () => {};
    const journal = openMemoryJournal(node.disk, { bootId, nowMs, cooldowns, onFreed, isDead: () => agent.isDead });
    const api = this.#apiOf(node, () => agent.isDead);
    const log = openLog("berth", "silent");
    const random = (): number => this.random.u32() / 2 ** 32;
    const isPodGone = async (row: Pick<Allocation, "owner">): Promise<boolean> => this.isGone(row.owner);
    const registry = await openRegistryOn(journal, {
      ...{ directory: "", bootId, lockWaitMs: 0, faultCounter: createFaultCounter(), cooldowns, nowMs, onFreed, api },
      ...{ node: node.name, random, poolSize: () => this.poolSize, isPodGone, log },
      isLivePod: async (_namespace, name, uid) =>
        this.pods.some((pod) => pod.name === name && pod.uid === uid && !pod.isGone),
      onLost: (row, by) =>
        this.note(`${node.name} lost ${formatIp(row.ip)} of ${row.owner} to ${by.owner} (${by.state})`),
      onDeath: (error) => {
        throw error;
      },
    });
    node.events.length = 0;
    node.items = new Map();
    node.isSynced = false;
    const reconciler = new Reconciler(
      {
        api,
        node: node.name,
        registry,
        log,
        objects: {
          get items() {
            return node.items;
          },
          get isSynced() {
            return node.isSynced && !agent.isDead;
          },
          stats: { lists: 0, bytes: 0, watches: 0, events: 0 },
        },
        collector: { isPodGone },
        lost: { prune: async () => {} },
      },
      { graceMs: () => GRACE_MS, nowMs, random },
    );
    node.agent = Object.assign(agent, { registry, reconciler });
    // The watch's first list.
    for (const object of [...this.server.objects.values()].filter(({ spec }) => spec.node === node.name)) {
      node.events.push({ kind: "object", object: decode(object) });
    }
    this.syncAfter(node, node.events.length);
  }

  #unsynced = new Map<WalkNode, number>();

  syncAfter(node: WalkNode, events: number): void {
    if (events === 0) node.isSynced = true;
    else this.#unsynced.set(node, events);
  }

  tell(node: WalkNode): void {
    const event = node.events.shift();
    if (event === undefined || node.agent === undefined) return;
    if (event.kind === "object") node.items.set(event.object.name, event.object);
    else node.items.delete(event.name);
    node.agent.registry.observe(event);
    const left = (this.#unsynced.get(node) ?? 0) - 1;
    this.#unsynced.set(node, left);
    if (left === 0) node.isSynced = true;
  }

  /** `kill -9`. What it has sent may still be carried out. */
  crash(node: WalkNode): void {
    const { agent } = node;
    if (agent === undefined) return;
    this.note(`${node.name} ends`);
    agent.isDead = true;
    agent.registry.close().catch(() => {});
    agent.reconciler.close().catch(() => {});
    node.agent = undefined;
    for (const each of this.pending) if (each.node === node.name) each.isOver = true;
    for (const pod of this.pods) {
      if (pod.node !== node.name || pod.adding === undefined) continue;
      pod.adding = undefined;
    }
  }

  isGone(owner: string): boolean {
    return this.pods.every((pod) => pod.uid !== owner || pod.isGone);
  }

  #apiOf(node: WalkNode, isDead: () => boolean): KubeApi {
    return this.server.client((call, commit) => {
      if (isDead()) return new Promise<KubeObject>(() => {});
      if (this.isCalm) return Promise.resolve().then(commit);
      return new Promise<KubeObject>((resolve, reject) => {
        const answerWith = (answer: () => KubeObject): void => {
          if (pending.isOver) return;
          pending.isOver = true;
          try {
            resolve(answer());
          } catch (error) {
            reject(error);
          }
        };
        const pending: Pending = { node: node.name, call, commit, answerWith, isOver: false };
        const { signal } = call;
        const abort = () =>
          answerWith(() => {
            throw signal?.reason;
          });
        if (signal?.aborted) abort();
        signal?.addEventListener("abort", abort);
        this.pending.push(pending);
      });
    });
  }

  /** Carries a call out, answers one, or loses the answer. */
  callStep(faultShare: number): void {
    const at = this.random.below(this.pending.length);
    const pending = this.pending[at];
    if (pending === undefined) return;
    const { call, node } = pending;
    const what = `${node} ${call.method} ${call.path.split("/").at(-1)}`;
    if (pending.answer === undefined && (pending.isOver || !this.random.chance(faultShare))) {
      this.commit(pending);
      this.note(`${what} carried out${pending.isOver ? " late" : ""}`);
      if (pending.isOver) this.pending.splice(at, 1);
      return;
    }
    if (pending.answer === undefined || this.random.chance(faultShare)) {
      this.note(`${what} has no answer${pending.answer === undefined ? " yet to be carried out" : ""}`);
      pending.answerWith(() => {
        throw new ApiUnavailable(what, "the connection broke");
      });
      // It stays, to be carried out late; or it never arrives.
      if (pending.answer !== undefined || this.random.chance(0.3)) this.pending.splice(at, 1);
      return;
    }
    this.pending.splice(at, 1);
    pending.answerWith(pending.answer);
    this.note(`${what} answered`);
  }

  commit(pending: Pending): void {
    try {
      const value = pending.commit();
      pending.answer = () => value;
    } catch (error) {
      pending.answer = () => {
        throw error;
      };
    }
  }

  async advance(milliseconds: number): Promise<void> {
    await vi.advanceTimersByTimeAsync(milliseconds);
  }

  /** I1: nobody has what another has, and the API server says so for as long as somebody has it. */
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
