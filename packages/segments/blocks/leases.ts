/**
 * Leases blocks from one server, the hub or an IPAM of record. plan-leases.ts decides; here its plans are carried out,
 * until nothing is left to do. A request is remembered before it is sent, and looked for before it is sent again.
 */
import { bitsOf } from "../../../host/net/ip.ts";
import { formatPrefix } from "../../../host/net/prefix.ts";
import { type Range, rangeOfPrefix } from "../../../host/net/range.ts";
import type { SourceView } from "./block-source.ts";
import { requirePrefix } from "./blocks-of-range.ts";
import type { Child, LeaseServer, Parent, Short } from "./lease-server.ts";
import type { OwnLeases } from "./own-leases.ts";
import type { OwnRanges } from "./own-ranges.ts";
import { type BlockDemand, type LeasePlan, planLeases, usableBlocks } from "./plan-leases.ts";

/** Most plans that one pass carries out; the rest waits for the next one. */
const MAX_PLANS = 96;

/** Time for which the addresses are kept that others have written down in a block: milliseconds. */
const ADDRESSES_FRESH_MS = 600_000;

interface LeasesOptions<P extends Parent> {
  readonly server: LeaseServer<P>;
  readonly own: OwnRanges;
  /** The key under which leases are remembered. */
  readonly key: string;
  /** By which the cluster knows its own at the server. */
  readonly cluster: string;
  /** Its name, as people know it. */
  readonly name: string;
  /** Returns a UUID. */
  readonly newId: () => string;
  /** Monotonic: milliseconds. */
  readonly nowMs: () => number;
}

export class Leases<P extends Parent> {
  readonly #options: LeasesOptions<P>;
  /** By block: addresses that others have recorded in it. */
  readonly #addresses = new Map<string, { readonly atMs: number; readonly ranges: readonly Range[] }>();

  constructor(options: LeasesOptions<P>) {
    this.#options = options;
  }

  /**
   * Asks the server, and leases and returns blocks as demanded, as far as it may. Rejects without an answer: what was
   * asked may have been carried out, and the next call finds out.
   */
  async update(demand: BlockDemand, signal: AbortSignal): Promise<SourceView> {
    const { own, server, key, cluster, name, newId } = this.#options;
    const parent = await server.findParent(signal);
    // In this order a request of another process is remembered by the time that its blocks are seen.
    const look = async () => ({ children: await server.children(parent, signal), known: await own.read(key, signal) });
    let { children, known } = await look();
    let refused = "";
    for (let plans = 0; ; plans++) {
      const facts = { children, own: known.own, cluster, parent };
      const plan = planLeases({ ...facts, name, demand, server, isNewPass: plans === 0, newId });
      if (plans === MAX_PLANS)
        return this.#viewOf(plan, { parent, children, own: known.own, short: undefined }, signal);
      if (plan.kind === "remember") {
        known = await own.write(key, { ...known, own: plan.own }, signal);
        continue;
      }
      let short: Short | undefined;
      if (plan.kind === "ask") short = await server.ask(parent, plan, signal);
      else if (plan.kind === "write") {
        // A second refusal of the same has another reason.
        const text = plan.make.map(({ prefix }) => formatPrefix(prefix)).join();
        const answer = await server.write(parent, { ...plan, mayBeThere: refused !== text }, signal);
        if (answer === "refused") refused = text;
        else short = answer;
      } else short = plan.kind === "rest" ? plan.short : undefined;
      if (short !== undefined || plan.kind === "rest" || plan.kind === "barred")
        return this.#viewOf(plan, { parent, children, own: known.own, short }, signal);
      ({ children, known } = await look());
    }
  }

  async #viewOf(plan: LeasePlan, pass: Pass<P>, signal: AbortSignal): Promise<SourceView> {
    const { cluster, server } = this.#options;
    const { parent, children, own, short } = pass;
    const { subnet, addressSpace, blockSize, excluded } = parent;
    const { blocks, disputed, foreign } = usableBlocks({ children, own, cluster, parent });
    const others = children.filter(({ mark }) => mark?.cluster !== cluster);
    return {
      ...{ subnet, addressSpace, size: 2 ** (bitsOf(subnet.ip.family) - blockSize), blocks, disputed },
      excluded: [
        ...excluded,
        ...foreign.map(rangeOfPrefix),
        ...(await this.#written(Object.keys(blocks), parent, signal)),
      ],
      ...{ bar: plan.kind === "barred" ? plan.bar : undefined, short, share: server.share },
      others: Object.fromEntries(others.map((each) => [formatPrefix(each.prefix), each.mark?.name ?? "others"])),
    };
  }

  /** Returns the addresses that others have recorded in the blocks. */
  async #written(blocks: readonly string[], parent: P, signal: AbortSignal): Promise<readonly Range[]> {
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

interface Pass<P> {
  readonly parent: P;
  readonly children: readonly Child[];
  readonly own: OwnLeases;
  readonly short: Short | undefined;
}
