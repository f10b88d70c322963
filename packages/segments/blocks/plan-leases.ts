/**
 * Decides a cluster's next step in leasing blocks from a hub or from an IPAM of record, by the server's entries, the
 * cluster's memory, and its demand (docs/decisions/0064). The same function continues after any interruption.
 *
 * The server compares nothing when it writes. So a cluster uses only blocks that it has seen alone after their
 * creation: of two that overlap, the one that is seen second sees the other.
 */

import { formatPrefix, type Prefix, prefixContains, prefixesOverlap } from "../../../host/net/prefix.ts";
import { halvesOf, requirePrefix } from "./blocks-of-range.ts";
import type { Bar, Child, LeaseServer, Made, Mark, Parent, Short } from "./lease-server.ts";
import type { OwnLeases } from "./own-leases.ts";

/** Most requests that are remembered after their blocks were given back. */
const MAX_PAST = 256;

export interface BlockDemand {
  /** Number of blocks that each pool should have; fewer than it has is as good. */
  readonly lease: Readonly<Record<string, number>>;
  /** Blocks to return, none of whose addresses is in use. */
  readonly giveBack: readonly string[];
  /** Blocks that certain pools should have. Default: none. */
  readonly claim?: Readonly<Record<string, string>>;
}

export type LeasePlan =
  /** A memory to write first; then it plans again. */
  | { readonly kind: "remember"; readonly own: OwnLeases }
  /** Let the server choose free blocks. */
  | { readonly kind: "ask"; readonly mark: Mark; readonly count: number }
  /** All of it, or one after the other. */
  | { readonly kind: "write"; readonly remove: readonly Child[]; readonly make: readonly Made[] }
  /** `short`: why a demand cannot be met. */
  | { readonly kind: "rest"; readonly short?: Short }
  | { readonly kind: "barred"; readonly bar: Bar };

interface LeaseInputs {
  readonly children: readonly Child[];
  readonly own: OwnLeases;
  /** By which this cluster knows its own. */
  readonly cluster: string;
  /** Its name, as people know it. */
  readonly name: string;
  readonly parent: Pick<Parent, "subnet" | "blockSize">;
  readonly demand: BlockDemand;
  /** Whether the server was asked anew since the last pass. */
  readonly isNewPass: boolean;
  /** Returns a UUID. */
  readonly newId: () => string;
  readonly server: Pick<LeaseServer, "hasOwnList" | "bar">;
}

export function planLeases(inputs: LeaseInputs): LeasePlan {
  const { own, server } = inputs;
  if (server.bar !== undefined) return { kind: "barred", bar: server.bar };
  if (!server.hasOwnList && unknownOf(inputs).length > 0)
    return own.isRejoining ? { kind: "remember", own: rejoin(inputs) } : { kind: "barred", bar: { kind: "contested" } };
  return planRequest(inputs) ?? planGivingBack(inputs) ?? planCorrecting(inputs) ?? planDemand(inputs);
}

type Facts = Pick<LeaseInputs, "children" | "own" | "cluster">;

interface BlockUse {
  /** The blocks that the cluster may use, with their pools. */
  readonly blocks: Readonly<Record<string, string>>;
  /**
   * Those that the server has lost while another one got their addresses, or that were got so; and others than the
   * parent's, which was made anew.
   */
  readonly disputed: Readonly<Record<string, string>>;
  /** Prefixes of people within the blocks: no pod gets their addresses. */
  readonly foreign: readonly Prefix[];
}

/** Returns the blocks that the cluster may use, by the server's answer. */
export function usableBlocks({ children, own, cluster, parent }: Facts & Pick<LeaseInputs, "parent">): BlockUse {
  const blocks: Record<string, string> = {};
  const disputed: Record<string, string> = {};
  const foreign: Prefix[] = [];
  for (const [block, { pool }] of Object.entries(own.leases)) {
    const child = findOwn({ children, cluster }, block, own);
    const others = child === undefined ? [] : overlapping(children, child.prefix, cluster);
    const isDisputed = others.some(({ mark }) => mark !== undefined && (mark.isAgain || child?.mark?.isAgain === true));
    if (child === undefined || isDisputed || !isBlockOf(parent, child.prefix)) disputed[block] = pool;
    else {
      blocks[block] = pool;
      const within = others.filter(({ prefix, mark }) => mark === undefined && prefix.length >= child.prefix.length);
      foreign.push(...within.map(({ prefix }) => prefix));
    }
  }
  return { blocks, disputed, foreign };
}

function isBlockOf({ subnet, blockSize }: LeaseInputs["parent"], { ip, length }: Prefix): boolean {
  return length === blockSize && prefixContains(subnet, ip);
}

/** Returns the prefixes of others that overlap with it. */
function overlapping(children: readonly Child[], prefix: Prefix, cluster: string): readonly Child[] {
  return children.filter((each) => each.mark?.cluster !== cluster && prefixesOverlap(each.prefix, prefix));
}

/** Those that bear the cluster's name, and that it does not know. */
function unknownOf({ children, own, cluster }: Facts): readonly Child[] {
  const requests = Object.values(own.leases).map(({ request }) => request);
  const known = new Set([...own.past, ...requests, ...(own.request === null ? [] : [own.request.id])]);
  return children.filter(({ mark }) => mark?.cluster === cluster && !known.has(mark.request));
}

function findOwn(
  { children, cluster }: Pick<LeaseInputs, "children" | "cluster">,
  block: string,
  { leases }: OwnLeases,
): Child | undefined {
  return children.find(
    ({ prefix, mark }) =>
      mark?.cluster === cluster && mark.request === leases[block]?.request && formatPrefix(prefix) === block,
  );
}

/** Returns the memory of a cluster that continues with its blocks on the server. */
function rejoin({ children, own, cluster, parent, server }: LeaseInputs): OwnLeases {
  const mine = children.flatMap(({ prefix, mark }) => (mark?.cluster === cluster ? [{ prefix, ...mark }] : []));
  const [whole, parts] = [true, false].map((is) => mine.filter(({ prefix }) => isBlockOf(parent, prefix) === is));
  const leases = (whole ?? []).map(({ prefix, request, pool }) => [formatPrefix(prefix), { request, pool }] as const);
  const past = pastWith({ own, server }, ...(parts ?? []).map(({ request }) => request));
  return { ...own, request: null, leases: Object.fromEntries(leases), past, isRejoining: false };
}

/** An own list has nothing that the cluster must know again. */
function pastWith({ own: { past }, server }: Pick<LeaseInputs, "own" | "server">, ...requests: readonly string[]) {
  return server.hasOwnList ? past : [...past, ...requests].slice(-MAX_PAST);
}

/** Returns the recorded blocks of the request under way, the earliest first. */
function madeOf({ children, own: { request, leases }, cluster }: LeaseInputs): readonly Child[] {
  const isMade = ({ prefix, mark }: Child): boolean =>
    mark?.cluster === cluster && mark.request === request?.id && leases[formatPrefix(prefix)]?.request !== request.id;
  return children.filter(isMade).toSorted(compareAge);
}

/** Decides about the request under way: those of its blocks that are seen alone are leased, the others give way. */
function planRequest(inputs: LeaseInputs): LeasePlan | undefined {
  const { children, own, isNewPass, server } = inputs;
  const { request, leases } = own;
  const all = madeOf(inputs);
  // In a common list duplicates are removed.
  const made = server.hasOwnList ? all : all.slice(0, 1);
  if (request === null || made.length === 0) return undefined;
  const others = children.filter((each) => !all.includes(each));
  const meets = ({ prefix }: Child) => others.filter((each) => prefixesOverlap(each.prefix, prefix));
  const alone = made.filter((one) => meets(one).length === 0).map(({ prefix }) => formatPrefix(prefix));
  if (alone.length > 0) {
    // The server had lost the block, and has given it to the same cluster.
    const past = pastWith(inputs, ...alone.flatMap((block) => leases[block]?.request ?? []));
    const got = alone.map((block) => [block, { request: request.id, pool: request.pool }] as const);
    return {
      kind: "remember",
      own: { ...own, request: null, leases: { ...leases, ...Object.fromEntries(got) }, past },
    };
  }
  // One of another cluster that was created later gives way; no other one does.
  const isEarlier = (one: Child) =>
    meets(one).every((each) => each.mark?.isAgain === false && compareAge(one, each) < 0);
  const mayWait = made.every(isEarlier);
  if (mayWait && !request.isWaiting)
    return { kind: "remember", own: { ...own, request: { ...request, isWaiting: true } } };
  if (mayWait && !isNewPass) return undefined;
  return { kind: "remember", own: { ...own, request: null, past: pastWith(inputs, request.id) } };
}

function compareAge(a: Child, b: Child): number {
  if (a.created !== b.created) return a.created < b.created ? -1 : 1;
  return a.id < b.id ? -1 : 1;
}

function planGivingBack({ own, demand, server }: LeaseInputs): LeasePlan | undefined {
  const returned = demand.giveBack.filter((block) => block in own.leases);
  if (returned.length === 0) return undefined;
  const leases = Object.fromEntries(Object.entries(own.leases).filter(([block]) => !returned.includes(block)));
  const past = pastWith({ own, server }, ...returned.map((block) => own.leases[block]?.request ?? ""));
  return { kind: "remember", own: { ...own, leases, past } };
}

/** At once where possible: others that saw this cluster's lost blocks wait for its next write (range-leases.ts). */
function planCorrecting(inputs: LeaseInputs): LeasePlan | undefined {
  const [remove, make] = [removed(inputs), madeAgain(inputs)];
  return remove.length + make.length === 0 ? undefined : { kind: "write", remove, make };
}

/** Returns blocks that were given back or came twice, and parts for whole ones; of an own list all that is not held. */
function removed({ children, own, cluster, server }: LeaseInputs): readonly Child[] {
  return children.filter(({ prefix, mark }) => {
    if (mark?.cluster !== cluster || own.leases[formatPrefix(prefix)]?.request === mark.request) return false;
    if (server.hasOwnList) return mark.request !== own.request?.id;
    if (own.past.includes(mark.request)) return true;
    const held = Object.keys(own.leases).find((block) => own.leases[block]?.request === mark.request);
    return held !== undefined && findOwn({ children, cluster }, held, own) !== undefined;
  });
}

/**
 * Returns the blocks that the server has lost. Made again, a block tells a cluster that got its addresses meanwhile;
 * half of it tells the same where the server may refuse one block twice.
 */
function madeAgain({ children, own, cluster, name, server }: LeaseInputs): readonly Made[] {
  const lost = Object.keys(own.leases).filter((block) => findOwn({ children, cluster }, block, own) === undefined);
  return lost.flatMap((block) => {
    const { request = "", pool = "" } = own.leases[block] ?? {};
    const prefix = requirePrefix(block);
    const mark = { cluster, name, request, pool, isAgain: true };
    const others = overlapping(children, prefix, cluster);
    if (others.length === 0 || server.hasOwnList) return [{ prefix, mark }];
    // Late blocks of the same request elsewhere are no dispute.
    const isTold = children.some(
      (each) => each.mark?.cluster === cluster && each.mark.request === request && prefixesOverlap(each.prefix, prefix),
    );
    const half = halvesOf(prefix).find(
      (part) => !others.some((each) => formatPrefix(each.prefix) === formatPrefix(part)),
    );
    const tells = !isTold && half !== undefined && others.some((each) => each.mark !== undefined);
    return tells ? [{ prefix: half, mark }] : [];
  });
}

function planDemand(inputs: LeaseInputs): LeasePlan {
  const { own, cluster, name, demand, newId, children } = inputs;
  const { request, leases } = own;
  const pools = Object.values(leases).map(({ pool }) => pool);
  const missing = (pool: string): number => (demand.lease[pool] ?? 0) - pools.filter((each) => each === pool).length;
  const claim = Object.entries(demand.claim ?? {}).filter(([block]) => !(block in leases));
  const isTaken = (block: string): boolean => overlapping(children, requirePrefix(block), cluster).length > 0;
  if (request !== null) {
    const { id, pool, blocks } = request;
    if (madeOf(inputs).length > 0) return { kind: "rest" };
    const mark = { cluster, name, request: id, pool, isAgain: false };
    if (blocks === undefined) return missing(pool) > 0 ? { kind: "ask", mark, count: missing(pool) } : { kind: "rest" };
    if (blocks.every((block) => claim.some(([each]) => each === block) && !isTaken(block)))
      return { kind: "write", remove: [], make: blocks.map((block) => ({ prefix: requirePrefix(block), mark })) };
    return { kind: "remember", own: { ...own, request: null, past: pastWith(inputs, id) } };
  }
  if (claim.some(([block]) => isTaken(block))) return { kind: "rest", short: "range" };
  const [first] = claim;
  const pool = first?.[1] ?? Object.keys(demand.lease).find((each) => missing(each) > 0);
  if (pool === undefined) return { kind: "rest" };
  const blocks = first && claim.flatMap(([block, of]) => (of === pool ? [block] : []));
  return {
    kind: "remember",
    own: { ...own, request: { id: newId(), pool, isWaiting: false, ...(blocks && { blocks }) } },
  };
}
