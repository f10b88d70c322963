/**
 * What becomes of the blocks of one pool, and how many it should have: decided from what the hub says, from how long
 * each block has been in its state, and from how many of its addresses are free. No state of its own.
 */
import type { BlockState } from "../../resources/pool-source.ts";

/** Time for which a new block rests: milliseconds. All members that are connected ask the hub several times in it. */
export const REST_MS = 60_000;

/** Time for which addresses of a block that is new are probed before their first use: milliseconds. */
export const NEW_MS = 3_600_000;

/** Time for which a pool must have had too many free addresses before a block is drained: milliseconds. */
export const SURPLUS_MS = 3_600_000;

/** A pool with fewer free addresses than so many blocks have leases another one. */
const FEWEST_FREE_BLOCKS = 1;

/** A pool with more free addresses than so many blocks have too many. */
const MOST_FREE_BLOCKS = 3;

export interface KnownBlock {
  readonly block: string;
  readonly state: BlockState;
  /** Since it has been in the state, as this process has seen it: milliseconds. */
  readonly ageMs: number;
}

export interface BlocksInput {
  /** As the pool's status has them. */
  readonly known: readonly KnownBlock[];
  /** The blocks of the pool that the hub says it may use. */
  readonly leased: readonly string[];
  /** Others may have lost their leases: what rests goes on resting. */
  readonly isOpen: boolean;
  /** Two clusters act in this one's name: addresses are probed before they are used. */
  readonly isContested: boolean;
  /** Addresses of a block that are free, if pods may have all of its addresses that are not excluded. */
  readonly freeOf: (block: string) => number;
  /** Addresses of a block. */
  readonly size: number;
  /** An agent has found the pool exhausted since blocks were leased last. */
  readonly isWanted: boolean;
  /** Time for which the pool has had too many free addresses: milliseconds. */
  readonly surplusMs: number;
}

interface BlocksPlan {
  readonly blocks: readonly { readonly block: string; readonly state: BlockState }[];
  /** Number of blocks that the pool should have. */
  readonly total: number;
  /** Whether the pool has too many free addresses. */
  readonly isSurplus: boolean;
}

export function planBlocks(input: BlocksInput): BlocksPlan {
  const { leased, size, isWanted, surplusMs, freeOf } = input;
  const known = new Map(input.known.map((each) => [each.block, each]));
  const blocks = leased.map((block) => ({ block, state: nextState(known.get(block), input) }));
  let free = blocks
    .filter(({ state }) => state === "New" || state === "Active")
    .reduce((sum, { block }) => sum + freeOf(block), 0);
  const draining = blocks.filter(({ state }) => state === "Draining");
  while (free < FEWEST_FREE_BLOCKS * size || isWanted) {
    const back = draining.shift();
    if (back === undefined) break;
    back.state = "Active";
    free += freeOf(back.block);
  }
  const coming = blocks.filter(({ state }) => state === "Resting").length * size;
  const missing = Math.ceil((FEWEST_FREE_BLOCKS * size - free - coming) / size);
  // Whoever found it exhausted knows of one pod, and the next minute's blocks are to be on their way: twice as many.
  const urgent = isWanted ? Math.max(1, blocks.length) : 0;
  const isSurplus = free > MOST_FREE_BLOCKS * size;
  const emptiest = blocks
    .filter(({ state }) => state === "Active")
    .toSorted((a, b) => freeOf(b.block) - freeOf(a.block))[0];
  if (isSurplus && surplusMs >= SURPLUS_MS && draining.length === 0 && emptiest !== undefined)
    emptiest.state = "Draining";
  return { blocks, total: blocks.length + Math.max(0, missing, urgent), isSurplus };
}

function nextState(known: KnownBlock | undefined, { isOpen, isContested }: BlocksInput): BlockState {
  if (known === undefined) return "Resting";
  const { state, ageMs } = known;
  if (state === "Resting") return !isOpen && ageMs >= REST_MS ? "New" : "Resting";
  if (state === "New") return ageMs >= NEW_MS && !isContested ? "Active" : "New";
  return isContested && state === "Active" ? "New" : state;
}
