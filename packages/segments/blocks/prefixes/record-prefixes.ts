/**
 * Blocks that are parts of a prefix of the IPAM of record, Nautobot or NetBox. plan-prefixes.ts decides; here its
 * plans are carried out, until nothing is left to do. A request is remembered before it is sent, and looked for before
 * it is sent again.
 */
import { bitsOf } from "../../../../host/net/ip.ts";
import { formatPrefix, type Prefix } from "../../../../host/net/prefix.ts";
import { type Range, rangeOfPrefix } from "../../../../host/net/range.ts";
import type { ChildPrefix } from "../../record-server/child-prefix.ts";
import type { Parent, PrefixServer } from "../../record-server/prefix-server.ts";
import type { BlockSource, SourceView } from "../block-source.ts";
import { requirePrefix } from "../blocks-of-range.ts";
import { type OwnRanges, PREFIX_KEY } from "../own-ranges.ts";
import type { BlockDemand } from "../plan-range.ts";
import { NO_PREFIXES, type OwnPrefixes, parseOwnPrefixes } from "./own-prefixes.ts";
import { lostBlocks, type PrefixPlan, planPrefixes, usablePrefixes } from "./plan-prefixes.ts";
import { recordFailure } from "./record-failure.ts";

/** Most plans that are carried out for one pass. */
const MAX_PLANS = 64;

/** Time for which the addresses are kept that others have written down in a block: milliseconds. */
const ADDRESSES_FRESH_MS = 600_000;

/** How {@link OwnRanges} writes down what is remembered of prefixes. */
export const PREFIX_MEMORY = { fresh: NO_PREFIXES, parse: parseOwnPrefixes };

interface RecordPrefixesOptions {
  readonly server: Pick<PrefixServer, "findParent" | "children" | "ask" | "make" | "remove" | "addresses">;
  readonly own: OwnRanges<OwnPrefixes>;
  /** UID of this cluster's namespace kube-system. */
  readonly cluster: string;
  /** Its name, as people know it. */
  readonly name: string;
  /** Returns a UUID. */
  readonly newId: () => string;
  /** Monotonic: milliseconds. */
  readonly nowMs: () => number;
}

/** The prefix that blocks are taken of. */
interface Source {
  readonly addressSpace: string;
  readonly prefix: Prefix;
  readonly blockSize: number;
}

export class RecordPrefixes implements BlockSource {
  readonly #options: RecordPrefixesOptions;
  readonly #source: Source;
  /** As it was found; looked for again after a failure. */
  #parent: Parent | undefined;
  /** By block: what others have written down in it. */
  readonly #addresses = new Map<string, { readonly atMs: number; readonly ranges: readonly Range[] }>();

  constructor(source: Source, options: RecordPrefixesOptions) {
    this.#source = source;
    this.#options = options;
  }

  async update(_: string, demand: BlockDemand, signal: AbortSignal): Promise<SourceView> {
    try {
      this.#parent ??= await this.#options.server.findParent(this.#source.prefix, signal);
      return await this.#follow(this.#parent, demand, signal);
    } catch (error) {
      this.#parent = undefined;
      throw recordFailure(error);
    }
  }

  async #follow(parent: Parent, demand: BlockDemand, signal: AbortSignal): Promise<SourceView> {
    const { own, server, cluster, name, newId } = this.#options;
    const { prefix, blockSize } = this.#source;
    const key = keyOf(this.#source);
    // In this order what another process has asked for is remembered by the time that it is seen.
    const look = async () => ({ children: await server.children(parent, signal), known: await own.read(key, signal) });
    let { children, known } = await look();
    let isOpen = false;
    let refused: Prefix | undefined;
    for (let plans = 0; plans < MAX_PLANS; plans++) {
      const facts = { children, own: known.own, cluster, blockSize };
      isOpen ||= lostBlocks(facts).length > 0;
      const plan = planPrefixes({ ...facts, name, demand, isNewPass: plans === 0, newId });
      if (plan.kind === "remember") {
        known = await own.write(key, { ...known, own: plan.own }, signal);
        continue;
      }
      let isFull = false;
      if (plan.kind === "ask") isFull = !(await server.ask(parent, blockSize, plan.mark, signal));
      else if (plan.kind === "remove") await server.remove(plan.child, signal);
      else if (plan.kind === "make") {
        // Another one may have been made since the look; a second refusal has another reason.
        const mayBeThere = refused === undefined || formatPrefix(refused) !== formatPrefix(plan.prefix);
        if (!(await server.make(parent, plan.prefix, { mark: plan.mark, mayBeThere }, signal))) refused = plan.prefix;
      }
      if (isFull || plan.kind === "rest" || plan.kind === "contested")
        return this.#viewOf(plan, { parent, children, own: known.own, isOpen, isFull }, signal);
      ({ children, known } = await look());
    }
    throw new Error(`Prefix ${formatPrefix(prefix)} was changed by others ${MAX_PLANS} times; trying again later`);
  }

  async #viewOf(plan: PrefixPlan, pass: Pass, signal: AbortSignal): Promise<SourceView> {
    const { prefix, addressSpace, blockSize } = this.#source;
    const { cluster } = this.#options;
    const { parent, children, own, isOpen, isFull } = pass;
    const { blocks, disputed, foreign } = usablePrefixes({ children, own, cluster, blockSize });
    const others = children.filter(({ mark }) => mark?.cluster !== cluster);
    const isContested = plan.kind === "contested";
    return {
      ...{ subnet: prefix, addressSpace, size: 2 ** (bitsOf(prefix.ip.family) - blockSize) },
      ...{ blocks, disputed, isContested, isOpen },
      excluded: [...foreign.map(rangeOfPrefix), ...(await this.#written(Object.keys(blocks), parent, signal))],
      ...(isContested && { bar: { kind: "contested" } }),
      ...(isFull && { short: "range" }),
      others: Object.fromEntries(others.map((each) => [formatPrefix(each.prefix), each.mark?.name ?? "others"])),
    };
  }

  /** Returns what others have written down in the blocks. */
  async #written(blocks: readonly string[], parent: Parent, signal: AbortSignal): Promise<readonly Range[]> {
    const { server, cluster } = this.#options;
    const nowMs = this.#options.nowMs();
    for (const [block, { atMs }] of this.#addresses)
      if (!blocks.includes(block) || nowMs - atMs >= ADDRESSES_FRESH_MS) this.#addresses.delete(block);
    for (const block of blocks) {
      if (this.#addresses.has(block)) continue;
      const addresses = await server.addresses(parent, { prefix: requirePrefix(block), cluster }, signal);
      this.#addresses.set(block, { atMs: nowMs, ranges: addresses.map(({ ip }) => ({ first: ip, last: ip })) });
    }
    return blocks.flatMap((block) => this.#addresses.get(block)?.ranges ?? []);
  }
}

interface Pass {
  readonly parent: Parent;
  readonly children: readonly ChildPrefix[];
  readonly own: OwnPrefixes;
  readonly isOpen: boolean;
  readonly isFull: boolean;
}

/** A key of a ConfigMap, which no object's name is. */
function keyOf({ addressSpace, prefix }: Source): string {
  return `${PREFIX_KEY}${formatPrefix(prefix).replaceAll(/[:/]/g, "-")}_${addressSpace}`;
}
