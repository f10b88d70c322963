/**
 * Applies the plan for the Subnets of one network, so that no address is ever in two pools, whatever other processes
 * write at the same time and wherever this process stops (docs/develop/subnets.md, "Why no address is in two pools"):
 *
 *   to give        read pools → write all Subnets of the network with the versions that were read: reserve
 *                  → write pools with their versions
 *   to take back   read Subnet → write pools → write Subnet with the version that was read
 */

import { joinSpans, type Spans, spansOf, withoutSpans } from "../../core/spans.ts";
import { ApiError, isConflict, isNotFound, type KubeApi } from "../../kubernetes/kube-api.ts";
import { collectionPath, objectPath, statusPath } from "../../kubernetes/paths.ts";
import { inParallel } from "../../lib/in-parallel.ts";
import { orElse } from "../../lib/try-or.ts";
import { IP_POOLS, SUBNETS } from "../../resources/collections.ts";
import { IN_USE_FINALIZER } from "../finalizers/plan-finalizers.ts";
import { type ControlledMetadata, decodeControlledPool, decodeControlledSubnet } from "../objects.ts";
import { patchIfSame } from "../patch.ts";
import type { CurrentSubnet, NetworkPlan, PoolTarget } from "./model.ts";
import { rangesOfPool } from "./plan/planned-pool.ts";
import { type AssignmentEntry, emptyPool, entryOf, poolChange, subnetStatus } from "./pool-object.ts";
import { readSubnet } from "./view.ts";
import { withoutWrites } from "./write-turns.ts";

/** Generated pools of a network that are written at once. */
export const POOL_WRITES_AT_ONCE = 8;

export interface ApplyDeps {
  readonly api: KubeApi;
  readonly leading: AbortSignal;
  /** Takes each object after its write. */
  readonly wrote: (kind: "pools" | "subnets", object: Written) => void;
  /** Whether the pool is cached; other pools are read from the API server. */
  readonly isKnown: (pool: string) => boolean;
  /**
   * By UID of a pool: the version for which addresses were reserved, and these. A release of them writes the pool
   * first, so they are still reserved while its version is the same.
   */
  readonly reserved: Map<string, { readonly version: string; readonly spans: Spans }>;
  /** Returns the number of the Subnet's new pools that wait to be created. */
  readonly waitingFor: (subnet: string) => number;
  /** Reports a write that the API server has refused; the others continue. */
  readonly refused: (what: string, refusal: ApiError, target?: PoolTarget) => void;
}

export type Written = Pick<ControlledMetadata, "name" | "resourceVersion">;

/** A Subnet as last written, and the number of addresses that its specification offers. */
interface SubnetDraft {
  subnet: CurrentSubnet;
  readonly total: bigint;
}

/** Returns whether all writes succeeded. */
export async function applyPlan(deps: ApplyDeps, plan: NetworkPlan): Promise<boolean> {
  const update = new NetworkUpdate(deps, plan);
  await update.run();
  return update.isDone;
}

class NetworkUpdate {
  readonly #deps: ApplyDeps;
  readonly #plan: NetworkPlan;
  readonly #drafts: Map<string, SubnetDraft>;
  /** Names of written pools: no write with an older version can succeed any more. */
  readonly #written = new Set<string>();
  /** No write was refused. */
  isDone = true;

  constructor(deps: ApplyDeps, plan: NetworkPlan) {
    this.#deps = deps;
    this.#plan = plan;
    this.#drafts = new Map(plan.subnets.map(({ subnet, total }) => [subnet.object.name, { subnet, total }]));
  }

  async run(): Promise<void> {
    const unmarked: SubnetDraft[] = [];
    for (const draft of this.#drafts.values()) if (!(await this.#mark(draft))) unmarked.push(draft);
    if (unmarked.length === this.#drafts.size) return;
    const held = new Set(unmarked.flatMap((draft) => this.#targetsOf(draft)));
    const { targets, grows } = withoutWrites(this.#plan, held);
    const created = await inParallel(targets, POOL_WRITES_AT_ONCE, (target) => this.#create(target));
    const all = created.flatMap((target) => target ?? []);
    if (grows && !(await this.#reserve(all))) return;
    await inParallel(all, POOL_WRITES_AT_ONCE, (target) => this.#write(target));
    await this.#release(all);
  }

  #targetsOf({ subnet: { object } }: SubnetDraft, targets = this.#plan.targets): readonly PoolTarget[] {
    return targets.filter(({ subnet }) => subnet?.object.name === object.name);
  }

  /** Sets the finalizer of a Subnet that serves pools. Returns false if it does not have it: its pools have to wait. */
  async #mark(draft: SubnetDraft): Promise<boolean> {
    const { object } = draft.subnet;
    const isUsed = this.#targetsOf(draft).length > 0;
    const isMarked = object.finalizers.includes(IN_USE_FINALIZER);
    const set = (finalizers: readonly string[]) => this.#patchSubnet(draft, "object", { metadata: { finalizers } });
    if (object.deleting) {
      const isEmpty = !isUsed && draft.subnet.assignments.pools.length === 0;
      if (isMarked && isEmpty) await set(object.finalizers.filter((name) => name !== IN_USE_FINALIZER));
      return true;
    }
    return isMarked || !isUsed || (await set([...object.finalizers, IN_USE_FINALIZER]));
  }

  /** Returns undefined if the pool could not be created, or its name is taken. */
  async #create(target: PoolTarget): Promise<PoolTarget | undefined> {
    if (target.now !== undefined || target.subnet === undefined) return target;
    const { api, leading: signal, wrote } = this.#deps;
    const body = emptyPool(target, target.subnet);
    const object = await this.#tryTo(
      `IPPool "${target.name}" cannot be created`,
      async () => {
        const call = { method: "POST", path: collectionPath(IP_POOLS), body, signal } as const;
        const made = decodeControlledPool(await api.call(call));
        wrote("pools", made);
        return made;
      },
      target,
    );
    const spec = object?.value?.spec;
    if (object === undefined || spec === undefined) return undefined;
    return { ...target, now: { object, spec, generated: target.generated } };
  }

  /** Reserves present and target addresses in every Subnet of the network. Returns false if another was faster. */
  async #reserve(targets: readonly PoolTarget[]): Promise<boolean> {
    const changed = targets.filter(({ isChanged }) => isChanged);
    const step = changed.every((target) => this.#isReserved(target)) ? 0 : 1;
    for (const draft of this.#drafts.values()) {
      const own = this.#targetsOf(draft, targets);
      const held = entriesOf(draft.subnet);
      const planned = own.map((target) =>
        entryOf(target, joinSpans([...(held.get(target.name)?.spans ?? []), ...rangesOfPool(target), ...target.spans])),
      );
      const names = new Set(planned.map(({ name }) => name));
      const others = [...held.values()].filter(({ name }) => !names.has(name));
      const entries = [...others, ...planned].filter(({ spans }) => spans.length > 0);
      if (!(await this.#assign(draft, entries, step))) return false;
    }
    for (const { now, spans } of changed)
      if (now !== undefined) this.#deps.reserved.set(now.object.uid, { version: now.object.resourceVersion, spans });
    return true;
  }

  /** Whether an earlier pass has reserved these addresses, and its write of the pool was refused. */
  #isReserved({ now, spans }: PoolTarget): boolean {
    const before = now && this.#deps.reserved.get(now.object.uid);
    if (before === undefined || before.version !== now?.object.resourceVersion) return false;
    return withoutSpans(spans, before.spans).length === 0;
  }

  async #write(target: PoolTarget): Promise<void> {
    const { api, leading: signal, wrote } = this.#deps;
    const { now, name } = target;
    if (now === undefined || !target.isChanged) return;
    const { uid, resourceVersion } = now.object;
    const body = poolChange(target, { family: now.spec.family, version: resourceVersion });
    await this.#tryTo(`IPPool "${name}" cannot be written`, async () => {
      const path = objectPath(IP_POOLS, { name });
      const object = await patchIfSame(api, { path, uid, resourceVersion, body, signal });
      if (object === undefined) {
        this.isDone = false;
        return;
      }
      wrote("pools", decodeControlledPool(object));
      this.#deps.reserved.delete(uid);
      this.#written.add(name);
    });
  }

  /** Reserves exactly the present addresses of written pools, and for the others every address that they may have. */
  async #release(targets: readonly PoolTarget[]): Promise<void> {
    for (const draft of this.#drafts.values()) {
      const own = this.#targetsOf(draft, targets);
      const held = entriesOf(draft.subnet);
      const left = own.map((target) => {
        if (this.#written.has(target.name)) return entryOf(target, target.spans);
        return entryOf(target, joinSpans([...(held.get(target.name)?.spans ?? []), ...rangesOfPool(target)]));
      });
      const names = new Set(left.map(({ name }) => name));
      for (const entry of held.values()) {
        if (!names.has(entry.name) && !(await this.#isGone(entry.name))) left.push(entry);
      }
      await this.#assign(
        draft,
        left.filter(({ spans }) => spans.length > 0),
        0,
      );
    }
  }

  /** Read after the Subnet: a pool created from now on has none of its addresses. */
  async #isGone(pool: string): Promise<boolean> {
    if (this.#deps.isKnown(pool)) return false;
    const { api, leading: signal } = this.#deps;
    const isGone = (error: unknown): boolean => isNotFound(error) && error.reason === "NotFound";
    const call = { method: "GET", path: objectPath(IP_POOLS, { name: pool }), signal } as const;
    return (await api.call(call).catch(orElse(isGone, undefined))) === undefined;
  }

  /** Writes only a changed status. Returns false if another writer was faster. */
  async #assign(draft: SubnetDraft, entries: readonly AssignmentEntry[], step: 0 | 1): Promise<boolean> {
    const { subnet, total } = draft;
    const { revision } = subnet.assignments;
    const status = subnetStatus(subnet, total, entries, revision + step);
    const before = subnetStatus(subnet, total, [...entriesOf(subnet).values()], revision);
    const known = subnet.object.status;
    const isSame = JSON.stringify(status) === JSON.stringify(before);
    const waiting = this.#deps.waitingFor(subnet.object.name);
    // Their number alone is no reason to write, except when it becomes zero.
    const isOver = waiting === 0 && typeof known.waiting === "number" && known.waiting > 0;
    if (isSame && known.total === status.total && known.assigned === status.assigned && !isOver) return true;
    return await this.#patchSubnet(draft, "status", {
      status: { ...status, ...(isOver || waiting > 0 ? { waiting } : {}) },
    });
  }

  async #patchSubnet(
    draft: SubnetDraft,
    part: "object" | "status",
    body: { metadata?: object; status?: object },
  ): Promise<boolean> {
    const { api, leading: signal, wrote } = this.#deps;
    const { name, uid, resourceVersion } = draft.subnet.object;
    const path = (part === "status" ? statusPath : objectPath)(SUBNETS, { name });
    const object = await this.#tryTo(`Subnet "${name}" cannot be written`, () =>
      patchIfSame(api, { path, uid, resourceVersion, body, signal }),
    );
    const now = object && readSubnet(decodeControlledSubnet(object));
    if (now === undefined) {
      this.isDone = false;
      return false;
    }
    draft.subnet = now;
    wrote("subnets", now.object);
    return true;
  }

  async #tryTo<T>(what: string, act: () => Promise<T>, target?: PoolTarget): Promise<T | undefined> {
    try {
      return await act();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.isDone = false;
      if (!isConflict(error)) this.#deps.refused(what, error, target);
      return undefined;
    }
  }
}

function entriesOf({ assignments }: CurrentSubnet): Map<string, AssignmentEntry> {
  return new Map(
    assignments.pools.map(({ name, ips, application }) => [name, { name, spans: spansOf(ips), application }]),
  );
}
