/** The controller's collection of addresses, run by the test: rounds, clock, and owners of retained addresses. */

import { decodeVendorConf } from "../../../host/config/vendor-conf.ts";
import { GarbageCollector } from "../../../host/controller/gc/garbage-collector.ts";
import { startNotices } from "../../../host/controller/notices/notice-controller.ts";
import { openAddressOwners } from "../../../host/controller/owners/address-owners.ts";
import { startClaimStatus } from "../../../host/controller/owners/claim-status.ts";
import { openLog } from "../../../host/lib/log.ts";
import { ObjectBudget } from "../../../host/lib/object-budget.ts";
import { until } from "../waiting.ts";
import { type LabController, UNKNOWN_OWNERS } from "./controller.ts";
import { connectClient } from "./in-process.ts";
import { NODES } from "./objects.ts";
import type { World } from "./world.ts";

/** As without a ConfigMap. */
export const GRACE_MS = 60_000;
export const NODE_LOST_MS = 600_000;

export class LabCollector {
  readonly #world: World;
  #collector: GarbageCollector | undefined;
  #controller: LabController | undefined;
  #aheadMs = 0;
  /** Of all owners. */
  liveness: "alive" | "unknown" = "unknown";

  /** The first controller leads. */
  static async open(world: World): Promise<LabCollector> {
    const collector = new LabCollector(world);
    await collector.lead();
    return collector;
  }

  private constructor(world: World) {
    this.#world = world;
  }

  get gc(): GarbageCollector {
    if (this.#collector === undefined) throw new Error("No controller is running");
    return this.#collector;
  }
  get controller(): LabController {
    if (this.#controller === undefined) throw new Error("No controller is running");
    return this.#controller;
  }

  /** Time of a clock that only the test moves: the part's own timer then finds only work that was noticed. */
  readonly nowMs = (): number => 1_000_000 + this.#aheadMs;
  advance(milliseconds: number): void {
    this.#aheadMs += milliseconds;
  }

  /** A process that has just begun to lead, after the one before it has ended. */
  async lead(): Promise<void> {
    await this.#world.depose();
    const clock = { nowMs: this.nowMs, now: () => new Date() };
    this.#controller = await this.#world.lead(
      {
        garbage: (deps) => {
          this.#collector = new GarbageCollector(deps);
          return this.#collector;
        },
        notices: startNotices,
      },
      {
        deps: { clock, random: () => 0.5 },
        addressOwners: { ...UNKNOWN_OWNERS, readLiveness: async () => this.liveness },
      },
    );
  }

  /** Does the work due now, a sweep, and the work due at its end; both again after each of the times. */
  async sweep(...afterMs: readonly number[]): Promise<void> {
    for (const milliseconds of [0, ...afterMs]) {
      this.advance(milliseconds);
      await this.gc.checkDue();
      await this.gc.sweep();
      await this.gc.checkDue();
    }
  }

  /** {@link World.setNode}, until the caches know it. */
  async setNode(name: string, ready: "True" | "False" | "Unknown", taints: readonly object[] = []): Promise<void> {
    await this.#world.setNode(name, ready, taints);
    await until(`the caches know node ${name}`, () => {
      const node = this.controller.caches.nodes.items.get(name);
      return node?.ready === ready && node.taints.length === taints.length;
    });
  }

  /** Resolves when the controller knows the allocation. */
  async knows(address: string): Promise<void> {
    await until(`the caches have ${address}`, () => this.controller.caches.allocations.items.has(address));
  }

  /** Nothing is left of a test. */
  async clear(): Promise<void> {
    const { client } = this.#world;
    await this.#world.clear();
    for (const { metadata } of (await client.get(NODES)).items) await client.delete(`${NODES}/${metadata.name}`);
    const { caches } = this.controller;
    await until("the caches are empty", () => caches.nodes.items.size + caches.allocations.items.size === 0);
  }
}

/** The controller's parts for owners of addresses, which follow the workloads of the cluster. Returns a sweep. */
export async function leadAddressOwners(world: World, settings: object = {}): Promise<() => Promise<void>> {
  const map = {
    kind: "ConfigMap",
    name: "vendor-conf",
    conf: decodeVendorConf(settings, "the test"),
    text: "",
  } as const;
  const api = await connectClient(await world.controllerKubeconfig(), "berth-controller");
  const addressOwners = openAddressOwners({
    api,
    vendorConf: { items: new Map([["vendor-conf", map]]), subscribe: () => () => {}, problems: [] },
    budget: new ObjectBudget({ totalBytes: 2 ** 30, home: "" }),
    log: openLog("lab-controller", "silent"),
    random: Math.random,
  });
  world.defer(async () => {
    await world.depose();
    await addressOwners.close();
    await api.close();
  });
  await addressOwners.synced(AbortSignal.timeout(30_000));
  let collector: GarbageCollector | undefined;
  const garbage = (deps: ConstructorParameters<typeof GarbageCollector>[0]) => {
    collector = new GarbageCollector(deps);
    return collector;
  };
  await world.lead({ claims: startClaimStatus, garbage }, { addressOwners });
  return async () => void (await collector?.sweep());
}
