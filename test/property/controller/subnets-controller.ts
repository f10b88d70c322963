/**
 * Controllers that all believe that they lead, on one API server in memory: the real caches and the real parts, which
 * hear and write when the walk lets them.
 */
import { setImmediate as turn } from "node:timers/promises";
import { vi } from "vitest";
import { type OpenCaches, openCaches } from "../../../host/controller/caches.ts";
import { startFinalizers } from "../../../host/controller/finalizers/finalizer-controller.ts";
import { type Leadership, type LeadershipDeps, startLeadership } from "../../../host/controller/leadership.ts";
import { PoolWrites } from "../../../host/controller/pool-writes.ts";
import { startSubnets } from "../../../host/controller/subnets/subnets-controller.ts";
import type { AddressOwners, PoolOwners, WatchedPods } from "../../../host/controller/types.ts";
import type { PoolDemand } from "../../../host/ipam/subnet-pools.ts";
import { ApiError, type KubeApi, type KubeCall, type KubeObject } from "../../../host/kubernetes/kube-api.ts";
import { openLog } from "../../../host/lib/log.ts";
import { formatIp } from "../../../host/net/ip.ts";
import { ALLOCATIONS, MemoryApiServer, type Served } from "../../fakes/memory-api-server.ts";
import type { StoredObject } from "../../fakes/memory-objects.ts";
import { PendingCalls } from "../../world/pending-calls.ts";
import { type Known, POOLS, SUBNETS, SubnetsChecker, type Writer } from "./subnets-checker.ts";
import { addressesOf } from "./subnets-facts.ts";
import { Workloads } from "./subnets-workloads.ts";

const TURNS = 50;

/** Owners that keep addresses: no part of the walk asks. */
const NO_PODS: WatchedPods = { period: undefined, wasSeen: () => false, hasReached: () => false };
const NO_ADDRESS_OWNERS: AddressOwners = {
  readLiveness: async () => "unknown",
  findUid: () => undefined,
  subscribe: () => () => {},
};

export class WalkController {
  readonly name: string;
  readonly #world: SubnetsWorld;
  readonly #leading = new AbortController();
  /** By collection: what its watch has yet to tell. */
  readonly unheard = new Map<string, (() => void)[]>();
  readonly #listeners = new Set<() => void>();
  #demands: readonly PoolDemand[] = [];
  #caches: OpenCaches | undefined;
  #leadership: Leadership | undefined;
  isDead = false;
  /** The caches are complete: from here on its calls wait for the walk. */
  isReady = false;
  answeredStep = -1;
  #begun: Known | undefined;

  constructor(name: string, world: SubnetsWorld) {
    this.name = name;
    this.#world = world;
  }

  get problems(): readonly string[] {
    return Object.values(this.#leadership?.problems ?? {}).flat();
  }

  async start(): Promise<void> {
    const log = openLog("walk", "silent");
    const random = () => 0.5;
    const api = this.#world.apiOf(this);
    const caches = openCaches({ api, configNamespace: "berth", log, random });
    this.#caches = caches;
    const synced = caches.synced();
    for (let left = TURNS; left > 0 && caches.unread.length > 0; left--) await flush();
    await synced;
    this.isReady = true;
    this.#demands = this.#world.workloads.demands();
    const deps: LeadershipDeps = {
      ...{ api, caches, owners: { addresses: NO_ADDRESS_OWNERS, pools: this.#poolOwners, pods: NO_PODS }, log, random },
      events: { emit: () => {}, close: async () => {} },
      clock: { nowMs: () => performance.now(), now: () => new Date() },
      leading: this.#leading.signal,
      poolWrites: new PoolWrites({
        ...{ nodes: () => 1, nowMs: () => performance.now() },
        eventsPerSecond: this.#world.poolWritesPerSecond,
      }),
    };
    this.#leadership = startLeadership({ finalizers: startFinalizers, subnets: startSubnets }, deps);
  }

  get #poolOwners(): PoolOwners {
    return {
      demands: () => ({ demands: this.#demands, faults: [] }),
      ending: new Map(),
      subscribe: (listener) => {
        this.#listeners.add(listener);
        return () => this.#listeners.delete(listener);
      },
      readLiveness: async ({ uid }) => (this.#world.workloads.gone.has(uid) ? "gone" : "alive"),
      readSuccession: async ({ uid }) => this.#world.workloads.successors.get(uid) ?? "ended",
    };
  }

  /** It hears what workloads want now. */
  hearWorkloads(): void {
    this.#demands = this.#world.workloads.demands();
    for (const listener of [...this.#listeners]) listener();
  }

  hears(path: string, deliver: () => void): void {
    if (this.isDead) return;
    this.unheard.set(path, [...(this.unheard.get(path) ?? []), deliver]);
  }

  /** Its watch of the collection tells of up to so many changes. */
  deliver(path: string, most: number): void {
    const waiting = this.unheard.get(path) ?? [];
    for (const deliver of waiting.splice(0, most)) deliver();
  }

  deliverAll(): number {
    let delivered = 0;
    for (const [path, waiting] of this.unheard) {
      delivered += waiting.length;
      this.deliver(path, waiting.length);
    }
    return delivered;
  }

  crash(): void {
    this.isDead = true;
    this.#leading.abort(new Error("the controller has ended"));
    this.#leadership?.close().catch(() => {});
    this.#caches?.close().catch(() => {});
  }

  /** Returns the content of the caches now, and at the start of the round of which the next call is a part. */
  known(): Known {
    const isWaiting = this.#world.calls.all.some(({ caller, isOver }) => caller === this && !isOver);
    const isSameRound = isWaiting || this.answeredStep === this.#world.step;
    const now = this.#look();
    if (this.#begun === undefined || !isSameRound || this.#world.isCalm) this.#begun = now;
    return bothOf(this.#begun, now);
  }

  #look(): Known {
    const others = new Set<string>();
    const offered = new Map<string, Set<string>>();
    const held = new Set<string>();
    for (const { value } of this.#caches?.pools.items.values() ?? []) {
      if (value === undefined || value.spec.generated !== undefined) continue;
      for (const address of addressesOf(value.spec.ranges)) others.add(`${value.spec.addressSpace} ${address}`);
    }
    for (const { value } of this.#caches?.reserved.items.values() ?? []) {
      if (value === undefined) continue;
      for (const address of addressesOf(value.spec.ranges)) others.add(`${value.spec.addressSpace} ${address}`);
    }
    for (const { uid, value } of this.#caches?.subnets.items.values() ?? []) {
      if (value === undefined) continue;
      const { ranges, excluded, gateway } = value.spec;
      const withheld = addressesOf(excluded);
      if (gateway !== undefined) withheld.add(formatIp(gateway));
      offered.set(uid, new Set([...addressesOf(ranges)].filter((address) => !withheld.has(address))));
    }
    for (const { spec } of this.#caches?.allocations.items.values() ?? []) {
      held.add(`${spec.addressSpace} ${spec.pool} ${formatIp(spec.ip)}`);
    }
    return {
      isOthers: (space, address) => others.has(`${space} ${address}`),
      isOffered: (uid, address) => offered.get(uid)?.has(address),
      isHeld: (space, pool, address) => held.has(`${space} ${pool} ${address}`),
    };
  }
}

function bothOf(a: Known, b: Known): Known {
  return {
    isOthers: (space, address) => a.isOthers(space, address) && b.isOthers(space, address),
    isOffered: (uid, address) => {
      const both = [a.isOffered(uid, address), b.isOffered(uid, address)];
      return both.includes(true) ? true : both.includes(undefined) ? undefined : false;
    },
    isHeld: (space, pool, address) => a.isHeld(space, pool, address) && b.isHeld(space, pool, address),
  };
}

export { ALLOCATIONS, POOLS, SUBNETS };
export const RESERVED = "/apis/ipam.vendor.io/v1/reservedips";
export const CONFIG_MAPS = "/api/v1/namespaces/berth/configmaps";

const own = (kind: string) => ({ apiVersion: "ipam.vendor.io/v1", kind });

const SERVES: Served = {
  [POOLS]: own("IPPool"),
  [SUBNETS]: own("Subnet"),
  [RESERVED]: own("ReservedIP"),
  [ALLOCATIONS]: own("IPAllocation"),
  "/apis/ipam.vendor.io/v1/coordinators": own("Coordinator"),
  "/api/v1/nodes": { apiVersion: "v1", kind: "Node" },
  [CONFIG_MAPS]: { apiVersion: "v1", kind: "ConfigMap" },
  "/api/v1/namespaces": { apiVersion: "v1", kind: "Namespace" },
};

/** Everything that waits for promises has run. */
export async function flush(): Promise<void> {
  for (let round = 0; round < 2; round++) await turn();
}

export class SubnetsWorld {
  readonly checker = new SubnetsChecker();
  readonly workloads = new Workloads();
  readonly log: string[] = [];
  readonly controllers: WalkController[] = [];
  readonly calls = new PendingCalls<WalkController>((text) => this.note(text), { promptShare: 0.7 });
  /** Calls are carried out and answered at once. */
  isCalm = false;
  step = 0;
  writes = 0;
  /** undefined: as many as come. */
  readonly poolWritesPerSecond: number | undefined;
  readonly server: MemoryApiServer;
  readonly #kubectl: KubeApi;
  #writer: Writer | undefined;
  #last = 0;

  constructor(poolWritesPerSecond?: number) {
    this.poolWritesPerSecond = poolWritesPerSecond;
    this.server = new MemoryApiServer({ serves: SERVES, nowMs: () => Date.now() });
    this.#kubectl = this.server.client();
    this.server.onWritten = (written) => {
      this.writes++;
      const { collection, before, after } = written;
      const name = (after ?? before)?.metadata.name ?? "";
      this.note(
        `  ${this.#writer?.controller ?? "a user"}: ${collection.split("/").at(-1)} ${name}: ${describe(after)}`,
      );
      this.checker.written(written, this.#writer);
    };
  }

  next(prefix: string): string {
    return `${prefix}${++this.#last}`;
  }

  note(text: string): void {
    this.log.push(`${this.step} ${text}`);
  }

  /** A user's `kubectl`. Returns false if the server refused. */
  async kubectl(method: KubeCall["method"], path: string, body?: object): Promise<boolean> {
    try {
      await this.#kubectl.call({ method, path, ...(body === undefined ? {} : { body }) });
      return true;
    } catch (error) {
      if (error instanceof ApiError) return false;
      throw error;
    }
  }

  list(path: string): StoredObject[] {
    return [...this.server.collection(path).values()];
  }

  async start(): Promise<WalkController> {
    const controller = new WalkController(this.next("c"), this);
    this.controllers.push(controller);
    this.note(`${controller.name} starts`);
    await controller.start();
    return controller;
  }

  /** `kill -9`. What it has sent may still be carried out. */
  crash(controller: WalkController): void {
    this.note(`${controller.name} ends`);
    this.controllers.splice(this.controllers.indexOf(controller), 1);
    this.calls.end(controller);
    controller.crash();
  }

  apiOf(controller: WalkController): KubeApi {
    const gate = (call: KubeCall, commit: () => KubeObject): Promise<KubeObject> => {
      if (controller.isDead) return new Promise(() => {});
      const known = controller.known();
      const writer = { controller: controller.name, known };
      const commitAs = (): KubeObject => this.#as(writer, commit);
      if (this.isCalm || !controller.isReady) return Promise.resolve().then(commitAs);
      return this.calls.hold(controller, call, commitAs, () => {
        controller.answeredStep = this.step;
      });
    };
    return this.server.client(gate, (path, deliver) => controller.hears(path, deliver));
  }

  #as<T>(writer: Writer, act: () => T): T {
    this.#writer = writer;
    try {
      return act();
    } finally {
      this.#writer = undefined;
    }
  }

  async advance(milliseconds: number): Promise<void> {
    await vi.advanceTimersByTimeAsync(milliseconds);
  }
}

function describe(object: StoredObject | undefined): string {
  if (object === undefined) return "gone";
  const { spec, status, metadata } = object;
  const pools = (status?.pools as { name: string; ips?: string[] }[] | undefined)?.map(
    ({ name, ips }) => `${name}=${ips?.join()}`,
  );
  return [
    `v${metadata.resourceVersion}`,
    ...(metadata.deletionTimestamp === undefined ? [] : ["leaving"]),
    ...(spec?.ips === undefined ? [] : [`ips ${String(spec.ips)}`]),
    ...(spec?.pool === undefined ? [] : [`of ${String(spec.pool)}`]),
    ...(pools === undefined ? [] : [`reserves ${pools.join(" ")}`]),
  ].join(" ");
}
