/**
 * Blocks from an AddressRange of the hub, an API server that several clusters share. plan-range.ts decides; here its
 * plans are carried out, each based on what was read, until nothing is left to do.
 */
import { setTimeout as sleep } from "node:timers/promises";
import * as z from "zod";
import { isConflict, type KubeApi, type KubeObject } from "../../../host/kubernetes/kube-api.ts";
import { collectionPath, objectPath, statusPath } from "../../../host/kubernetes/paths.ts";
import { bitsOf } from "../../../host/net/ip.ts";
import { parsePrefix } from "../../../host/net/prefix.ts";
import { rangeOfPrefix, rangesOverlap } from "../../../host/net/range.ts";
import { ADDRESS_RANGES } from "../../../host/resources/collections.ts";
import { type AddressRange, decodeAddressRange, encodeMembership } from "../address-range.ts";
import type { BlockSource, SourceView } from "./block-source.ts";
import { countBlocks } from "./blocks-of-range.ts";
import { hubFailure } from "./hub-failure.ts";
import type { OwnRange } from "./own-range.ts";
import type { OwnRanges } from "./own-ranges.ts";
import {
  type BlockDemand,
  blocksOf,
  type Plan,
  planRange,
  type RangeWrite,
  usableBlocks,
  waitedFor,
} from "./plan-range.ts";
import { exemptOf } from "./plan-release.ts";

/** Most plans that are carried out for one question: others may write to the range all the time. */
const MAX_PLANS = 32;

/** Time for which a read of the hub is tried again: milliseconds. Less than its caller waits, who learns why. */
const READ_PATIENCE_MS = 5_000;

/**
 * Longest pause after the first conflict and after many: milliseconds. Clusters that all want a block at once would
 * else keep the hub busy with writes that come too late.
 */
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 3_200;

interface HubOptions {
  /** The hub's. */
  readonly hub: Pick<KubeApi, "call">;
  readonly own: OwnRanges;
  /** This cluster's name in the members of its ranges. */
  readonly name: string;
  /** UID of its namespace kube-system. */
  readonly cluster: string;
  /** Returns a UUID. */
  readonly newId: () => string;
  /** Whether its first question replaces the cluster's token, so that a copy is found out. Default: no. */
  readonly renews?: boolean;
}

export class Hub implements BlockSource {
  readonly #options: HubOptions;
  /** The tokens with which it began, by range. */
  readonly #stale = new Map<string, string>();

  constructor(options: HubOptions) {
    this.#options = options;
  }

  async update(name: string, wanted: BlockDemand, signal: AbortSignal): Promise<SourceView> {
    const { own, cluster, newId, renews = false } = this.#options;
    let overlapping: readonly string[] | undefined;
    let range = await this.#read(name, signal);
    let known = await own.read(name, signal);
    if (renews && !this.#stale.has(name)) this.#stale.set(name, known.own.token);
    let demand: BlockDemand = { ...wanted, stale: this.#stale.get(name) };
    let longestPauseMs = FIRST_PAUSE_MS;
    for (let plans = 0; plans < MAX_PLANS; plans++) {
      const self = { name: this.#options.name, cluster, start: startOf(cluster, countBlocks(range.spec)) };
      const plan = planRange({ range, own: known.own, self, demand, newId });
      if (plan.kind === "remember") known = await own.write(name, { ...known, own: plan.own }, signal);
      else if (plan.kind !== "write") {
        const ranges = overlapping ?? [];
        const isBarred = plan.kind === "rest" && ranges.length > 0;
        const outcome = isBarred ? ({ kind: "barred", bar: { kind: "overlaps", ranges } } as const) : plan;
        return viewOf(outcome, { range, own: known.own, self });
      } else if (overlapping === undefined && leasesAnew(plan.write, known.own)) {
        overlapping = await this.#findOverlapping(range, signal);
        if (overlapping.length > 0) demand = { ...demand, lease: {} };
      } else {
        const written = await this.#write(range, plan.write, signal);
        if (written === undefined) {
          await sleep(Math.random() * longestPauseMs, undefined, { signal });
          longestPauseMs = Math.min(2 * longestPauseMs, LONGEST_PAUSE_MS);
        }
        range = written === undefined ? await this.#read(name, signal) : decodeAddressRange(written, nameOf(name));
      }
    }
    throw new Error(`AddressRange "${name}" was changed by others ${MAX_PLANS} times; trying again later`);
  }

  #read(name: string, signal: AbortSignal): Promise<AddressRange> {
    return readRange(this.#options.hub, name, signal);
  }

  /** Returns the names of the hub's other ranges that have addresses of this one. */
  async #findOverlapping({ name, spec: { subnet, addressSpace } }: AddressRange, signal: AbortSignal) {
    const { hub } = this.#options;
    const { items } = rangeList.parse(await hub.call({ method: "GET", path: collectionPath(ADDRESS_RANGES), signal }));
    const others = items.filter(({ metadata, spec }) => {
      const other = parsePrefix(spec.subnet);
      if (metadata.name === name || other === undefined || (spec.addressSpace ?? "") !== addressSpace) return false;
      return rangesOverlap(rangeOfPrefix(other), rangeOfPrefix(subnet));
    });
    return others.map(({ metadata }) => metadata.name);
  }

  /** Returns undefined if others have written since the range was read. */
  async #write(
    { name, uid, resourceVersion, status }: AddressRange,
    write: RangeWrite,
    signal: AbortSignal,
  ): Promise<KubeObject | undefined> {
    const { epoch, isRestored, leases, member } = write;
    const body = {
      metadata: { uid, resourceVersion },
      status: {
        ...{ sequence: status.sequence + 1, epoch, restored: isRestored || null, leases },
        members: { [this.#options.name]: encodeMembership(member) },
      },
    };
    try {
      return await this.#options.hub.call({
        method: "PATCH",
        path: statusPath(ADDRESS_RANGES, { name }),
        body,
        signal,
      });
    } catch (error) {
      if (isConflict(error)) return undefined;
      throw hubFailure(error);
    }
  }
}

/** Rejects with SourceFailure. */
export async function readRange(hub: Pick<KubeApi, "call">, name: string, signal: AbortSignal): Promise<AddressRange> {
  const call = { path: objectPath(ADDRESS_RANGES, { name }), patienceMs: READ_PATIENCE_MS, signal };
  try {
    return decodeAddressRange(await hub.call({ method: "GET", ...call }), nameOf(name));
  } catch (error) {
    throw hubFailure(error);
  }
}

/** Of ranges of any version what tells which addresses they have. */
const rangeList = z.object({
  items: z.array(
    z.object({
      metadata: z.object({ name: z.string() }),
      spec: z.object({ subnet: z.string(), addressSpace: z.string().optional() }),
    }),
  ),
});

/** Whether a block is leased that the cluster did not have before. */
function leasesAnew({ leases }: RangeWrite, { blocks, disputed }: OwnRange): boolean {
  return Object.entries(leases).some(([block, lease]) => lease !== null && !(block in blocks) && !(block in disputed));
}

function nameOf(range: string): string {
  return `AddressRange "${range}"`;
}

/** Clusters begin their search at different blocks, each always at the same. */
function startOf(cluster: string, blocks: number): number {
  const digits = cluster.replaceAll(/[^0-9a-f]/g, "").slice(0, 8);
  return Number.parseInt(digits === "" ? "0" : digits, 16) % blocks;
}

function viewOf(
  plan: Exclude<Plan, { kind: "remember" | "write" }>,
  inputs: Parameters<typeof usableBlocks>[0],
): SourceView {
  const { range, self } = inputs;
  const blocks = usableBlocks(inputs);
  const held = Object.entries(blocksOf(range.status, self.name));
  const others = Object.entries(range.status.leases).filter(([, { member }]) => member !== self.name);
  const { family, subnet, addressSpace, blockSize } = range.spec;
  const waitsFor = waitedFor(range);
  const bar =
    plan.kind === "barred" ? plan.bar : waitsFor.length > 0 ? ({ kind: "open", waitsFor } as const) : undefined;
  return {
    ...{ subnet, addressSpace, size: 2 ** (bitsOf(family) - blockSize), blocks },
    excluded: exemptOf(range),
    disputed: Object.fromEntries(held.filter(([block]) => !(block in blocks))),
    isContested: range.status.members[self.name]?.isContested === true,
    isOpen: waitsFor.length > 0,
    bar,
    short: plan.kind === "rest" ? plan.short : undefined,
    share: range.spec.members.find(({ name }) => name === self.name)?.maxBlocks,
    others: Object.fromEntries(others.map(([block, { member }]) => [block, member])),
  };
}
