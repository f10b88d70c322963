/** One controller of the walk: the real caches and the real parts, which hear and write when the walk lets them. */
import { type OpenCaches, openCaches } from "../../../host/controller/caches.ts";
import { startFinalizers } from "../../../host/controller/finalizers/finalizer-controller.ts";
import { type Leadership, startLeadership } from "../../../host/controller/leadership.ts";
import { startSubnets } from "../../../host/controller/subnets/subnets-controller.ts";
import type { AddressOwners, ControllerDeps, PoolOwners } from "../../../host/controller/types.ts";
import type { PoolDemand } from "../../../host/ipam/subnet-pools.ts";
import { openLog } from "../../../host/lib/log.ts";
import { formatIp } from "../../../host/net/ip.ts";
import type { Known } from "./subnets-checker.ts";
import { addressesOf } from "./subnets-facts.ts";
import { flush, type SubnetsWorld } from "./subnets-world.ts";

const TURNS = 50;

/** Of workloads that keep addresses: no part of the walk asks. */
const NO_ADDRESS_OWNERS: AddressOwners = { readLiveness: async () => "unknown", subscribe: () => () => {} };

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
    const deps: ControllerDeps = {
      ...{ api, caches, owners: { addresses: NO_ADDRESS_OWNERS, pools: this.#poolOwners }, log, random },
      events: { emit: () => {}, close: async () => {} },
      clock: { nowMs: () => performance.now(), now: () => new Date() },
      leading: this.#leading.signal,
    };
    this.#leadership = startLeadership({ finalizers: startFinalizers, subnets: startSubnets }, deps);
  }

  get #poolOwners(): PoolOwners {
    return {
      demands: () => ({ demands: this.#demands, faults: [] }),
      subscribe: (listener) => {
        this.#listeners.add(listener);
        return () => this.#listeners.delete(listener);
      },
      readLiveness: async ({ uid }) => (this.#world.workloads.gone.has(uid) ? "gone" : "alive"),
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
  tell(path: string, most: number): void {
    const waiting = this.unheard.get(path) ?? [];
    for (const deliver of waiting.splice(0, most)) deliver();
  }

  tellAll(): number {
    let told = 0;
    for (const [path, waiting] of this.unheard) {
      told += waiting.length;
      this.tell(path, waiting.length);
    }
    return told;
  }

  crash(): void {
    this.isDead = true;
    this.#leading.abort(new Error("the controller has ended"));
    this.#leadership?.close().catch(() => {});
    this.#caches?.close().catch(() => {});
  }

  /** What the caches say now, and said when the round began of which the next call is a part. */
  known(): Known {
    const isWaiting = this.#world.pending.some(({ controller, isOver }) => controller === this && !isOver);
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
