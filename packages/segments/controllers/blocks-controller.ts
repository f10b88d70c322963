/**
 * Leases blocks for the pools that have `spec.source`, ahead of need, and writes into their status which addresses
 * pods may have. plan-blocks.ts decides; a hub that does not answer leaves everything as it is.
 */

import { hasEveryRecord } from "../../../host/controller/caches.ts";
import { type ControlledPool, valuesOf } from "../../../host/controller/objects.ts";
import { patchIfSame } from "../../../host/controller/patch.ts";
import { startReconciling } from "../../../host/controller/reconcile-loop.ts";
import type { Controller } from "../../../host/controller/types.ts";
import { valueAfter } from "../../../host/kubernetes/mirror.ts";
import { statusPath } from "../../../host/kubernetes/paths.ts";
import { messageOf } from "../../../host/lib/describe.ts";
import { inParallel } from "../../../host/lib/in-parallel.ts";
import { IP_POOLS } from "../../../host/resources/collections.ts";
import type { IpPool } from "../../../host/resources/ip-pool.ts";
import {
  type BlockState,
  describeSource,
  encodeSourceStatus,
  NO_REPORT,
  type SourceReport,
} from "../../../host/resources/pool-source.ts";
import { SourceFailure, type SourceView } from "../blocks/block-source.ts";
import { compareBlocks } from "../blocks/blocks-of-range.ts";
import { describeOutage, problemOf } from "../blocks/describe-problem.ts";
import type { BlocksDeps } from "../types.ts";
import { BlockSources } from "./block-sources.ts";
import { type EmptyBlocks, findEmpty } from "./empty-blocks.ts";
import { freeCounter } from "./free-addresses.ts";
import { measureRanges } from "./measure-ranges.ts";
import { type BlocksPlan, type KnownBlock, nextAsOf, planBlocks, REST_MS } from "./plan-blocks.ts";
import { otherMembers } from "./range-records.ts";
import { type Followed, findMisfit, followedSources, missingBlocks, type SourcedPool } from "./sourced-pools.ts";

/** Shortest time between two passes: milliseconds. */
const BLOCKS_REST_MS = 1_000;

/** Interval at which sources are asked: milliseconds. A resting block becomes usable after several. */
const CHECK_MS = 15_000;

/** A server that is away keeps no other one from being asked. */
const SOURCES_AT_ONCE = 8;

/** How old a mark of an exhausted pool may be when this process sees it first: milliseconds. */
const WANTED_MS = 120_000;

const DISPUTED =
  "nothing is given of blocks that another cluster has too, that are the range's no more, or that bear this one's mark no more";

/** Shortest time between two writes of a pool for other clusters' blocks alone: milliseconds. All agents watch. */
const OTHERS_REST_MS = 600_000;

export function startBlocks(deps: BlocksDeps): Controller {
  const { caches } = deps;
  const blocks = new Blocks(deps);
  const loop = startReconciling(deps, {
    failure: "Leasing blocks of addresses failed",
    work: () => blocks.reconcile(),
    restMs: () => BLOCKS_REST_MS,
    follow: (wake) => [
      caches.pools.subscribe((change) => {
        const now = valueAfter(change);
        if (sourceOf(now) === undefined && sourceOf(change.before) === undefined) return;
        const isMarked = now?.value?.wanted !== change.before?.value?.wanted;
        if (isMarked && now?.value !== undefined) blocks.noteWaiting(now.value);
        if (isMarked || now?.generation !== change.before?.generation) wake();
      }),
      caches.epoch.subscribe(wake),
      caches.reserved.subscribe(wake),
    ],
  });
  return {
    get problems() {
      return [...blocks.problems, ...loop.problems];
    },
    measurements: { ranges: () => measureRanges(blocks.sources.records, caches) },
    close: () => loop.close(),
  };
}

function sourceOf(pool: ControlledPool | undefined): IpPool["source"] {
  return pool?.value?.source;
}

/** This process's memory of a pool; a later process starts anew, which is the safe side. */
class PoolMemory {
  readonly states = new Map<string, { readonly state: BlockState; readonly sinceMs: number }>();
  wanted: string | undefined;
  /** Pods that wait, as agents have said since blocks were leased last; and as many as the latest plan knew of. */
  waiting = 0;
  planned = 0;
  surplusSinceMs: number | undefined;
  /** When its status was written last. */
  wroteMs: number | undefined;
}

class Blocks {
  readonly sources: BlockSources;
  readonly #deps: BlocksDeps;
  readonly #memories = new Map<string, PoolMemory>();
  /** Sentences without a full stop, of the latest pass that has ended; and by key those of this one. */
  problems: readonly string[] = [];
  #found = new Map<string, string>();

  constructor(deps: BlocksDeps) {
    this.#deps = deps;
    this.sources = new BlockSources(deps);
  }

  /** An agent has marked the pool. */
  noteWaiting({ name, waiting = 0 }: IpPool): void {
    this.#memory(name).waiting += waiting;
  }

  /** Returns after how many milliseconds to look again; undefined: no pool has a source. */
  async reconcile(): Promise<number | undefined> {
    const { caches, hub } = this.#deps;
    this.#found = new Map();
    const held = await this.sources.held().catch((error: unknown) => {
      this.#found.set("", `Blocks of pools that are gone are not returned: ${messageOf(error)}`);
      return [];
    });
    const followed = followedSources(caches, held);
    const pools = new Set<string>(followed.flatMap(({ pools }) => pools.map(({ pool }) => pool.name)));
    for (const name of this.#memories.keys()) if (!pools.has(name)) this.#memories.delete(name);
    const keys = new Set(followed.map(({ key }) => key));
    this.sources.records.keep(keys);
    await inParallel(followed, SOURCES_AT_ONCE, (each) => this.#follow(each));
    this.problems = [...this.#found.values()];
    if (hub === undefined && followed.length === 0) return undefined;
    return Math.min(hub?.checkMs ?? CHECK_MS, ...this.#restsMs());
  }

  /** How long each block will rest: ADDs wait for the end of it, for 15 s more than it takes. */
  #restsMs(): number[] {
    const nowMs = this.#deps.clock.nowMs();
    return [...this.#memories.values()]
      .flatMap(({ states }) => [...states.values()])
      .map(({ state, sinceMs }) => (state === "Resting" ? sinceMs + REST_MS - nowMs : 0))
      .filter((restMs) => restMs > 0);
  }

  async #follow(followed: Followed): Promise<void> {
    const { pools } = followed;
    const { caches } = this.#deps;
    const [{ epoch } = { epoch: "" }] = caches.epoch.items.values();
    let view: SourceView;
    let plans: readonly { readonly each: SourcedPool; readonly plan: BlocksPlan }[];
    try {
      view = await this.sources.ask(followed, { lease: {}, giveBack: [] });
      // While the registry lacks records of pods, a block only seems to be empty.
      const mayReturn = view.bar === undefined && hasEveryRecord(caches);
      const returned = await findEmpty(this.#deps, followed, view, mayReturn);
      plans = this.#planAll(pools, view, returned);
      const giveBack = [...returned.orphans, ...plans.flatMap(({ plan }) => plan.giveBack)];
      const [first] = plans;
      const missing = first === undefined ? [] : missingBlocks(caches, view);
      if (missing.length > 0 || giveBack.length > 0 || plans.some(({ plan }) => plan.wants > 0)) {
        const total = ({ blocks, giveBack, wants }: BlocksPlan) => blocks.length - giveBack.length + wants;
        const lease = Object.fromEntries(plans.map(({ each, plan }) => [each.pool.name, total(plan)]));
        const claim = Object.fromEntries(missing.map((block) => [block, first?.each.pool.name ?? ""]));
        view = await this.sources.ask(followed, { lease, giveBack, claim });
        for (const { pool } of pools) {
          const memory = this.#memory(pool.name);
          memory.wanted = pool.wanted;
          memory.waiting -= memory.planned;
        }
        plans = this.#planAll(pools, view, returned);
      }
    } catch (error) {
      await this.#endUnheard(followed, error);
      return;
    }
    await this.#end(followed, view, plans, epoch);
  }

  /** Pools show why there was no answer, and keep their blocks. */
  async #endUnheard({ key, spec, pools }: Followed, error: unknown): Promise<void> {
    const { records } = this.sources;
    const reason = error instanceof SourceFailure ? error.reason : "Failed";
    const [outage, cause] = [describeOutage(reason, spec), messageOf(error)];
    this.#found.set(key, `${describeSource(spec)}: ${outage}: ${cause}`);
    // No word says what is in the way.
    const problem = reason === "Failed" ? `${outage}: ${cause}` : outage;
    records.ended(key, reason);
    for (const each of pools) {
      const { report = NO_REPORT } = each.source;
      const heard = report.heard || records.heard(key);
      await this.#write(each, { ...each.source, problem, report: { ...report, reason, heard } }, false);
    }
  }

  async #end(
    { key, spec, pools }: Followed,
    view: SourceView,
    plans: readonly { readonly each: SourcedPool; readonly plan: BlocksPlan }[],
    epoch: string,
  ): Promise<void> {
    const { records } = this.sources;
    const { reason, text: problem = "" } = problemOf(view) ?? {};
    if (problem !== "") this.#found.set(key, `${describeSource(spec)}: ${problem}`);
    const disputed = Object.keys(view.disputed).sort(compareBlocks).join(", ");
    if (disputed !== "") this.#found.set(`${key} disputed`, `${describeSource(spec)}: ${DISPUTED}: ${disputed}`);
    records.ended(key, reason);
    const { excluded, share } = view;
    const report: SourceReport = {
      ...{ reason: reason ?? "", heard: "", member: this.sources.memberOf(spec), share, others: otherMembers(view) },
    };
    for (const { each, plan } of plans) {
      const memory = this.#memory(each.pool.name);
      memory.surplusSinceMs = plan.isSurplus ? (memory.surplusSinceMs ?? this.#deps.clock.nowMs()) : undefined;
      // The record of the registry's epoch may be missing for a moment.
      await this.#write(each, { epoch: epoch || each.source.epoch, problem, excluded, blocks: plan.blocks, report });
    }
    for (const each of pools) {
      const problem = findMisfit(each, view);
      if (problem === undefined) continue;
      records.ended(key, reason ?? "OtherSubnet");
      this.#found.set(each.pool.name, `IPPool "${each.pool.name}" leases nothing: ${problem}`);
      await this.#write(each, { epoch, problem, blocks: [], report: { ...report, reason: "OtherSubnet" } });
    }
  }

  #memory(pool: string): PoolMemory {
    return this.#memories.getOrInsertComputed(pool, () => new PoolMemory());
  }

  #planAll(pools: readonly SourcedPool[], view: SourceView, returned: EmptyBlocks) {
    return pools
      .filter((each) => findMisfit(each, view) === undefined)
      .map((each) => ({ each, plan: this.#plan(each, view, returned) }));
  }

  #plan({ pool, source }: SourcedPool, view: SourceView, { mayReturn, isUsed, isEmpty }: EmptyBlocks) {
    const { caches, clock } = this.#deps;
    const memory = this.#memory(pool.name);
    const nowMs = clock.nowMs();
    const known = source.blocks.map(({ block, state }): KnownBlock => {
      const before = memory.states.get(block);
      const sinceMs = before?.state === state ? before.sinceMs : nowMs;
      memory.states.set(block, { state, sinceMs });
      return { block, state, ageMs: nowMs - sinceMs };
    });
    const leased = Object.entries({ ...view.blocks, ...view.disputed })
      .flatMap(([block, name]) => (name === pool.name ? [block] : []))
      .sort(compareBlocks);
    const reserved = valuesOf(caches.reserved.items.values());
    const free = freeCounter(pool, caches.allocations.items.values(), leased, reserved);
    memory.planned = memory.waiting;
    const plan = planBlocks({
      ...{ known, leased, isContested: view.bar?.kind === "contested" },
      ...{ isDisputed: (block) => block in view.disputed, mayReturn, isUsed, isEmpty },
      ...{ freeOf: free, size: view.size },
      isWanted: memory.waiting > 0 || (pool.wanted !== memory.wanted && isYoung(pool.wanted, clock.now())),
      waiting: memory.waiting,
      surplusMs: memory.surplusSinceMs === undefined ? 0 : nowMs - memory.surplusSinceMs,
    });
    for (const block of memory.states.keys()) if (!leased.includes(block)) memory.states.delete(block);
    // The hub has said that it is leased: its rest begins now, and not when its state is read again.
    for (const { block, state } of plan.blocks)
      if (state === "Resting" && memory.states.get(block)?.state !== state)
        memory.states.set(block, { state, sinceMs: nowMs });
    return plan;
  }

  async #write(
    { object, source }: SourcedPool,
    status: Omit<Parameters<typeof encodeSourceStatus>[0], "asOf">,
    hasAnswered = true,
  ): Promise<void> {
    const { api, leading: signal, poolWrites, log, clock } = this.#deps;
    const asOf = nextAsOf(source.asOf, clock.now(), hasAnswered);
    const body = { status: { source: encodeSourceStatus({ ...status, asOf }) } };
    const { others } = body.status.source;
    const isSame = (before: Parameters<typeof encodeSourceStatus>[0], change: object = {}) =>
      JSON.stringify({ ...encodeSourceStatus(before), ...change }) === JSON.stringify(body.status.source);
    if (isSame(source)) return;
    const memory = this.#memory(object.name);
    const isOnlyOthers = isSame(source, { others });
    if (isOnlyOthers && clock.nowMs() - (memory.wroteMs ?? Number.NEGATIVE_INFINITY) < OTHERS_REST_MS) return;
    const { name, uid, resourceVersion } = object;
    const written = await patchIfSame(api, {
      path: statusPath(IP_POOLS, { name }),
      uid,
      resourceVersion,
      body,
      signal,
    });
    if (written === undefined) return;
    memory.wroteMs = clock.nowMs();
    poolWrites.spend(1);
    const { others: _, ...told } = body.status.source;
    const isQuiet = isSame({ ...source, asOf }, { others });
    log[isQuiet ? "debug" : "info"]({ pool: name, ...told }, "The blocks of a pool were written");
  }
}

/** Whether an ADD may still wait that has marked its pool then. An earlier process has heard of others. */
function isYoung(wanted: string | undefined, now: Date): boolean {
  return wanted !== undefined && now.getTime() - Date.parse(wanted) < WANTED_MS;
}
