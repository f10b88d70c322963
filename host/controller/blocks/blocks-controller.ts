/**
 * Leases blocks for the pools that have `spec.source`, ahead of need, and writes into their status which addresses
 * pods may have. plan-blocks.ts decides; a hub that does not answer leaves everything as it is.
 */

import { randomUUID } from "node:crypto";
import type { BlockSource, SourceView } from "../../blocks/block-source.ts";
import { compareBlocks } from "../../blocks/blocks-of-range.ts";
import { Hub } from "../../blocks/hub.ts";
import { OwnRanges } from "../../blocks/own-ranges.ts";
import type { Bar } from "../../blocks/plan-range.ts";
import { joinSpans, sizeOf, spansOf, withoutSpans } from "../../core/spans.ts";
import { readClusterId } from "../../kubernetes/cluster-id.ts";
import { statusPath } from "../../kubernetes/paths.ts";
import { messageOf } from "../../lib/describe.ts";
import { byName, compareText } from "../../lib/order.ts";
import { formatPrefix, type Prefix, parsePrefix } from "../../net/prefix.ts";
import { rangeOfPrefix } from "../../net/range.ts";
import { IP_POOLS } from "../../resources/collections.ts";
import type { IpPool } from "../../resources/ip-pool.ts";
import { poolShape } from "../../resources/ip-pool-shape.ts";
import { type BlockState, encodeSourceStatus } from "../../resources/pool-source.ts";
import type { CachedAllocation } from "../cached-allocation.ts";
import type { ControlledPool } from "../objects.ts";
import { patchIfSame } from "../patch.ts";
import { startReconciling } from "../reconcile-loop.ts";
import type { ControllerDeps, StartController } from "../types.ts";
import { type KnownBlock, planBlocks } from "./plan-blocks.ts";

/** Shortest time between two passes: milliseconds. */
const BLOCKS_REST_MS = 1_000;

/** Interval at which the hub is asked: milliseconds. A resting block becomes usable after several. */
const HUB_CHECK_MS = 15_000;

/** Time for which a hub may take to answer: milliseconds. */
const HUB_PATIENCE_MS = 10_000;

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
      if (now?.value?.wanted !== change.before?.value?.wanted || now?.generation !== change.before?.generation)
        loop.wake();
    }),
    caches.epoch.subscribe(() => loop.wake()),
  ];
  return {
    get problems() {
      return [...blocks.problems, ...loop.problems];
    },
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
  surplusSinceMs: number | undefined;
}

class Blocks {
  readonly #deps: ControllerDeps;
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

  /** Returns after how many milliseconds to look again; undefined: no pool has a source. */
  async reconcile(): Promise<number | undefined> {
    const pools = this.#sourced();
    for (const name of this.#memories.keys())
      if (!pools.some(({ pool }) => pool.name === name)) this.#memories.delete(name);
    this.#problems = new Map();
    const byRange = Map.groupBy(pools, ({ source }) => source.range);
    for (const [range, own] of byRange) await this.#follow(range, own);
    return byRange.size === 0 ? undefined : (this.#deps.hub?.checkMs ?? HUB_CHECK_MS);
  }

  #sourced(): readonly SourcedPool[] {
    return [...this.#deps.caches.pools.items.values()].sort(byName).flatMap((object) => {
      const { value: pool } = object;
      return pool?.source === undefined || object.deleting ? [] : [{ object, pool, source: pool.source }];
    });
  }

  async #follow(range: string, pools: readonly SourcedPool[]): Promise<void> {
    const { epoch } = [...this.#deps.caches.epoch.items.values()][0] ?? { epoch: "" };
    let view: SourceView;
    let plans: readonly { readonly each: SourcedPool; readonly plan: ReturnType<typeof planBlocks> }[];
    try {
      view = await this.#ask(range, {}, []);
      plans = this.#planAll(pools, view);
      const lease = Object.fromEntries(plans.map(({ each, plan }) => [each.pool.name, plan.total]));
      // What another member has from before, and no pod here: it is given back.
      const unused = Object.keys(view.disputed).filter((block) => !plans.some(({ each }) => isUsed(each, block)));
      if (unused.length > 0 || plans.some(({ plan }) => plan.total > plan.blocks.length)) {
        view = await this.#ask(range, lease, unused);
        for (const each of pools) this.#memory(each.pool.name).wanted = each.pool.wanted;
        plans = this.#planAll(pools, view);
      }
    } catch (error) {
      const problem = "the hub cannot be asked, pods get what is leased already";
      this.#problems.set(range, `AddressRange "${range}": ${problem}: ${messageOf(error)}`);
      for (const each of pools) await this.#write(each, { ...each.source, problem });
      return;
    }
    const problem = describeBar(view);
    if (problem !== "") this.#problems.set(range, `AddressRange "${range}": ${problem}`);
    const { excluded } = view;
    for (const { each, plan } of plans) await this.#write(each, { epoch, problem, excluded, blocks: plan.blocks });
    for (const each of pools.filter((pool) => !isOfSubnet(pool, view))) {
      const { subnet } = each.pool.spec;
      const problem = `its subnet ${formatPrefix(subnet)} is not that of the range, ${formatPrefix(view.subnet)}`;
      this.#problems.set(each.pool.name, `IPPool "${each.pool.name}" leases nothing: ${problem}`);
      await this.#write(each, { epoch, problem, blocks: [] });
    }
  }

  async #ask(range: string, lease: Readonly<Record<string, number>>, giveBack: readonly string[]): Promise<SourceView> {
    const { hub, api, leading } = this.#deps;
    if (hub === undefined) throw new Error("the controller has no hub (--hub-kubeconfig)");
    this.#source ??= new Hub({
      ...{ hub: hub.api, name: hub.member, newId: randomUUID },
      own: new OwnRanges(api, hub.namespace),
      cluster: await readClusterId(api, HUB_PATIENCE_MS),
    });
    return this.#source.update(
      range,
      { lease, giveBack },
      AbortSignal.any([leading, AbortSignal.timeout(HUB_PATIENCE_MS)]),
    );
  }

  #memory(pool: string): PoolMemory {
    const known = this.#memories.get(pool) ?? { states: new Map(), wanted: undefined, surplusSinceMs: undefined };
    this.#memories.set(pool, known);
    return known;
  }

  #planAll(pools: readonly SourcedPool[], view: SourceView) {
    return pools.filter((each) => isOfSubnet(each, view)).map((each) => ({ each, plan: this.#plan(each, view) }));
  }

  #plan({ pool, source }: SourcedPool, view: SourceView) {
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
    const leased = Object.keys(view.blocks)
      .filter((block) => view.blocks[block] === pool.name)
      .sort(compareBlocks);
    const free = freeCounter(
      pool,
      caches.allocations.items.values(),
      { blocks: leased, size: BigInt(view.size) },
      [...caches.reserved.items.values()].flatMap(({ value }) => value ?? []),
    );
    const plan = planBlocks({
      ...{ known, leased, isOpen: view.isOpen, isContested: view.isContested },
      ...{ freeOf: free, size: view.size },
      isWanted: pool.wanted !== undefined && pool.wanted !== memory.wanted,
      surplusMs: memory.surplusSinceMs === undefined ? 0 : nowMs - memory.surplusSinceMs,
    });
    memory.surplusSinceMs = plan.isSurplus ? (memory.surplusSinceMs ?? nowMs) : undefined;
    return plan;
  }

  async #write({ object, source }: SourcedPool, status: Parameters<typeof encodeSourceStatus>[0]): Promise<void> {
    const { api, leading: signal, poolWrites, log } = this.#deps;
    const body = { status: { source: encodeSourceStatus(status) } };
    if (JSON.stringify(encodeSourceStatus(source)) === JSON.stringify(body.status.source)) return;
    const { name, uid, resourceVersion } = object;
    const written = await patchIfSame(api, {
      path: statusPath(IP_POOLS, { name }),
      uid,
      resourceVersion,
      body,
      signal,
    });
    if (written === undefined) return;
    poolWrites.spend(1);
    log.info({ pool: name, ...body.status.source }, "The blocks of a pool have changed");
  }
}

function isOfSubnet({ pool: { spec } }: SourcedPool, { subnet }: SourceView): boolean {
  return formatPrefix(spec.subnet) === formatPrefix(subnet);
}

/** Whether pods may have addresses of the block. */
function isUsed({ source }: SourcedPool, block: string): boolean {
  return source.blocks.some((each) => each.block === block && each.state !== "Resting");
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
    if (spec.addressSpace !== pool.spec.addressSpace || spec.ip.family !== pool.spec.family) continue;
    const block = byFirst.get(spec.ip.value - (spec.ip.value % size));
    if (block !== undefined) counts.set(block, Math.max(0, (counts.get(block) ?? 0) - 1));
  }
  return (block) => counts.get(block) ?? 0;
}

/** Returns a sentence without a full stop; "" if nothing is in the way. */
function describeBar({ bar, short, blocks, others }: SourceView): string {
  if (bar !== undefined) return BARS[bar.kind](bar as never);
  if (short === undefined) return "";
  if (short === "share") return "this cluster has as many blocks as it may have (spec.members, maxBlocks)";
  const byMember = Map.groupBy(Object.values(others), (member) => member);
  const held = [...byMember].sort(([a], [b]) => compareText(a, b)).map(([member, { length }]) => `${member} ${length}`);
  return `no block is free: this cluster has ${[Object.keys(blocks).length, ...held].join(", ")}`;
}

const BARS: { readonly [K in Bar["kind"]]: (bar: Extract<Bar, { kind: K }>) => string } = {
  notMember: () => "the cluster is not in spec.members; it keeps what it has, and leases no more",
  otherCluster: ({ cluster }) =>
    `another cluster, ${cluster}, is the member of this name; want another name (--hub-member)`,
  contested: () =>
    "two clusters act in this one's name, or this one was restored; it neither leases nor returns until an administrator has chosen one",
  gone: () =>
    "an administrator has declared this cluster gone; it gives no address until its entry of status.members is removed",
  open: ({ waitsFor }) =>
    `the hub went back in time; nothing is leased until these members have written again: ${waitsFor.join(", ")}`,
};
