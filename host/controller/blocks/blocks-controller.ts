/**
 * Leases blocks for the pools that have `spec.source`, ahead of need, and writes into their status which addresses
 * pods may have. plan-blocks.ts decides; a hub that does not answer leaves everything as it is.
 */

import { randomUUID } from "node:crypto";
import { type BlockSource, SourceFailure, type SourceView } from "../../blocks/block-source.ts";
import { compareBlocks } from "../../blocks/blocks-of-range.ts";
import { describeOutage, problemOf } from "../../blocks/describe-problem.ts";
import { Hub } from "../../blocks/hub.ts";
import { OwnRanges } from "../../blocks/own-ranges.ts";
import { joinSpans, sizeOf, spansOf, withoutSpans } from "../../core/spans.ts";
import { readClusterId } from "../../kubernetes/cluster-id.ts";
import { callIfThere } from "../../kubernetes/kube-api.ts";
import { objectPath, statusPath } from "../../kubernetes/paths.ts";
import { messageOf } from "../../lib/describe.ts";
import { byName } from "../../lib/order.ts";
import { formatPrefix, type Prefix, parsePrefix, prefixContains } from "../../net/prefix.ts";
import { rangeOfPrefix } from "../../net/range.ts";
import { IP_POOLS } from "../../resources/collections.ts";
import { rangeOfClaim } from "../../resources/ip-allocation.ts";
import type { IpPool } from "../../resources/ip-pool.ts";
import { poolShape } from "../../resources/ip-pool-shape.ts";
import { type BlockState, encodeSourceStatus, NO_REPORT, type SourceReport } from "../../resources/pool-source.ts";
import type { CachedAllocation } from "../cached-allocation.ts";
import { type ControlledPool, decodeControlledPool } from "../objects.ts";
import { patchIfSame } from "../patch.ts";
import { startReconciling } from "../reconcile-loop.ts";
import type { ControllerDeps, StartController } from "../types.ts";
import { BlockReturns, blockOfClaim } from "./block-returns.ts";
import { measureRanges } from "./measure-ranges.ts";
import { type BlocksInput, type BlocksPlan, type KnownBlock, nextAsOf, planBlocks, REST_MS } from "./plan-blocks.ts";
import { otherMembers, RangeRecords } from "./range-records.ts";

/** Shortest time between two passes: milliseconds. */
const BLOCKS_REST_MS = 1_000;

/** Interval at which the hub is asked: milliseconds. A resting block becomes usable after several. */
const HUB_CHECK_MS = 15_000;

/** How old a mark of an exhausted pool may be when this process sees it first: milliseconds. */
const WANTED_MS = 120_000;

/** Time for which a hub may take to answer: milliseconds. */
const HUB_PATIENCE_MS = 10_000;

/** Shortest time between two writes of a pool for other clusters' blocks alone: milliseconds. All agents watch. */
const OTHERS_REST_MS = 600_000;

export const startBlocks: StartController = (deps) => {
  const { caches } = deps;
  const blocks = new Blocks(deps);
  const loop = startReconciling(deps, {
    failure: "Leasing blocks of addresses failed",
    work: () => blocks.reconcile(),
    restMs: () => BLOCKS_REST_MS,
  });
  const ends = [
    caches.pools.subscribe((change) => {
      const now = change.kind === "set" ? change.value : undefined;
      if (sourceOf(now) === undefined && sourceOf(change.before) === undefined) return;
      const isMarked = now?.value?.wanted !== change.before?.value?.wanted;
      if (isMarked && now?.value !== undefined) blocks.noteWaiting(now.value);
      if (isMarked || now?.generation !== change.before?.generation) loop.wake();
    }),
    caches.epoch.subscribe(() => loop.wake()),
  ];
  return {
    get problems() {
      return [...blocks.problems, ...loop.problems];
    },
    measurements: { ranges: () => measureRanges(blocks.records, caches) },
    close: async () => {
      for (const end of ends) end();
      await loop.close();
    },
  };
};

function sourceOf(pool: ControlledPool | undefined): IpPool["source"] {
  return pool?.value?.source;
}

interface SourcedPool {
  readonly object: ControlledPool;
  readonly pool: IpPool;
  readonly source: NonNullable<IpPool["source"]>;
}

/** What this process remembers of a pool; a later one begins anew, which is the safe side. */
interface PoolMemory {
  readonly states: Map<string, { readonly state: BlockState; readonly sinceMs: number }>;
  wanted: string | undefined;
  /** Pods that wait, as agents have said since blocks were leased last; and as many as the latest plan knew of. */
  waiting: number;
  planned: number;
  surplusSinceMs: number | undefined;
  /** When its status was written last. */
  wroteMs: number | undefined;
}

/** How far the blocks of a range have come that are to be returned. */
interface Returned extends Pick<BlocksInput, "mayReturn" | "progressOf" | "isEmpty"> {
  /** Claimed blocks of pools that are gone. */
  readonly orphans: readonly string[];
}

class Blocks {
  readonly records = new RangeRecords();
  readonly #deps: ControllerDeps;
  /** By range. */
  readonly #returns = new Map<string, BlockReturns>();
  readonly #memories = new Map<string, PoolMemory>();
  #source: BlockSource | undefined;
  #problems = new Map<string, string>();

  constructor(deps: ControllerDeps) {
    this.#deps = deps;
  }

  /** Sentences without a full stop. */
  get problems(): readonly string[] {
    return [...this.#problems.values()];
  }

  /** An agent has marked the pool. */
  noteWaiting({ name, waiting = 0 }: IpPool): void {
    this.#memory(name).waiting += waiting;
  }

  /** Returns after how many milliseconds to look again; undefined: no pool has a source. */
  async reconcile(): Promise<number | undefined> {
    const { caches, hub } = this.#deps;
    const pools = this.#sourced();
    for (const name of this.#memories.keys())
      if (!pools.some(({ pool }) => pool.name === name)) this.#memories.delete(name);
    this.#problems = new Map();
    const claims = new Map<string, string[]>();
    for (const { name, spec } of caches.allocations.items.values()) {
      const range = rangeOfClaim(spec);
      if (range !== undefined) claims.set(range, [...(claims.get(range) ?? []), name]);
    }
    const held = await this.#held();
    const byRange = Map.groupBy(pools, ({ source }) => source.range);
    const ranges = new Set([...byRange.keys(), ...held, ...(hub === undefined ? [] : claims.keys())]);
    for (const range of this.#returns.keys()) if (!ranges.has(range)) this.#returns.delete(range);
    this.records.keep(ranges);
    for (const range of ranges) await this.#follow(range, byRange.get(range) ?? [], claims.get(range) ?? []);
    if (hub === undefined && ranges.size === 0) return undefined;
    return Math.min(hub?.checkMs ?? HUB_CHECK_MS, ...this.#restsMs());
  }

  /** How long each block will rest: ADDs wait for the end of it, for 15 s more than it takes. */
  #restsMs(): number[] {
    const nowMs = this.#deps.clock.nowMs();
    return [...this.#memories.values()]
      .flatMap(({ states }) => [...states.values()])
      .map(({ state, sinceMs }) => (state === "Resting" ? sinceMs + REST_MS - nowMs : 0))
      .filter((restMs) => restMs > 0);
  }

  /** The ranges that the cluster has blocks of: also of pools that are gone. */
  async #held(): Promise<readonly string[]> {
    const { hub, api, leading } = this.#deps;
    return hub === undefined ? [] : new OwnRanges(api, hub.namespace).held(leading);
  }

  #sourced(): readonly SourcedPool[] {
    return [...this.#deps.caches.pools.items.values()].sort(byName).flatMap((object) => {
      const { value: pool } = object;
      return pool?.source === undefined || object.deleting ? [] : [{ object, pool, source: pool.source }];
    });
  }

  async #follow(range: string, pools: readonly SourcedPool[], names: readonly string[]): Promise<void> {
    const { epoch, settled } = [...this.#deps.caches.epoch.items.values()][0] ?? { epoch: "", settled: "" };
    let view: SourceView;
    let plans: readonly { readonly each: SourcedPool; readonly plan: BlocksPlan }[];
    let returned: Returned;
    try {
      view = await this.#ask(range, {}, []);
      // While the registry lacks what pods have, a block only seems to be empty.
      const mayReturn =
        (view.bar === undefined || view.bar.kind === "overlaps") &&
        !view.isContested &&
        !view.isOpen &&
        epoch === settled;
      returned = await this.#return(range, pools, { view, names, mayReturn });
      plans = this.#planAll(pools, view, returned);
      const giveBack = [...returned.orphans, ...plans.flatMap(({ plan }) => plan.giveBack)];
      if (giveBack.length > 0 || plans.some(({ plan }) => plan.wants > 0)) {
        const total = ({ blocks, giveBack, wants }: BlocksPlan) => blocks.length - giveBack.length + wants;
        const lease = Object.fromEntries(plans.map(({ each, plan }) => [each.pool.name, total(plan)]));
        view = await this.#ask(range, lease, giveBack);
        for (const { pool } of pools) {
          const memory = this.#memory(pool.name);
          memory.wanted = pool.wanted;
          memory.waiting -= memory.planned;
        }
        plans = this.#planAll(pools, view, returned);
      }
    } catch (error) {
      const reason = error instanceof SourceFailure ? error.reason : "Failed";
      const problem = describeOutage(reason);
      this.#problems.set(range, `AddressRange "${range}": ${problem}: ${messageOf(error)}`);
      this.records.ended(range, reason);
      for (const each of pools) {
        const { report = NO_REPORT } = each.source;
        const heard = report.heard || this.records.heard(range);
        await this.#write(each, { ...each.source, problem, report: { ...report, reason, heard } }, false);
      }
      return;
    }
    const { reason, text: problem = "" } = problemOf(view) ?? {};
    if (problem !== "") this.#problems.set(range, `AddressRange "${range}": ${problem}`);
    this.records.ended(range, reason);
    const { excluded } = view;
    const report = this.#reportOf(view, reason);
    for (const { each, plan } of plans) {
      const memory = this.#memory(each.pool.name);
      memory.surplusSinceMs = plan.isSurplus ? (memory.surplusSinceMs ?? this.#deps.clock.nowMs()) : undefined;
      await this.#write(each, { epoch, problem, excluded, blocks: plan.blocks, report });
    }
    for (const each of pools.filter((pool) => !isOfRange(pool, view))) {
      const { subnet, addressSpace } = each.pool.spec;
      this.records.ended(range, reason ?? "OtherSubnet");
      const problem = `its subnet ${nameSubnet(subnet, addressSpace)} is not that of the range, ${nameSubnet(view.subnet, view.addressSpace)}`;
      this.#problems.set(each.pool.name, `IPPool "${each.pool.name}" leases nothing: ${problem}`);
      await this.#write(each, { epoch, problem, blocks: [], report: { ...report, reason: "OtherSubnet" } });
    }
    const isReturned = (block: string) =>
      plans.some(({ plan }) => plan.blocks.some((each) => each.block === block && each.state === "Returning"));
    await this.#endClaims(range, { view, names, isReturned });
  }

  /** Claims the addresses of the blocks that are to be returned. */
  async #return(
    range: string,
    pools: readonly SourcedPool[],
    { view, names, mayReturn }: { view: SourceView; names: readonly string[]; mayReturn: boolean },
  ): Promise<Returned> {
    const returns = this.#returnsOf(range);
    const claims = claimsByBlock(names, view);
    const used = usedBlocks(this.#deps.caches.allocations.items.values(), view);
    const leased = Object.entries({ ...view.blocks, ...view.disputed });
    const stateOf = (block: string) =>
      pools.flatMap(({ source }) => source.blocks).find((each) => each.block === block)?.state;
    const orphans: string[] = [];
    for (const [block, pool] of leased) {
      const isOrphan = this.#isGone(pool, range);
      if (!isOrphan && stateOf(block) !== "Returning") returns.forget(block);
      else if (mayReturn && (!isOrphan || !used.has(block))) {
        await returns.claim(block, { pool, view });
        if (isOrphan && returns.progressOf(block, []) === "claimed") orphans.push(block);
        // In a while the address that was in use may be free.
        if (isOrphan && returns.progressOf(block, []) === "refused") returns.forget(block);
      }
    }
    const progressOf = (block: string) => returns.progressOf(block, claims.get(block) ?? []);
    return { orphans, mayReturn, progressOf, isEmpty: (block) => !used.has(block) };
  }

  /**
   * Whether there is no pool any more that the block could be for. One that names no source is there: `berthctl blocks`
   * adopts it, or leaves with it.
   */
  #isGone(pool: string, range: string): boolean {
    const object = this.#deps.caches.pools.items.get(pool);
    if (object === undefined || object.deleting) return true;
    const source = sourceOf(object);
    return source !== undefined && source.range !== range;
  }

  /** Deletes the claims that are over. */
  async #endClaims(
    range: string,
    { view, names, isReturned }: { view: SourceView; names: readonly string[]; isReturned: (block: string) => boolean },
  ): Promise<void> {
    const returns = this.#returnsOf(range);
    const leased = { ...view.blocks, ...view.disputed };
    for (const [block, claims] of claimsByBlock(names, view)) {
      const pool = leased[block];
      if (pool === undefined) {
        returns.forget(block);
        await returns.leave(claims);
      } else if (!isReturned(block) && !this.#isGone(pool, range))
        await returns.withdraw(claims, () => this.#isReturned(pool, range, block));
    }
  }

  /** Reads the API server: whether the claims of the block are needed. */
  async #isReturned(pool: string, range: string, block: string): Promise<boolean> {
    const { api, leading: signal } = this.#deps;
    const object = await callIfThere(api, { method: "GET", path: objectPath(IP_POOLS, { name: pool }), signal });
    const now = object && decodeControlledPool(object);
    if (now === undefined || now.deleting || now.value?.source?.range !== range) return true;
    const state = now.value.source.blocks.find((each) => each.block === block)?.state;
    return state === "Returning";
  }

  #returnsOf(range: string): BlockReturns {
    const known = this.#returns.get(range) ?? new BlockReturns(this.#deps, range);
    this.#returns.set(range, known);
    return known;
  }

  #reportOf(view: SourceView, reason = ""): SourceReport {
    const { hub } = this.#deps;
    return { reason, heard: "", member: hub?.member ?? "", share: view.share, others: otherMembers(view) };
  }

  async #ask(range: string, lease: Readonly<Record<string, number>>, giveBack: readonly string[]): Promise<SourceView> {
    const { hub, api, leading } = this.#deps;
    if (hub === undefined) throw new Error("the controller has no hub (--hub-kubeconfig)");
    this.#source ??= new Hub({
      ...{ hub: hub.api, name: hub.member, newId: randomUUID, renews: true },
      own: new OwnRanges(api, hub.namespace),
      cluster: await readClusterId(api, HUB_PATIENCE_MS),
    });
    const signal = AbortSignal.any([leading, AbortSignal.timeout(HUB_PATIENCE_MS)]);
    const view = await this.#source.update(range, { lease, giveBack }, signal);
    this.records.answered(range, view, this.#deps.clock.now());
    return view;
  }

  #memory(pool: string): PoolMemory {
    const known = this.#memories.get(pool) ?? {
      ...{ states: new Map(), wanted: undefined, waiting: 0, planned: 0 },
      ...{ surplusSinceMs: undefined, wroteMs: undefined },
    };
    this.#memories.set(pool, known);
    return known;
  }

  #planAll(pools: readonly SourcedPool[], view: SourceView, returned: Returned) {
    return pools
      .filter((each) => isOfRange(each, view))
      .map((each) => ({ each, plan: this.#plan(each, view, returned) }));
  }

  #plan({ pool, source }: SourcedPool, view: SourceView, { mayReturn, progressOf, isEmpty }: Returned) {
    const { caches, clock } = this.#deps;
    const memory = this.#memory(pool.name);
    const nowMs = clock.nowMs();
    const known = source.blocks.map(({ block, state }): KnownBlock => {
      const before = memory.states.get(block);
      const sinceMs = before?.state === state ? before.sinceMs : nowMs;
      memory.states.set(block, { state, sinceMs });
      return { block, state, ageMs: nowMs - sinceMs };
    });
    // It rests again from the end of the epoch on.
    if (view.isOpen) for (const each of known) if (each.state === "Resting") memory.states.delete(each.block);
    const leased = Object.entries({ ...view.blocks, ...view.disputed })
      .flatMap(([block, name]) => (name === pool.name ? [block] : []))
      .sort(compareBlocks);
    const free = freeCounter(
      pool,
      caches.allocations.items.values(),
      { blocks: leased, size: BigInt(view.size) },
      [...caches.reserved.items.values()].flatMap(({ value }) => value ?? []),
    );
    memory.planned = memory.waiting;
    return planBlocks({
      ...{ known, leased, isOpen: view.isOpen, isContested: view.isContested },
      ...{ isDisputed: (block) => block in view.disputed, mayReturn, progressOf, isEmpty },
      ...{ freeOf: free, size: view.size },
      isWanted: memory.waiting > 0 || (pool.wanted !== memory.wanted && isYoung(pool.wanted, clock.now())),
      waiting: memory.waiting,
      surplusMs: memory.surplusSinceMs === undefined ? 0 : nowMs - memory.surplusSinceMs,
    });
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

function isOfRange({ pool: { spec } }: SourcedPool, { subnet, addressSpace }: SourceView): boolean {
  return formatPrefix(spec.subnet) === formatPrefix(subnet) && spec.addressSpace === addressSpace;
}

/** Whether an ADD may still wait that has marked its pool then. An earlier process has heard of others. */
function isYoung(wanted: string | undefined, now: Date): boolean {
  return wanted !== undefined && now.getTime() - Date.parse(wanted) < WANTED_MS;
}

function nameSubnet(subnet: Prefix, addressSpace: string): string {
  return `${formatPrefix(subnet)}${addressSpace === "" ? "" : ` of address space "${addressSpace}"`}`;
}

/** Returns the claims by which blocks are returned, by block. */
function claimsByBlock(names: readonly string[], view: SourceView): ReadonlyMap<string, readonly string[]> {
  return Map.groupBy(names, (name) => blockOfClaim(name, view) ?? "");
}

/** Returns the blocks of which an address is recorded for anything else. */
function usedBlocks(allocations: Iterable<CachedAllocation>, view: SourceView): ReadonlySet<string> {
  const used = new Set<string>();
  for (const { name, spec } of allocations) {
    if (spec.addressSpace !== view.addressSpace || !prefixContains(view.subnet, spec.ip)) continue;
    const block = rangeOfClaim(spec) === undefined ? blockOfClaim(name, view) : undefined;
    if (block !== undefined) used.add(block);
  }
  return used;
}

/** Returns the function that counts the addresses of a block that are free. */
function freeCounter(
  pool: IpPool,
  allocations: Iterable<CachedAllocation>,
  { blocks, size }: { readonly blocks: readonly string[]; readonly size: bigint },
  reserved: Parameters<typeof poolShape>[1],
): (block: string) => number {
  const prefixes = blocks.flatMap((block) => parsePrefix(block) ?? []);
  const masked = joinSpans(spansOf(poolShape(pool, reserved).masked));
  const freeOf = (block: Prefix): number => Number(sizeOf(withoutSpans(spansOf([rangeOfPrefix(block)]), masked)));
  const counts = new Map(prefixes.map((block) => [formatPrefix(block), freeOf(block)]));
  // Blocks are aligned: the first address of the one that an address is in is a multiple of their size.
  const byFirst = new Map(prefixes.map((block) => [block.ip.value, formatPrefix(block)]));
  for (const { spec } of allocations) {
    if (
      rangeOfClaim(spec) !== undefined ||
      spec.addressSpace !== pool.spec.addressSpace ||
      spec.ip.family !== pool.spec.family
    )
      continue;
    const block = byFirst.get(spec.ip.value - (spec.ip.value % size));
    if (block !== undefined) counts.set(block, Math.max(0, (counts.get(block) ?? 0) - 1));
  }
  return (block) => counts.get(block) ?? 0;
}
