/**
 * What a cluster does next with a prefix of the IPAM of record of which it takes parts as blocks: decided from the
 * prefixes within it, from what the cluster remembers, and from what it needs (docs/decisions/0056). The same function
 * whatever was interrupted before.
 *
 * The server compares nothing when it writes. So a cluster uses only what it has seen alone after it was made: of two
 * that overlap, the one that is seen second sees the other.
 */

import { formatPrefix, type Prefix, prefixesOverlap } from "../../../../host/net/prefix.ts";
import type { ChildPrefix, Mark } from "../../record-server/child-prefix.ts";
import { halvesOf, requirePrefix } from "../blocks-of-range.ts";
import type { BlockDemand } from "../plan-range.ts";
import type { OwnPrefixes } from "./own-prefixes.ts";

/** Most requests that are remembered after their prefixes were given back. */
const MAX_PAST = 256;

export type PrefixPlan =
  /** What it must remember now; then it plans again. */
  | { readonly kind: "remember"; readonly own: OwnPrefixes }
  /** Let the server choose a free block. */
  | { readonly kind: "ask"; readonly mark: Mark }
  | { readonly kind: "make"; readonly prefix: Prefix; readonly mark: Mark }
  | { readonly kind: "remove"; readonly child: ChildPrefix }
  | { readonly kind: "rest" }
  /** Another cluster acts in this one's name, or this one is older than its last request. */
  | { readonly kind: "contested" };

interface PrefixInputs {
  readonly children: readonly ChildPrefix[];
  readonly own: OwnPrefixes;
  /** UID of this cluster's namespace kube-system. */
  readonly cluster: string;
  /** Its name, as people know it. */
  readonly name: string;
  /** Length of each block. */
  readonly blockSize: number;
  readonly demand: BlockDemand;
  /** Whether the server was asked anew since the last pass. */
  readonly isNewPass: boolean;
  /** Returns a UUID. */
  readonly newId: () => string;
}

export function planPrefixes(inputs: PrefixInputs): PrefixPlan {
  const { own } = inputs;
  const unknown = unknownOf(inputs);
  if (unknown.length > 0) return own.isRejoining ? rejoin(inputs, unknown) : { kind: "contested" };
  return (
    planRequest(inputs) ?? planGivingBack(inputs) ?? planRemoving(inputs) ?? planAgain(inputs) ?? planDemand(inputs)
  );
}

type Facts = Pick<PrefixInputs, "children" | "own" | "cluster">;

interface PrefixUse {
  /** The blocks that the cluster may use, with their pools. */
  readonly blocks: Readonly<Record<string, string>>;
  /** Those that the server has lost while another one got their addresses, or that were got so. */
  readonly disputed: Readonly<Record<string, string>>;
  /** Prefixes of people within the blocks: no pod gets their addresses. */
  readonly foreign: readonly Prefix[];
}

/** Returns what the cluster may use, by the server's answer. */
export function usablePrefixes({
  children,
  own,
  cluster,
  blockSize,
}: Facts & Pick<PrefixInputs, "blockSize">): PrefixUse {
  const blocks: Record<string, string> = {};
  const disputed: Record<string, string> = {};
  const foreign: Prefix[] = [];
  for (const [block, { pool }] of Object.entries(own.leases)) {
    // Of a pool that was made anew with blocks of another size.
    if (requirePrefix(block).length !== blockSize) continue;
    const child = findOwn({ children, cluster }, block, own);
    const others = child === undefined ? [] : overlapping(children, child.prefix, cluster);
    const isDisputed = others.some(({ mark }) => mark !== undefined && (mark.isAgain || child?.mark?.isAgain === true));
    if (child === undefined || isDisputed) disputed[block] = pool;
    else {
      blocks[block] = pool;
      const within = others.filter(({ prefix, mark }) => mark === undefined && prefix.length >= child.prefix.length);
      foreign.push(...within.map(({ prefix }) => prefix));
    }
  }
  return { blocks, disputed, foreign };
}

/** Returns the leases that the server has lost. */
export function lostBlocks({ children, own, cluster }: Facts) {
  return Object.keys(own.leases).filter((block) => findOwn({ children, cluster }, block, own) === undefined);
}

/** Returns the prefixes of others that overlap with it. */
function overlapping(children: readonly ChildPrefix[], prefix: Prefix, cluster: string): readonly ChildPrefix[] {
  return children.filter((each) => each.mark?.cluster !== cluster && prefixesOverlap(each.prefix, prefix));
}

/** Those that bear the cluster's name, and that it does not know. */
function unknownOf({ children, own, cluster }: Facts): readonly ChildPrefix[] {
  const requests = Object.values(own.leases).map(({ request }) => request);
  const known = new Set([...own.past, ...requests, ...(own.request === null ? [] : [own.request.id])]);
  return children.filter(({ mark }) => mark?.cluster === cluster && !known.has(mark.request));
}

function leasesOf(mine: readonly ChildPrefix[], blockSize: number): OwnPrefixes["leases"] {
  const whole = mine.filter(({ prefix }) => prefix.length === blockSize);
  return Object.fromEntries(
    whole.map(({ prefix, mark: { request = "", pool = "" } = {} as Mark }) => [
      formatPrefix(prefix),
      { request, pool },
    ]),
  );
}

function findOwn(
  { children, cluster }: Pick<PrefixInputs, "children" | "cluster">,
  block: string,
  { leases }: OwnPrefixes,
): ChildPrefix | undefined {
  return children.find(
    ({ prefix, mark }) =>
      mark?.cluster === cluster && mark.request === leases[block]?.request && formatPrefix(prefix) === block,
  );
}

function rejoin({ own, blockSize }: PrefixInputs, unknown: readonly ChildPrefix[]): PrefixPlan {
  const parts = unknown.filter(({ prefix }) => prefix.length !== blockSize);
  return {
    kind: "remember",
    own: {
      ...own,
      isRejoining: false,
      leases: { ...own.leases, ...leasesOf(unknown, blockSize) },
      past: pastWith(own, ...parts.flatMap(({ mark }) => mark?.request ?? [])),
    },
  };
}

function pastWith({ past }: OwnPrefixes, ...requests: readonly string[]): string[] {
  return [...past, ...requests].slice(-MAX_PAST);
}

/** What becomes of the request under way: its prefix is seen alone, or it gives way. */
function planRequest({ children, own, cluster, isNewPass }: PrefixInputs): PrefixPlan | undefined {
  const { request } = own;
  if (request === null) return undefined;
  const made = children.filter(({ mark }) => mark?.cluster === cluster && mark.request === request.id);
  const first = made.toSorted(compareAge)[0];
  if (first === undefined) return undefined;
  const others = children.filter((each) => !made.includes(each) && prefixesOverlap(each.prefix, first.prefix));
  if (others.length === 0) {
    const block = formatPrefix(first.prefix);
    // The server had lost the block, and has given it to the same cluster.
    const before = own.leases[block]?.request;
    const past = before === undefined ? own.past : pastWith(own, before);
    const leases = { ...own.leases, [block]: { request: request.id, pool: request.pool } };
    return { kind: "remember", own: { ...own, request: null, leases, past } };
  }
  // One of another cluster that was created later gives way; no other one does.
  const mayWait = others.every((each) => each.mark?.isAgain === false && compareAge(first, each) < 0);
  if (mayWait && !request.isWaiting)
    return { kind: "remember", own: { ...own, request: { ...request, isWaiting: true } } };
  if (mayWait && !isNewPass) return undefined;
  return { kind: "remember", own: { ...own, request: null, past: pastWith(own, request.id) } };
}

function compareAge(a: ChildPrefix, b: ChildPrefix): number {
  if (a.created !== b.created) return a.created < b.created ? -1 : 1;
  return a.id < b.id ? -1 : 1;
}

function planGivingBack({ own, demand }: PrefixInputs): PrefixPlan | undefined {
  const returned = demand.giveBack.filter((block) => block in own.leases);
  if (returned.length === 0) return undefined;
  const leases = Object.fromEntries(Object.entries(own.leases).filter(([block]) => !returned.includes(block)));
  const past = pastWith(own, ...returned.map((block) => own.leases[block]?.request ?? ""));
  return { kind: "remember", own: { ...own, leases, past } };
}

/** What was given back, what came twice, and the part that stood for a whole one. */
function planRemoving({ children, own, cluster }: PrefixInputs): PrefixPlan | undefined {
  const blocks = new Map(Object.entries(own.leases).map(([block, { request }]) => [request, block]));
  const child = children.find(({ prefix, mark }) => {
    if (mark?.cluster !== cluster) return false;
    if (own.past.includes(mark.request)) return true;
    const block = blocks.get(mark.request);
    if (block === undefined || block === formatPrefix(prefix)) return false;
    return findOwn({ children, cluster }, block, own) !== undefined;
  });
  return child && { kind: "remove", child };
}

/**
 * What the server has lost is made again. If another cluster has got its addresses, half of it is, which tells that
 * one: a server may refuse the same prefix twice.
 */
function planAgain({ children, own, cluster, name }: PrefixInputs): PrefixPlan | undefined {
  for (const block of lostBlocks({ children, own, cluster })) {
    const { request = "", pool = "" } = own.leases[block] ?? {};
    const prefix = requirePrefix(block);
    const mark = { cluster, name, request, pool, isAgain: true };
    const others = overlapping(children, prefix, cluster);
    if (others.length === 0) return { kind: "make", prefix, mark };
    const isTold = children.some((each) => each.mark?.cluster === cluster && each.mark.request === request);
    const half = halvesOf(prefix).find(
      (part) => !others.some((each) => formatPrefix(each.prefix) === formatPrefix(part)),
    );
    if (!isTold && half !== undefined && others.some((each) => each.mark !== undefined))
      return { kind: "make", prefix: half, mark };
  }
  return undefined;
}

function planDemand({ own, cluster, name, demand, newId, children }: PrefixInputs): PrefixPlan {
  const { request } = own;
  const pools = Object.values(own.leases).map(({ pool }) => pool);
  const isShort = (pool: string): boolean => (demand.lease[pool] ?? 0) > pools.filter((each) => each === pool).length;
  if (request !== null) {
    const isMade = children.some(({ mark }) => mark?.cluster === cluster && mark.request === request.id);
    if (isMade || !isShort(request.pool)) return { kind: "rest" };
    return { kind: "ask", mark: { cluster, name, request: request.id, pool: request.pool, isAgain: false } };
  }
  const pool = Object.keys(demand.lease).find(isShort);
  if (pool === undefined) return { kind: "rest" };
  return { kind: "remember", own: { ...own, request: { id: newId(), pool, isWaiting: false } } };
}
