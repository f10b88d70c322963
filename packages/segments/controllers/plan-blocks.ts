/**
 * The next states of one pool's blocks, and their wanted number: decided from the hub's answer, from the time that each
 * block has been in its state, and from the number of its free addresses. No state of its own.
 */
import { type BlockState, UNHEARD_MS } from "../../../host/resources/pool-source.ts";

/** Time for which a new block rests: milliseconds. All members that are connected ask the hub several times in it. */
export const REST_MS = 60_000;

/** Time for which addresses of a block that is new are probed before their first use: milliseconds. */
export const NEW_MS = 3_600_000;

/** Time for which a pool must have had too many free addresses before a block is drained: milliseconds. */
export const SURPLUS_MS = 3_600_000;

/** Age at which the time of a pool's blocks is written anew: milliseconds. */
const AS_OF_MS = 240_000;

/** A pool with fewer free addresses than so many blocks have leases another one. */
const FEWEST_FREE_BLOCKS = 1;

/** A pool with more free addresses than so many blocks have too many. */
const MOST_FREE_BLOCKS = 3;

/** Time for which agents pass over a block before it goes back, and before that is tried again: milliseconds. */
export const EMPTY_MS = 60_000;

export interface KnownBlock {
  readonly block: string;
  readonly state: BlockState;
  /** Since it has been in the state, as this process has seen it: milliseconds. */
  readonly ageMs: number;
}

export interface BlocksInput {
  /** As the pool's status has them. */
  readonly known: readonly KnownBlock[];
  /** The blocks of the pool that the hub has leased to it. */
  readonly leased: readonly string[];
  /** Whether another cluster has the block from before: no address of it is given, and it goes back. */
  readonly isDisputed: (block: string) => boolean;
  /** Whether blocks may be returned now: the hub takes them, and the registry has records of all pods. */
  readonly mayReturn: boolean;
  /** Whether an address of the block is recorded, as far as this process knows. */
  readonly isUsed: (block: string) => boolean;
  /** Whether the API server has said, since the pool says that the block goes back, that none is. */
  readonly isEmpty: (block: string) => boolean;
  /** Two clusters act in this one's name: addresses are probed before they are used. */
  readonly isContested: boolean;
  /** Addresses of a block that are free, if pods may have all of its addresses that are not excluded. */
  readonly freeOf: (block: string) => number;
  /** Addresses of a block. */
  readonly size: number;
  /** An agent has found the pool exhausted since blocks were leased last. */
  readonly isWanted: boolean;
  /** Pods that agents say wait for a block, since blocks were leased last. */
  readonly waiting: number;
  /** Time for which the pool has had too many free addresses: milliseconds. */
  readonly surplusMs: number;
}

export interface BlocksPlan {
  readonly blocks: readonly { readonly block: string; readonly state: BlockState }[];
  /** Those that the hub is to take back. */
  readonly giveBack: readonly string[];
  /** How many more the pool should have. */
  readonly wants: number;
  /** Whether the pool has too many free addresses, and no block is drained for it. */
  readonly isSurplus: boolean;
}

export function planBlocks(input: BlocksInput): BlocksPlan {
  const { leased, size, isWanted, waiting, surplusMs, freeOf } = input;
  const known = new Map(input.known.map((each) => [each.block, each]));
  const blocks = leased.map((block) => ({ block, state: nextState(block, known.get(block), input) }));
  let free = blocks
    .filter(({ state }) => state === "New" || state === "Active")
    .reduce((sum, { block }) => sum + freeOf(block), 0);
  const leaving = blocks.filter(({ state }) => state === "Draining" || state === "Returning");
  const draining = leaving.filter(({ block, state }) => state === "Draining" || known.get(block)?.state === "Draining");
  while (free < FEWEST_FREE_BLOCKS * size || isWanted) {
    const back = draining.shift();
    if (back === undefined) break;
    back.state = "Active";
    free += freeOf(back.block);
  }
  const coming = blocks.filter(({ state }) => state === "Resting").length * size;
  const missing = Math.ceil((FEWEST_FREE_BLOCKS * size - free - coming) / size);
  // The next minute's blocks are to be on their way, too: at least twice as many.
  const urgent = isWanted ? Math.max(1, blocks.length, Math.ceil(waiting / size)) : 0;
  const isSurplus = free > MOST_FREE_BLOCKS * size;
  const emptiest = blocks
    .filter(({ state }) => state === "Active")
    .toSorted((a, b) => freeOf(b.block) - freeOf(a.block))[0];
  const drains = isSurplus && surplusMs >= SURPLUS_MS && leaving.length === 0 && emptiest !== undefined;
  if (drains) emptiest.state = "Draining";
  const isGoing = ({ block, state }: (typeof blocks)[number]): boolean =>
    state === "Returning" && known.get(block)?.state === "Returning" && input.isEmpty(block);
  const giveBack = input.mayReturn ? blocks.filter(isGoing).map(({ block }) => block) : [];
  return { blocks, giveBack, wants: Math.max(0, missing, urgent), isSurplus: isSurplus && !drains };
}

function nextState(block: string, known: KnownBlock | undefined, input: BlocksInput): BlockState {
  const { isContested, isDisputed, mayReturn, isUsed } = input;
  const { state, ageMs } = known ?? { state: undefined, ageMs: 0 };
  const before = isDisputed(block) ? "Disputed" : "Draining";
  if (state === "Returning") return isUsed(block) ? before : "Returning";
  if (state === before && mayReturn && ageMs >= EMPTY_MS && !isUsed(block)) return "Returning";
  if (isDisputed(block)) return "Disputed";
  if (state === undefined || state === "Disputed") return "Resting";
  if (state === "Resting") return ageMs >= REST_MS ? "New" : "Resting";
  if (state === "New") return ageMs >= NEW_MS && !isContested ? "Active" : "New";
  return isContested && state === "Active" ? "New" : state;
}

/**
 * Returns the time until when the blocks of a pool are the cluster's without a doubt. While the hub does not answer it
 * goes on only if there was no gap since: then the cluster was not off, nor was this one restored.
 */
export function nextAsOf(before: string, now: Date, hasAnswered: boolean): string {
  const ageMs = Math.abs(now.getTime() - Date.parse(before));
  if (ageMs < AS_OF_MS) return before;
  return hasAnswered || ageMs < UNHEARD_MS ? now.toISOString() : before;
}
