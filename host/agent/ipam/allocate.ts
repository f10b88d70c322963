/**
 * Claims the addresses of an ADD, like host-local's allocator, but with a registry that other nodes write to as well:
 * pick from memory, claim in the registry, learn from its answer, and ask the sources of addresses in order for
 * something else.
 */
import { CniError, ErrorCode } from "../../cni/error.ts";
import type { FamilyDemand, NicDemand } from "../../ipam/model.ts";
import { hashText, type Picked, type Proposal, pickAddresses, poolsOf, proposalOf } from "../../ipam/pick.ts";
import { noPoolMatches, poolsExhausted } from "../../ipam/refusal.ts";
import { findUnservable } from "../../ipam/selection.ts";
import { invariant } from "../../lib/invariant.ts";
import { numberOf } from "../../registry/claims.ts";
import type { Allocation, Bound, ClaimedPart, ClaimOutcome } from "../../registry/registry.ts";
import { memberKey } from "../../resources/member.ts";
import { LIVE_USAGE_MISSES } from "./live-usage.ts";
import { FreeAddresses } from "./sources/free.ts";
import { OwnAddresses } from "./sources/own.ts";
import { ReleasedAddresses } from "./sources/released.ts";
import { RequestedAddresses } from "./sources/requested.ts";
import { RetainedAddresses } from "./sources/retained.ts";
import {
  type AddressDemand,
  type AddressSource,
  type AllocateDeps,
  Assignments,
  type ForeseenRows,
  hasMember,
  isSameAddress,
  isServed,
  type Search,
  type Setback,
  usablePools,
  workloadOf,
} from "./sources/source.ts";
import { type FullNamespace, namespaceFull, requireWithinLimits } from "./tenant-limits.ts";

/** Most addresses that one ADD tries to claim. @limit */
export const MAX_CLAIM_ATTEMPTS = 64;

export interface Claimed {
  /** The NIC's addresses; a repeated ADD gets those that it already has, whatever it requests now. */
  readonly held: readonly Allocation[];
  /** The rows that this claim wrote, for any NIC: undone if the answer cannot be delivered. */
  readonly created: readonly Allocation[];
  /** As in {@link ClaimOutcome}. */
  readonly previous: readonly Allocation[];
  /** The proposed addresses with their sources. */
  readonly picked: readonly Proposal[];
}

/** Throws CniError 100, 101, 11 or 7 when the demand cannot be met; then nothing of it is kept. */
export function allocateAddresses(deps: AllocateDeps, demand: AddressDemand): Promise<Claimed> {
  return new AddressAllocator(deps, demand).run();
}

const NOTHING = { created: [], previous: [], added: [], open: [], picked: [] };

/** The sources for a pod that has more than a free address to ask for, or does not get one at once. */
function openSources(search: Search) {
  const free = new FreeAddresses(search);
  const own = new OwnAddresses(search);
  const retained = new RetainedAddresses(search, own);
  const released = new ReleasedAddresses(search);
  const inOrder: readonly AddressSource[] = [own, retained, free, released];
  return { free, own, retained, requested: new RequestedAddresses(search, released), released, inOrder };
}

class AddressAllocator {
  readonly #search: Search;
  /** That of the request. */
  readonly #nic: NicDemand;
  #opened: ReturnType<typeof openSources> | undefined;
  /** The NIC has some of the families and lacks others. */
  #isPartial = false;
  /** The results of the claims so far, which are claimed no more. */
  #kept: Required<ClaimedPart> & { readonly picked: readonly Proposal[] } = NOTHING;

  constructor(deps: AllocateDeps, demand: AddressDemand) {
    const nic = demand.nics.find(({ ifName }) => ifName === demand.claimant.ifName);
    invariant(nic !== undefined, "Selection demands something for the NIC of the request");
    this.#nic = nic;
    this.#search = { ...deps, demand, assignments: new Assignments() };
  }

  get #sources(): ReturnType<typeof openSources> {
    this.#opened ??= openSources(this.#search);
    return this.#opened;
  }

  async run(): Promise<Claimed> {
    const { registry, demand } = this.#search;
    const { claimant, limits, requested } = demand;
    try {
      if (limits !== undefined) await requireWithinLimits(registry, demand, hasMember(demand));
      if (requested.length > 0) this.#sources.requested.assign(this.#nic);
      if (limits?.full !== undefined) await this.#requireRetained(limits.full);
      for (let attempt = 0; attempt < MAX_CLAIM_ATTEMPTS; attempt++) {
        if (attempt > 0) this.#search.metrics?.claimRetries.inc();
        const claimed = await this.#attempt();
        if (claimed !== undefined) return claimed;
        demand.deadline.signal.throwIfAborted();
      }
      throw new CniError(
        ErrorCode.TryAgainLater,
        `Interface "${claimant.ifName}" lost ${MAX_CLAIM_ATTEMPTS} addresses in a row to other pods; try again`,
      );
    } catch (error) {
      if (this.#kept.created.length > 0) await registry.undo(this.#kept.created);
      throw error;
    } finally {
      this.#opened?.released.end();
    }
  }

  /**
   * In a full namespace a pod gets its retained addresses. Throws CniError 101 if it lacks others: a claim would be
   * recorded before it is refused.
   */
  async #requireRetained(full: FullNamespace): Promise<void> {
    const missing = (await this.#sources.own.findMissing()).filter(({ families }) => families.length > 0);
    if (missing.length > 0 && !(await this.#sources.retained.cover(missing))) throw namespaceFull(full);
  }

  async #attempt(): Promise<Claimed | undefined> {
    const { demand } = this.#search;
    const hasKept = this.#kept.created.length > 0;
    const mayHave = demand.nics.length > 1 || demand.ownFirst === true || this.#isPartial || hasKept;
    const nics = mayHave ? await this.#sources.own.findMissing() : demand.nics;
    const pick = pickFree(this.#search, nics, this.#opened?.free.usage?.misses);
    const picked = pick.kind === "picked" ? pick.picked : [];
    let outcome: ClaimOutcome;
    try {
      outcome = await this.#claim(picked, hasKept);
      learn(this.#search, outcome);
    } finally {
      this.#search.poolCache.cancel(pick.reserved);
    }
    if (outcome.kind === "bound" && isServed(this.#nic, outcome.held)) {
      const all = [...this.#kept.picked, ...picked];
      const bound = hasKept ? { ...outcome, ...this.#withKept(outcome) } : outcome;
      this.#kept = NOTHING;
      if (hasMember(demand) && (await this.#sources.retained.prefer(bound, all))) return undefined;
      const { open = [] } = bound;
      if (open.length > 0 || demand.limits?.full !== undefined) await this.#accept(bound);
      return { ...bound, picked: all };
    }
    if (outcome.kind === "taken" && outcome.kept !== undefined)
      this.#kept = { ...this.#withKept(outcome.kept), picked: [...this.#kept.picked, ...picked] };
    const setback = this.#setbackOf(outcome, pick, nics);
    if (setback !== undefined) await this.#overcome(setback);
    return undefined;
  }

  /** A later claim may report again a row that an earlier claim has kept. */
  #withKept({ created, previous, added = [], open = [] }: ClaimedPart): Required<ClaimedPart> {
    const join = (before: readonly Allocation[], now: readonly Allocation[]): readonly Allocation[] => [
      ...before.filter((row) => !now.some((each) => isSameAddress(each, row))),
      ...now,
    ];
    return {
      created: join(this.#kept.created, created),
      previous: join(this.#kept.previous, previous),
      added: join(this.#kept.added, added),
      open: join(this.#kept.open, open),
    };
  }

  async #claim(picked: readonly Proposal[], hasKept: boolean): Promise<ClaimOutcome> {
    const { registry, demand, metrics } = this.#search;
    await demand.admit?.(picked);
    const partial = hasKept ? { partial: true } : {};
    const { own, retained } = this.#opened ?? {};
    const known = { skipOwnCooling: own?.skipCooling === true, number: retained?.nextNumber };
    const claim = { ...demand.claimant, ...partial, ...known, keepsRest: true, proposals: picked };
    const startedMs = performance.now();
    let outcome: ClaimOutcome["kind"] | "failed" = "failed";
    try {
      const claimed = await registry.claim(claim, demand.deadline.signal);
      outcome = claimed.kind;
      return claimed;
    } finally {
      metrics?.claims.inc({ outcome });
      metrics?.claimDuration.observe((performance.now() - startedMs) / 1000);
    }
  }

  /** Returns undefined if nothing is in the way of the next claim. */
  #setbackOf(outcome: ClaimOutcome, pick: Picked, nics: readonly NicDemand[]): Setback | undefined {
    if (outcome.kind === "cooling") return outcome;
    if (outcome.kind === "taken") return { ...outcome, nics, picked: pick.kind === "picked" ? pick.picked : [] };
    if (pick.kind === "picked") return undefined;
    if (outcome.held.length > 0 && !this.#isPartial) {
      // The shortage may be of a family that the NIC has.
      this.#isPartial = true;
      return undefined;
    }
    const { shortage } = pick;
    return { kind: "short", nics, shortage, pools: usablePools(this.#search.poolCache, shortage.demand) };
  }

  /** The loop over the sources: the first with another offer ends it. Throws PoolShortage when none has. */
  async #overcome(setback: Setback): Promise<void> {
    const { nics } = this.#search.demand;
    if (setback.kind === "taken") await this.#replaceTaken(setback.by, setback.picked);
    const unservable = setback.kind === "short" ? findUnservable(nics) : undefined;
    if (unservable !== undefined) throw noPoolMatches({ nics, ...unservable });
    for (const source of this.#sources.inOrder) if (await source.next(setback)) return;
    invariant(setback.kind === "short", "Only a shortage outlasts the sources");
    throw poolsExhausted({ nics, ...setback.shortage });
  }

  /** Assigned addresses that other owners have are taken over, awaited, or dropped. */
  async #replaceTaken(by: readonly Allocation[], picked: readonly Proposal[]): Promise<void> {
    for (const holder of by) {
      const { own, retained, requested } = this.#sources;
      if (own.renew(holder) || (await retained.replace(holder, picked))) continue;
      if (!(await requested.replace(holder))) this.#search.assignments.drop(holder);
    }
  }

  /**
   * Retained addresses are the pod's in any case. A new one of its owner is refused while its namespace has its share,
   * and is retained from now on.
   */
  async #accept(bound: Bound): Promise<void> {
    const { demand, registry, cluster } = this.#search;
    const { added = [], open = [] } = bound;
    const { full } = demand.limits ?? {};
    try {
      const isNew = full !== undefined && (added.length > 0 || open.some(({ workload }) => workload === undefined));
      if (isNew) throw namespaceFull(full);
      if (open.length > 0) await cluster?.records.retain(open.map((row) => this.#retainedRow(row)));
    } catch (error) {
      await registry.undo(bound.created);
      throw error;
    }
  }

  /** The row is the owner's, and comes before all that the owner's member had. */
  #retainedRow(row: Allocation): Allocation {
    const { workload = workloadOf(this.#search.demand, row.ifName), claim } = row;
    const number = Math.max(numberOf(row), this.#opened?.retained.nextNumber ?? 1);
    return { ...row, workload, ...(claim === undefined ? {} : { claim: { ...claim, number } }) };
  }
}

/** Completes the assigned addresses with free ones. The caller cancels the reservations after the claim. */
export function pickFree(
  { poolCache, demand, assignments, view }: Search,
  nics: readonly NicDemand[],
  misses = 0,
): Picked {
  // Pools may have changed while the search waited.
  for (const each of assignments.all)
    if (each.requested !== true && !poolCache.contains(each.pool, each.ip, true)) assignments.drop(each);
  const assigned = assignments.all;
  // Nodes that look for free addresses from one place would meet again and again.
  const isSpread = misses >= LIVE_USAGE_MISSES;
  const seedText = isSpread ? `${demand.seedText}#${misses}` : demand.seedText;
  const foreseen =
    view === undefined ? [] : nics.flatMap(({ families }) => families.flatMap((each) => foreseenIn(each, view)));
  const reserved = [...foreseen, ...assigned].filter(({ pool: name, ip }) => {
    const pool = poolCache.find(name);
    return pool !== undefined && poolCache.takeExactly(pool, ip) === "claimed";
  });
  const pick = pickAddresses(poolCache, {
    nics,
    // A NIC with an address owner of its own starts at a place of its own (retention).
    seedOf: (ifName, family) => {
      const own = demand.workloads?.get(ifName);
      return hashText(`${own === undefined ? seedText : memberKey(own)}/${ifName}/${family}`);
    },
    assigned,
    workloads: demand.workloads,
    randomize: (pool) => isSpread || demand.randomize?.(pool) === true,
  });
  reserved.push(...pick.reserved);
  if (view === undefined) return { ...pick, reserved };
  // An explanation keeps no address from an ADD.
  poolCache.cancel(reserved);
  return { ...pick, reserved: [] };
}

/** Marks the addresses that are in use by the registry's answer. */
export function learn({ poolCache, view }: Search, outcome: ClaimOutcome): void {
  if (outcome.kind === "cooling") return;
  const inUse = outcome.kind === "bound" ? outcome.created : [...outcome.by, ...(outcome.kept?.created ?? [])];
  for (const each of inUse) {
    if (view?.foreseen.includes(each) === true) continue;
    poolCache.mark(each.space, each.ip);
    if (each.version < 0) poolCache.noteRecorded(each);
  }
}

/** Returns the foreseen addresses of the demand's pools, as if they were picked. */
function foreseenIn(demand: FamilyDemand, view: ForeseenRows): Proposal[] {
  return poolsOf(demand).flatMap((pool) => view.foreseen.map(({ ip }) => proposalOf(pool, { ifName: "", ip })));
}
