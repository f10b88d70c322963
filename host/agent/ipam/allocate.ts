/**
 * Claims the addresses of an ADD: guess from the pool cache, ask the registry, learn from its answer, again.
 * Called by add.ts. What is chosen is decided in host/ipam; here the decisions meet the registry and the clock.
 * Effects: writes to the registry; waits up to MIN_COOLING_MS when only just-released addresses are left, and up to HAND_OVER_WAIT_MS for another node.
 */

import { CniError, ErrorCode } from "../../cni/error.ts";
import type { RequestedIp } from "../../cni/request.ts";
import type { FamilyDemand, NicDemand } from "../../ipam/model.ts";
import { cancelReservations, hashText, type Picked, pickAddresses, poolsOf, type Shortage } from "../../ipam/pick.ts";
import type { PoolCache } from "../../ipam/pool-cache.ts";
import { findUnservable, noPoolMatches, type PoolShortage, poolsExhausted } from "../../ipam/refusal.ts";
import { assignRequested, findPoolOfRequested, refuseRequested } from "../../ipam/requested-ips.ts";
import { invariant } from "../../lib/invariant.ts";
import { equalIp, type Family, formatIp } from "../../net/ip.ts";
import { isOfOtherNetwork } from "../../registry/nic.ts";
import type { Allocation, Claim, ClaimOutcome, Registry } from "../../registry/registry.ts";
import { LiveUsage, SURVEY_MISSES } from "./live-usage.ts";
import { describeHolder, isAt, type Keepers, proposalOf, seedTextOf } from "./proposals.ts";
import { type IsSpoken, MIN_COOLING_MS, TakeOvers } from "./sources/cooling.ts";
import {
  awaitsNode,
  chooseRetained,
  findRetained,
  inheritLost,
  isFormer,
  isSameAddress,
  type KeptTools,
  type Retained,
  refuseLiving,
  surplusOf,
} from "./sources/retained.ts";
import { refuseFresh, requireWithinLimits, type TenantLimits } from "./tenant-limits.ts";

/** How often one ADD goes on to another address because somebody had the one before. @limit */
export const MAX_CLAIM_ATTEMPTS = 64;

/** How long an ADD waits for the agent of another node to take the address off the NIC of an earlier pod of the same member: milliseconds (allocation rule 8). @limit */
export const HAND_OVER_WAIT_MS = 5_000;

export interface AllocateDeps extends KeptTools {
  readonly registry: Registry;
  readonly poolCache: PoolCache;
  readonly nowMs: () => number;
  /** Rejects when the signal says so. */
  readonly sleep: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  /** Whether other nodes may show addresses that cool there when a pool is wanted. Absent: there are none. */
  readonly hasNeighbours?: boolean | undefined;
}

export interface AddressDemand extends Keepers {
  /** Whether the pod has no NIC beside those of the demand: then what is kept for it and fits none of them is of no use. Absent: unknown. */
  readonly coversPod?: boolean | undefined;
  readonly nics: readonly NicDemand[];
  readonly requested: readonly RequestedIp[];
  readonly claimant: Omit<Claim, "proposals" | "skipOwnCooling">;
  /** Absent: none. */
  readonly limits?: TenantLimits | undefined;
  /** Pods of the same name start their search at the same place. */
  readonly seedText: string;
  /** Whether the pool's order does not matter now, by name: its first addresses are somebody's who answers for many. Absent: it does. */
  readonly randomize?: (pool: string) => boolean;
  /** Whether generated pools that are full as far as the pool cache knows are left at once: somebody waits for their addresses. Absent: they are searched. */
  readonly skipIfFull?: (demand: FamilyDemand) => boolean;
  /** Whether the NIC can be asked for an address now: without, none is taken out of quarantine. Absent: it cannot. */
  readonly canProbe?: () => boolean;
  /** The caller hung up: stop waiting. */
  readonly signal: AbortSignal;
}

export interface Claimed {
  /** The addresses of the NIC of the request: of a repeated one those that it has, whatever it asks for now. */
  readonly held: readonly Allocation[];
  /** What this claim wrote, for any NIC: to be undone when the answer reaches nobody. */
  readonly created: readonly Allocation[];
  /** As in {@link ClaimOutcome}. */
  readonly previous: readonly Allocation[];
}

/** Throws CniError 100, 101 or 7 when the demand cannot be met; then nothing of it is kept. */
export async function allocateAddresses(tools: AllocateDeps, demand: AddressDemand): Promise<Claimed> {
  const search = new AddressSearch(tools, demand);
  try {
    return await search.run();
  } finally {
    search.end();
  }
}

/** What the pod lacks, and of which of it there is no free address. */
interface Want {
  readonly nics: readonly NicDemand[];
  readonly shortage: Shortage;
}

type Bound = Extract<ClaimOutcome, { kind: "bound" }>;

/** One ADD's search: what is settled so far, and what has been tried. */
class AddressSearch {
  readonly #tools: AllocateDeps;
  readonly #demand: AddressDemand;
  readonly #takeOvers: TakeOvers;
  #settled: Picked[] = [];
  #marked: Picked[] = [];
  readonly #surveys: LiveUsage;
  #hasExpired = false;
  #skipOwnCooling = false;
  /** What is kept for the members of the demand; undefined until it is asked for, which is done once. */
  #retained: readonly Retained[] | undefined;
  /** The NIC has some of the families and lacks others. */
  #isPartial = false;
  /** Until when other nodes may take addresses off the NICs of earlier pods. */
  #handOverUntilMs: number | undefined;

  constructor(tools: AllocateDeps, demand: AddressDemand) {
    this.#tools = tools;
    this.#demand = demand;
    this.#surveys = new LiveUsage(tools);
    this.#takeOvers = new TakeOvers(tools, { owner: demand.claimant.owner, signal: demand.signal });
  }

  async run(): Promise<Claimed> {
    const { claimant, workloads } = this.#demand;
    const keeps = claimant.workload !== undefined || (workloads?.size ?? 0) > 0;
    await requireWithinLimits(this.#tools.registry, this.#demand, keeps);
    this.#settled = assignRequested(this.#tools.poolCache, this.#nic, this.#demand.requested);
    for (let attempt = 0; attempt < MAX_CLAIM_ATTEMPTS; attempt++) {
      const claimed = await this.#attempt();
      if (claimed !== undefined) return claimed;
      this.#demand.signal.throwIfAborted();
    }
    throw new CniError(
      ErrorCode.TryAgainLater,
      `Interface "${this.#demand.claimant.ifName}" lost ${MAX_CLAIM_ATTEMPTS} addresses in a row to other pods; try again`,
    );
  }

  /** Nothing of this search stays in the pool cache but what became an allocation. */
  end(): void {
    this.forget();
    this.#takeOvers.end();
  }

  /** What was taken from the pool cache for this ADD and did not become an allocation goes back. */
  forget(): void {
    cancelReservations(this.#tools.poolCache, this.#marked, []);
    this.#marked = [];
  }

  async #attempt(): Promise<Claimed | undefined> {
    const { randomize } = this.#demand;
    const seedText = this.#isSpread ? `${this.#demand.seedText}#${this.#surveys.misses}` : this.#demand.seedText;
    const nics = await this.#findMissing();
    const reserved = this.#settled.filter(({ pool, ip }) => this.#tools.poolCache.takeExactly(pool, ip) === "claimed");
    const pick = pickAddresses(this.#tools.poolCache, {
      nics,
      seedOf: (ifName, family) => hashText(`${seedTextOf(this.#demand, ifName, seedText)}/${family}`),
      assigned: this.#settled,
      randomize: (pool) => this.#isSpread || randomize?.(pool) === true,
    });
    const picked = pick.kind === "picked" ? pick.picked : [];
    this.#marked = [...reserved, ...picked.filter((each) => !this.#settled.includes(each))];
    const outcome = await this.#ask(picked);
    this.#learn(outcome);
    switch (outcome.kind) {
      case "bound":
        if (this.#isWhole(outcome.held))
          return (await this.#preferRetained(outcome, picked)) ? undefined : this.#accept(outcome);
        if (pick.kind === "short") await this.#overcomeFor(outcome.held, { nics, shortage: pick.shortage });
        return undefined;
      case "cooling":
        this.#settleOwn(outcome.own);
        return undefined;
      case "taken":
        await this.#settleTaken(outcome.by, picked);
        if (!outcome.by.some(({ version }) => version < 0) || (await this.#settleRetained(nics))) return undefined;
        await this.#surveys.miss(picked);
        return undefined;
    }
  }

  /** What is kept for the pod it may have, and nothing new while its namespace has its share. */
  async #accept(bound: Bound): Promise<Claimed> {
    const refusal = refuseFresh(this.#demand, bound.fresh);
    if (refusal === undefined) return bound;
    await this.#tools.registry.undo(bound.created);
    throw refusal;
  }

  /** Nodes that look for free addresses from one place would meet again and again. */
  get #isSpread(): boolean {
    return this.#surveys.misses >= SURVEY_MISSES;
  }

  /** Allocation rule 8: what is kept for the pod is sought before anything is taken from others. True when there is something to claim. */
  async #settleRetained(nics: readonly NicDemand[]): Promise<boolean> {
    if (this.#retained !== undefined) return false;
    this.#retained = await findRetained(this.#tools, this.#demand);
    const isWanted = ({ ifName, ip }: Pick<Picked, "ifName" | "ip">): boolean => {
      const isIts = (each: Picked): boolean => each.ifName === ifName && each.ip.family === ip.family;
      const isMissing = nics.some(
        (nic) => nic.ifName === ifName && nic.families.some(({ family }) => family === ip.family),
      );
      return isMissing && !this.#settled.some(isIts);
    };
    const chosen = chooseRetained(this.#retained, isWanted);
    this.#settle(chosen);
    return chosen.length > 0;
  }

  /** True when what was claimed is given back for something that is kept for this pod. What is left over then is released. */
  async #preferRetained(bound: Bound, picked: readonly Picked[]): Promise<boolean> {
    const { held, created, fresh = [] } = bound;
    try {
      if (this.#retained === undefined && (fresh.length > 0 || this.#isMovedByName(created))) {
        const all = await findRetained(this.#tools, this.#demand);
        this.#retained = all.filter(({ kept }) => ![...held, ...created].some((own) => isSameAddress(own, kept)));
        const isFresh = ({ ifName, ip }: Pick<Picked, "ifName" | "ip">): boolean =>
          fresh.some((row) => row.ifName === ifName && row.ip.family === ip.family && !this.#isAsked(row));
        const chosen = chooseRetained(this.#retained, isFresh);
        if (chosen.length > 0) {
          // All of a claim is undone or nothing; the rest of it is claimed again.
          const rest = picked.filter((each) => created.some((row) => isAt(each, row)));
          this.#settle(rest.map(({ replaces: _, ...each }) => each));
          this.#settle(chosen);
          await this.#tools.registry.undo(created);
          this.#skipOwnCooling = false;
          return true;
        }
      }
      await this.#releaseSurplus(bound);
      return false;
    } catch (error) {
      await this.#tools.registry.undo(created);
      throw error;
    }
  }

  /**
   * The pod asked for an address by name and took over one that was kept: another one may be kept for the NIC. An IPAMClaim asks for its own address
   * at each start of a machine, which is no reason to ask the API server for more.
   */
  #isMovedByName(created: readonly Allocation[]): boolean {
    const names = this.#demand.requested.filter(({ source }) => !source.startsWith("IPAMClaim "));
    return names.some(({ ip }) => created.some((row) => equalIp(row.ip, ip)));
  }

  async #releaseSurplus({ held, created }: Bound): Promise<void> {
    const surplus = surplusOf(this.#retained ?? [], this.#demand, [...held, ...created]);
    if (surplus.length > 0) await this.#tools.releaseRetained?.(surplus);
  }

  #isAsked({ ifName, ip }: Allocation): boolean {
    return ifName === this.#demand.claimant.ifName && this.#demand.requested.some((wish) => equalIp(wish.ip, ip));
  }

  /** A NIC has an address of each family that is demanded: an answer with one of two would be the pod's for its life. */
  #isWhole(held: readonly Allocation[]): boolean {
    return this.#nic.families.every(({ family }) => held.some(({ ip }) => ip.family === family));
  }

  /** The demand without what the pod has already: another NIC's full pool is no obstacle to this one. */
  async #findMissing(): Promise<readonly NicDemand[]> {
    const { nics, claimant } = this.#demand;
    if (nics.length < 2 && !this.#isPartial) return nics;
    const rows = await this.#tools.registry.findOwner(claimant.owner);
    const own = rows.filter((each) => !isOfOtherNetwork(each, claimant) || each.state === "Cooling");
    if (!this.#skipOwnCooling) this.#settleOwn(own.filter(({ state }) => state === "Cooling"));
    const has = (ifName: string, family: Family): boolean =>
      own.some(
        (each) =>
          each.state === "Bound" && each.ifName === ifName && each.ip.family === family && !this.#isUnwanted(each),
      );
    return nics.map((nic) => ({ ...nic, families: nic.families.filter(({ family }) => !has(nic.ifName, family)) }));
  }

  /** It never was on a NIC, and its NIC now asks for another one. */
  #isUnwanted({ containerId, ifName, ip }: Allocation): boolean {
    const { requested, claimant } = this.#demand;
    if (containerId !== "" || ifName !== claimant.ifName) return false;
    return requested.some((wish) => wish.ip.family === ip.family && !equalIp(wish.ip, ip));
  }

  #ask(picked: readonly Picked[]): Promise<ClaimOutcome> {
    const proposals = picked.map((each) => proposalOf(each, this.#demand));
    const claim = { ...this.#demand.claimant, proposals, skipOwnCooling: this.#skipOwnCooling };
    return this.#tools.registry.claim(claim, this.#demand.signal);
  }

  /** The poolCache follows the registry's answer: what is in use is marked, what was only hoped for is not. */
  #learn(outcome: ClaimOutcome): void {
    const inUse = outcome.kind === "bound" ? outcome.created : outcome.kind === "taken" ? outcome.by : [];
    for (const { space, ip } of inUse) this.#tools.poolCache.mark(space, ip);
    this.forget();
  }

  /** The pod's own addresses still cool: they are its own again, if what is selected now allows them. */
  #settleOwn(own: readonly Allocation[]): void {
    const newestFirst = [...own].sort((a, b) => b.sinceMs - a.sinceMs);
    this.#skipOwnCooling = true;
    for (const { space, ip, ifName, version } of newestFirst) {
      const nic = this.#demand.nics.find((each) => each.ifName === ifName);
      const found = nic === undefined ? undefined : findPoolOfRequested(this.#tools.poolCache, nic, ip);
      if (found?.kind !== "pool" || found.pool.spec.addressSpace !== space) continue;
      const settled = this.#settled.find((other) => other.ifName === ifName && other.ip.family === ip.family);
      if (settled !== undefined && !isAt(settled, { space, ip })) continue;
      if (this.#settled.some((other) => other.ifName !== ifName && isAt(other, { space, ip }))) continue;
      this.#settle([{ ...settled, ifName, pool: found.pool, ip, replaces: version }]);
    }
  }

  get #nic(): NicDemand {
    const nic = this.#demand.nics.find(({ ifName }) => ifName === this.#demand.claimant.ifName);
    invariant(nic !== undefined, "Selection demands something for the NIC of the request");
    return nic;
  }

  #settle(picked: readonly Picked[]): void {
    const replaced = (old: Picked): boolean =>
      picked.some(({ ifName, ip }) => ifName === old.ifName && ip.family === old.ip.family);
    this.#settled = [...this.#settled.filter((old) => !replaced(old)), ...picked];
  }

  async #settleTaken(by: readonly Allocation[], picked: readonly Picked[]): Promise<void> {
    for (const holder of by) {
      const settled = this.#settled.find((each) => isAt(each, holder));
      if (holder.predecessorNode !== undefined) {
        await this.#awaitNode(holder);
        continue;
      }
      // Each NIC keeps its own: what another NIC of the member has is somebody else's.
      const isItsNic = picked.some(
        (each) => isAt(each, holder) && (holder.ifName === "" || holder.ifName === each.ifName),
      );
      if (isItsNic && isFormer(this.#demand, holder)) {
        await this.#succeed(holder);
        continue;
      }
      if (isItsNic) refuseLiving(this.#demand, holder);
      if (settled === undefined) continue;
      // This node's row is older than what the API server has said: the address went to the member elsewhere.
      const isOld = holder.version >= 0 && holder.state === "Cooling" && settled.replaces !== holder.version;
      if (isOld && this.#retained?.some(({ kept }) => isSameAddress(kept, holder)) === true) {
        this.#settle([{ ...settled, replaces: holder.version }]);
        continue;
      }
      const request = this.#demand.requested.find(({ ip }) => settled.requested === true && equalIp(ip, holder.ip));
      if (request === undefined) {
        this.#settled = this.#settled.filter((each) => each !== settled);
        continue;
      }
      if (holder.state !== "Cooling") throw this.#refuseHeld(request, holder);
      await this.#takeOvers.waitFor(holder);
      if (this.#takeOvers.ageOf(holder) < MIN_COOLING_MS) {
        throw refuseRequested(
          ErrorCode.TryAgainLater,
          request.source,
          `${formatIp(holder.ip)} was released only just now`,
        );
      }
      this.#settle([{ ...settled, replaces: holder.version }]);
    }
  }

  #refuseHeld({ source }: RequestedIp, holder: Allocation): CniError {
    const { text, forLog } = describeHolder(holder, this.#demand.claimant.namespace);
    const address = formatIp(holder.ip);
    return refuseRequested(ErrorCode.PoolExhausted, source, `${address}: ${text}`, `${address}: ${forLog}`);
  }

  /** Allocation rule 8: the agent of the earlier pod's node takes the address off its NIC, which takes a moment. Rejects with CniError 11 when it does not. */
  async #awaitNode(holder: Allocation): Promise<void> {
    const { awaitChange, nowMs } = this.#tools;
    this.#handOverUntilMs ??= nowMs() + HAND_OVER_WAIT_MS;
    const withinMs = this.#handOverUntilMs - nowMs();
    if (withinMs <= 0 || !(await awaitChange?.(holder, withinMs, this.#demand.signal))) throw awaitsNode(holder);
  }

  /** Allocation rule 8: an earlier pod of the same member has it on this node, or had it until just now; or on one that is lost (rule 2). */
  async #succeed(former: Allocation): Promise<void> {
    if (former.version < 0) {
      this.#settled = this.#settled.filter((each) => !isAt(each, former));
      return this.#settle(inheritLost(this.#tools.poolCache, this.#demand, former));
    }
    const cooling = former.state === "Bound" ? await this.#tools.displace?.(former, this.#demand.claimant) : former;
    const nic = this.#demand.nics.find(({ ifName }) => ifName === former.ifName);
    const found = nic === undefined ? undefined : findPoolOfRequested(this.#tools.poolCache, nic, former.ip);
    if (cooling?.state !== "Cooling" || found?.kind !== "pool") return;
    this.#settle([{ ifName: former.ifName, pool: found.pool, ip: former.ip, replaces: cooling.version }]);
  }

  /** What falls short may be a family that the NIC has. */
  async #overcomeFor(held: readonly Allocation[], want: Want): Promise<void> {
    if (held.length === 0 || this.#isPartial) return this.#overcome(want);
    this.#isPartial = true;
  }

  /** No pool has a free address: take over the longest released one, or wait for it, or give up. */
  async #overcome({ nics, shortage }: Want): Promise<void> {
    const unservable = findUnservable(this.#demand.nics);
    if (unservable !== undefined) throw noPoolMatches(this.#demand.nics, unservable.nic, unservable.demand);
    if (await this.#settleRetained(nics)) return;
    const exhausted = (): PoolShortage =>
      poolsExhausted(this.#demand.nics, shortage.nic, shortage.demand, shortage.reasons);
    if (shortage.demand.generated !== undefined && this.#demand.skipIfFull?.(shortage.demand)) throw exhausted();
    if (!this.#hasExpired) {
      this.#hasExpired = true;
      await this.#tools.registry.expire();
      return; // Some may have cooled long enough since the janitor looked.
    }
    const pools = poolsOf(shortage.demand).filter(({ name }) => (this.#tools.poolCache.counts(name)?.total ?? 0n) > 0n);
    if (await this.#surveys.ask(pools)) return;
    const { ifName } = shortage.nic;
    const isSpoken: IsSpoken = (found) => this.#settled.some((each) => isAt(each, found));
    for (const pool of pools) {
      const chosen = await this.#takeOvers.chooseCooling(pool, isSpoken);
      if (chosen === "again") return;
      if (chosen !== undefined) return this.#settle([{ ifName, pool, ip: chosen.ip, replaces: chosen.version }]);
    }
    const { claimant, canProbe } = this.#demand;
    if (ifName === claimant.ifName && canProbe !== undefined) {
      for (const pool of pools) {
        const chosen = await this.#takeOvers.chooseQuarantined(pool, isSpoken, canProbe);
        if (chosen !== undefined) return this.#settle([{ ifName, pool, ip: chosen.ip, replaces: chosen.version }]);
      }
    }
    throw exhausted();
  }
}
