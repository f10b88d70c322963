/**
 * Carries out what was planned for the Subnets of one network, so that no address is ever in two pools, whoever else does the same at that moment
 * and wherever this process ends (docs/subnets.md, "Why no address is in two pools"):
 *
 *   giving        pool read → all Subnets of the network written upon the versions that were read: reserved → pool written upon that version
 *   giving back   Subnet read → pool written → Subnet written upon the version that was read
 *
 * Effects: creates and changes pools; writes finalizers and status of Subnets.
 */

import { joinSpans, type Spans, spansOf } from "../../core/spans.ts";
import { ApiError, isConflict, type KubeApi } from "../../kubernetes/kube-api.ts";
import { collectionPath, objectPath, statusPath } from "../../kubernetes/paths.ts";
import { messageOf } from "../../lib/describe.ts";
import { inParallel } from "../../lib/in-parallel.ts";
import { IP_POOLS, SUBNETS } from "../../resources/collections.ts";
import { IN_USE_FINALIZER } from "../finalizers/plan-finalizers.ts";
import { type ControlledPool, decodeControlledPool, decodeControlledSubnet } from "../objects.ts";
import { patchIfSame } from "../patch.ts";
import type { CurrentSubnet, NetworkPlan, PoolTarget } from "./model.ts";
import type { OwnWrites } from "./own-writes.ts";
import { type AssignmentEntry, emptyPool, entryOf, poolChange, subnetStatus } from "./pool-object.ts";
import { readSubnet } from "./view.ts";

/** Generated pools of a network that are written at once. @limit */
export const POOL_WRITES_AT_ONCE = 8;

export interface ApplyDeps {
  readonly api: KubeApi;
  readonly leading: AbortSignal;
  readonly pools: OwnWrites<ControlledPool>;
  /** Takes a Subnet as it was written. */
  readonly wroteSubnet: (before: CurrentSubnet, now: CurrentSubnet) => void;
  readonly forgetSubnet: (name: string) => void;
  /** Names of pools as the caches have them; of another one it is asked whether it is there. */
  readonly isKnown: (pool: string) => boolean;
  /** A write that the API server has refused for what it says: the others go on. */
  readonly refused: (what: string, reason: string) => void;
}

/** What the status of a Subnet reserves, and how many addresses its specification offers. */
interface SubnetDraft {
  subnet: CurrentSubnet;
  readonly total: bigint;
}

export async function applyPlan(deps: ApplyDeps, plan: NetworkPlan): Promise<void> {
  await new NetworkUpdate(deps, plan).run();
}

class NetworkUpdate {
  readonly #deps: ApplyDeps;
  readonly #plan: NetworkPlan;
  readonly #drafts: Map<string, SubnetDraft>;
  /** Names of the pools that were written: nothing that was to be written upon an older version can be any more. */
  readonly #written = new Set<string>();

  constructor(deps: ApplyDeps, plan: NetworkPlan) {
    this.#deps = deps;
    this.#plan = plan;
    this.#drafts = new Map(plan.subnets.map(({ subnet, total }) => [subnet.object.name, { subnet, total }]));
  }

  async run(): Promise<void> {
    const { targets, grows } = this.#plan;
    for (const book of this.#drafts.values()) if (!(await this.#mark(book))) return;
    const created = await inParallel(targets, POOL_WRITES_AT_ONCE, (target) => this.#create(target));
    const all = created.flatMap((target) => target ?? []);
    if (grows && !(await this.#reserve(all))) return;
    await inParallel(all, POOL_WRITES_AT_ONCE, (target) => this.#write(target));
    await this.#release(all);
  }

  /** A Subnet that gives to pools stays until they are gone. False: somebody else has written. */
  async #mark(book: SubnetDraft): Promise<boolean> {
    const { object } = book.subnet;
    const isUsed = this.#plan.targets.some(({ subnet }) => subnet?.object.name === object.name);
    const isMarked = object.finalizers.includes(IN_USE_FINALIZER);
    if (object.deleting) {
      const isEmpty = !isUsed && book.subnet.assignments.pools.length === 0;
      if (!isMarked || !isEmpty) return true;
      await this.#patchSubnet(book, "object", {
        metadata: { finalizers: object.finalizers.filter((name) => name !== IN_USE_FINALIZER) },
      });
      return false;
    }
    if (isMarked || !isUsed) return true;
    return await this.#patchSubnet(book, "object", {
      metadata: { finalizers: [...object.finalizers, IN_USE_FINALIZER] },
    });
  }

  /** Undefined: it could not be made, or another one of its name is there. */
  async #create(target: PoolTarget): Promise<PoolTarget | undefined> {
    if (target.now !== undefined || target.subnet === undefined) return target;
    const { api, leading: signal, pools } = this.#deps;
    const body = emptyPool(target, target.subnet);
    const object = await this.#tryTo(`IPPool "${target.name}" cannot be created`, async () => {
      const made = decodeControlledPool(
        await api.call({ method: "POST", path: collectionPath(IP_POOLS), body, signal }),
      );
      pools.wrote(undefined, made);
      return made;
    });
    const spec = object?.value?.spec;
    if (object === undefined || spec === undefined) return undefined;
    return { ...target, now: { object, spec, generated: target.generated } };
  }

  /** What pools have, and what they are to have, in every Subnet of the network. False: somebody else has written to one of them. */
  async #reserve(targets: readonly PoolTarget[]): Promise<boolean> {
    for (const book of this.#drafts.values()) {
      const own = targets.filter(({ subnet }) => subnet?.object.name === book.subnet.object.name);
      const held = entriesOf(book.subnet);
      const planned = own.map((target) =>
        entryOf(target, joinSpans([...(held.get(target.name)?.spans ?? []), ...rangesOfPool(target), ...target.spans])),
      );
      const names = new Set(planned.map(({ name }) => name));
      const others = [...held.values()].filter(({ name }) => !names.has(name));
      const entries = [...others, ...planned].filter(({ spans }) => spans.length > 0);
      if (!(await this.#assign(book, entries, 1))) return false;
    }
    return true;
  }

  async #write(target: PoolTarget): Promise<void> {
    const { api, leading: signal, pools } = this.#deps;
    const { now, name } = target;
    if (now === undefined || !target.isChanged) return;
    const { uid, resourceVersion } = now.object;
    const body = poolChange(target, { family: now.spec.family, version: resourceVersion });
    await this.#tryTo(`IPPool "${name}" cannot be written`, async () => {
      const path = objectPath(IP_POOLS, { name });
      const object = await patchIfSame(api, { path, uid, resourceVersion, body, signal });
      if (object === undefined) return pools.forget(name);
      pools.wrote(now.object, decodeControlledPool(object));
      this.#written.add(name);
    });
  }

  /** What the pools that were written have now, and no more; of the others all that they may have. */
  async #release(targets: readonly PoolTarget[]): Promise<void> {
    for (const book of this.#drafts.values()) {
      const own = targets.filter(({ subnet }) => subnet?.object.name === book.subnet.object.name);
      const held = entriesOf(book.subnet);
      const left = own.map((target) => {
        if (this.#written.has(target.name)) return entryOf(target, target.spans);
        return entryOf(target, joinSpans([...(held.get(target.name)?.spans ?? []), ...rangesOfPool(target)]));
      });
      const names = new Set(left.map(({ name }) => name));
      for (const entry of held.values()) {
        if (!names.has(entry.name) && !(await this.#isGone(entry.name))) left.push(entry);
      }
      await this.#assign(
        book,
        left.filter(({ spans }) => spans.length > 0),
        0,
      );
    }
  }

  /** Asked after the Subnet was read: who creates the pool now gives it nothing. */
  async #isGone(pool: string): Promise<boolean> {
    if (this.#deps.isKnown(pool)) return false;
    const { api, leading: signal } = this.#deps;
    try {
      await api.call({ method: "GET", path: objectPath(IP_POOLS, { name: pool }), signal });
      return false;
    } catch (error) {
      if (error instanceof ApiError && error.status === 404 && error.reason === "NotFound") return true;
      throw error;
    }
  }

  /** Nothing is written where nothing is another. False: somebody else has written. */
  async #assign(book: SubnetDraft, entries: readonly AssignmentEntry[], step: 0 | 1): Promise<boolean> {
    const { subnet, total } = book;
    const status = subnetStatus(subnet, total, entries, subnet.assignments.revision + step);
    const before = subnetStatus(subnet, total, [...entriesOf(subnet).values()], subnet.assignments.revision);
    const known = subnet.object.status;
    const isSame = JSON.stringify(status) === JSON.stringify(before);
    if (isSame && known.total === status.total && known.assigned === status.assigned) return true;
    return await this.#patchSubnet(book, "status", { status });
  }

  async #patchSubnet(
    book: SubnetDraft,
    part: "object" | "status",
    body: { metadata?: object; status?: object },
  ): Promise<boolean> {
    const { api, leading: signal, wroteSubnet, forgetSubnet } = this.#deps;
    const before = book.subnet;
    const { name, uid, resourceVersion } = before.object;
    const path = (part === "status" ? statusPath : objectPath)(SUBNETS, { name });
    const object = await this.#tryTo(`Subnet "${name}" cannot be written`, () =>
      patchIfSame(api, { path, uid, resourceVersion, body, signal }),
    );
    const now = object && readSubnet(decodeControlledSubnet(object));
    if (now === undefined) {
      forgetSubnet(name);
      return false;
    }
    book.subnet = now;
    wroteSubnet(before, now);
    return true;
  }

  async #tryTo<T>(what: string, act: () => Promise<T>): Promise<T | undefined> {
    try {
      return await act();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (!isConflict(error)) this.#deps.refused(what, messageOf(error));
      return undefined;
    }
  }
}

function rangesOfPool({ now }: PoolTarget): Spans {
  return now === undefined ? [] : spansOf(now.spec.ranges);
}

function entriesOf({ assignments }: CurrentSubnet): Map<string, AssignmentEntry> {
  return new Map(
    assignments.pools.map(({ name, ips, application }) => [name, { name, spans: spansOf(ips), application }]),
  );
}
