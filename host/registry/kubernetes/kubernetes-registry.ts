/**
 * The registry of a cluster: the node's journal, and for each address an object of the API server that object sync
 * makes equal to the row. A claim is answered when both exist; everything else is synced in the background.
 */
import { mayBeShared } from "../../ipam/retention.ts";
import type { KubeApi } from "../../kubernetes/kube-api.ts";
import { LIST_PAGE } from "../../kubernetes/list.ts";
import { untilAborted, waitAtMost } from "../../lib/abort.ts";
import type { Log } from "../../lib/log.ts";
import { KeyedSerialQueue } from "../../lib/serial.ts";
import type { IpAllocation } from "../../resources/ip-allocation.ts";
import type { PoolUsage } from "../../resources/ip-pool-usage.ts";
import { isRecreated, type Workload } from "../../resources/member.ts";
import { numberOf } from "../claims.ts";
import type { Adoption, Journal } from "../journal.ts";
import { listRows } from "../list-rows.ts";
import type {
  AddressSpan,
  Allocation,
  Claim,
  ClaimOutcome,
  PublishOutcome,
  Registry,
  RegistryHealth,
} from "../registry.ts";
import { openSqliteJournal, type SqliteRegistryOptions } from "../sqlite/sqlite-registry.ts";
import { FOR_POD } from "./allocation-objects.ts";
import { claimInCluster, failureOf, type Records, trust, undo } from "./cluster-claim.ts";
import type { LiveStatus } from "./decide.ts";
import { ForeignObjects } from "./foreign-objects.ts";
import { nameOf, rowVersionOf } from "./known-object.ts";
import { type LostObserver, ObjectSync, taskOf } from "./object-sync.ts";
import { type CountedPools, NameLists, packUsed, TIGHT_SHARE, TightPools, UsageSummaries } from "./pool-usage.ts";
import { SeenOwners } from "./seen-owners.ts";

/**
 * Largest pools that are listed by name when they seem full, together: addresses, two /16. For larger ones the answer
 * would be many megabytes.
 */
export const LIST_MAX_ADDRESSES = 131_072;

/** Time for which maintenance waits for the API server in one round: milliseconds. The work goes on after that. */
export const EXPIRE_WAIT_MS = 2_000;

export interface KubernetesRegistryOptions {
  readonly api: KubeApi;
  readonly journal: SqliteRegistryOptions;
  /** Opens the journal. Default: on a thread of its own, in the directory. */
  readonly openJournal?: ((options: SqliteRegistryOptions) => Promise<Journal>) | undefined;
  readonly pools: CountedPools;
  readonly live: LiveStatus;
  readonly lost: LostObserver;
  readonly random: () => number;
  readonly log: Log;
  /** Returns the end of the comparison of a journal that has lost rows with the API server; undefined: it is whole. */
  readonly comparison?: ((signal?: AbortSignal) => Promise<void> | undefined) | undefined;
}

export async function openKubernetesRegistry(options: KubernetesRegistryOptions): Promise<KubernetesRegistry> {
  const registry = new KubernetesRegistry(await (options.openJournal ?? openSqliteJournal)(options.journal), options);
  await registry.resume();
  return registry;
}

export class KubernetesRegistry implements Registry {
  /** The objects of this node's addresses, as the API server has them. */
  readonly objects: ObjectSync;
  /** The journal's. */
  readonly health: RegistryHealth;
  readonly #journal: Journal;
  readonly #options: KubernetesRegistryOptions;
  readonly #records: Records;
  /** The claims of one owner run one by one: an ADD waits for the prefetch of its addresses. */
  readonly #claims = new KeyedSerialQueue();
  readonly #foreign: ForeignObjects;
  readonly #names: NameLists;
  readonly #owners: SeenOwners;
  readonly #tight: TightPools;
  readonly #usage: UsageSummaries;
  #round: Promise<void> | undefined;

  constructor(journal: Journal, options: KubernetesRegistryOptions) {
    this.#journal = journal;
    this.health = journal;
    this.#options = options;
    const { api, live, lost, pools, random, log } = options;
    const { nowMs } = options.journal;
    this.#foreign = new ForeignObjects({ api, live, nowMs });
    this.#tight = new TightPools(pools, nowMs);
    this.#owners = new SeenOwners({ journal, live, log });
    const parts = { journal, foreign: this.#foreign, tight: this.#tight, owners: this.#owners };
    this.objects = new ObjectSync({ ...parts, api, live, lost, nowMs, random, log });
    this.#records = { journal, objects: this.objects };
    this.#names = new NameLists(api);
    this.#usage = new UsageSummaries({ api, nowMs, log });
  }

  /** Leaves to the next {@link expire} rows that an earlier agent may not have written to the API server. */
  async resume(): Promise<void> {
    await this.#owners.open();
    for await (const row of listRows(this.#journal)) {
      if (row.state !== "Bound" || row.isConfirmed !== true) this.objects.resume(row);
    }
  }

  /** Waits while rows of the pod may be missing. The address owners are read meanwhile. */
  async claim(claim: Claim, signal?: AbortSignal): Promise<ClaimOutcome> {
    for (const { workload = claim.workload } of claim.proposals)
      if (workload !== undefined) void this.#owners.read(workload);
    await this.#options.comparison?.(signal);
    const begun = Promise.withResolvers<void>();
    const claimed = this.#claims.run(claim.owner, () => {
      begun.resolve();
      return claimInCluster(this.#records, claim, signal);
    });
    // A claim that has begun handles the signal itself, and undoes what it wrote.
    if (signal !== undefined) await untilAborted(begun.promise, signal);
    const outcome = await claimed;
    // The pod may show another owner since it was identified.
    if (outcome.kind === "bound") this.#followOwners(outcome.held);
    return outcome;
  }

  /**
   * Returns how the API server would answer the claim of this row now, with `replaces` as in {@link Proposal}. It only
   * reads, and another pod may be faster.
   */
  readonly foresee = (row: Allocation, replaces: number | undefined, signal: AbortSignal): Promise<PublishOutcome> =>
    orRegistryError(this.objects.foresee({ ...taskOf(row, { ...FOR_POD, signal }), row, replaces }));

  readonly undo: Registry["undo"] = (created) => undo(this.#records, created);

  async retain(claimed: readonly Allocation[]): Promise<void> {
    await this.#journal.retain(claimed);
    this.#followOwners(claimed);
    // Without the journal an older record of the member would come first.
    this.#syncLater(claimed.filter((row) => numberOf(row) > 1));
  }

  readonly release: Registry["release"] = async (of) => this.#syncLater(await this.#journal.release(of));

  /** The journal's undone rows are due at once. */
  async expire(): Promise<void> {
    await this.#journal.expire();
    this.#round ??= this.#runRound().finally(() => {
      this.#round = undefined;
    });
    await waitAtMost(this.#round, EXPIRE_WAIT_MS);
  }

  /** Waits until the node's machine is known, or the agent stops. */
  async #runRound(): Promise<void> {
    const identified = this.#options.live.identified?.() ?? Promise.resolve();
    const isKnown = await identified.then(
      () => true,
      () => false,
    );
    if (isKnown) await this.#syncDue();
  }

  readonly findAttachment: Registry["findAttachment"] = (attachment) => this.#journal.findAttachment(attachment);
  readonly findAddress: Registry["findAddress"] = (...of) => this.#journal.findAddress(...of);
  readonly findOwner: Registry["findOwner"] = (owner) => this.#journal.findOwner(owner);
  readonly findQuarantined: Registry["findQuarantined"] = (query) => this.#journal.findQuarantined(query);
  readonly readUsed: Registry["readUsed"] = (span) => this.#journal.readUsed(span);
  readonly countUsage: Registry["countUsage"] = () => this.#journal.countUsage();
  readonly list: Registry["list"] = (...of) => this.#journal.list(...of);
  readonly setCooldowns: Registry["setCooldowns"] = (cooldowns) => this.#journal.setCooldowns(cooldowns);
  /**
   * Records this machine. Another machine's part of the journal is dropped, except addresses that are Bound here since.
   * Returns the number of dropped addresses.
   */
  readonly noteMachine: Journal["noteMachine"] = (machine) => this.#journal.noteMachine(machine);

  async findCooling(spans: readonly AddressSpan[], limit: number, pool?: string): Promise<readonly Allocation[]> {
    const all = await this.#journal.findCooling(spans, limit);
    // An address that may be retained is no other pod's.
    const own = all.filter(({ workload }) => workload === undefined || this.#owners.isSeen(workload) !== undefined);
    if (pool === undefined) return own;
    this.#tight.note(pool);
    const foreign = await orRegistryError(this.#foreign.findCooling(spans, pool));
    return [...own, ...foreign].sort((a, b) => a.sinceMs - b.sinceMs).slice(0, limit);
  }

  readonly quarantine: Registry["quarantine"] = async (allocation, quarantine, created = []) => {
    const found = await this.#journal.quarantine(allocation, quarantine, created);
    const isBound = allocation.state === "Bound";
    // The code that asked for a probe reads the MAC in the object.
    if (found === undefined || (!isBound && quarantine.mac === allocation.quarantine?.mac)) return found;
    const written = [allocation, ...created];
    if (isBound) for (const row of written) this.objects.forgetProbe(row);
    this.#syncLater(written);
    return found;
  };

  async endQuarantine(allocation: Allocation): Promise<Allocation | undefined> {
    if (allocation.state === "Bound") return trust(this.#records, allocation);
    await this.#journal.endQuarantine(allocation);
    this.#syncLater([allocation]);
    return undefined;
  }

  /**
   * Returns all addresses of the span that any node has in use, 4 or 16 big-endian bytes each, sorted, as of a moment
   * after the call; undefined if the list would be too long. `pools`: the names of all pools in the span; `others`: of
   * pools that had some of the addresses, which are left out if the list would be too long with them.
   */
  readonly listUsed = async (span: AddressSpan, pools: readonly string[], others: readonly string[] = []) => {
    for (const pool of pools) this.#usage.noteListed(pool);
    const size = pools.reduce((sum, pool) => sum + (this.#tight.sizeOf(pool) ?? Number.POSITIVE_INFINITY), 0);
    if (size > LIST_MAX_ADDRESSES) return undefined;
    // A pool that is gone may have been as large as these.
    const sizeOfAll = others.reduce((sum, pool) => sum + (this.#tight.sizeOf(pool) ?? size), size);
    const read = (listed: readonly string[]): Promise<readonly string[][]> =>
      Promise.all(listed.map(async (pool) => [...(await this.#names.read(pool))]));
    const [own, further] = await orRegistryError(
      Promise.all([read(pools), read(sizeOfAll > LIST_MAX_ADDRESSES ? [] : others)]),
    );
    const names = own.flat();
    if (names.length >= size * TIGHT_SHARE) for (const pool of pools) this.#tight.note(pool);
    return packUsed(span, names.concat(further.flat()), await this.#journal.readUsed(span));
  };

  /**
   * Returns the controller's count of the pool's usage, if it is newer than the known one; otherwise undefined. A hint,
   * which may be wrong: it guides the search, and nothing is refused because of it. Never rejects.
   */
  async readUsageSummary(pool: string): Promise<PoolUsage | undefined> {
    const usage = await this.#usage.readNew(pool);
    if (usage !== undefined && usage.total - usage.free >= usage.total * TIGHT_SHARE) this.#tight.note(pool);
    return usage;
  }

  /**
   * Returns the addresses that are retained for this member of the workload, or that an earlier pod of it has, on any
   * node (retention). The caller proposes those in the selected pools with `replaces`, and {@link claim} decides.
   * `target`: the pod to which the member, a machine, migrates; only for that {@link Allocation.isInUse} is found out.
   */
  async findRetained(
    workload: Workload,
    target?: Pick<Claim, "namespace" | "pod">,
    signal?: AbortSignal,
  ): Promise<readonly Allocation[]> {
    const found = await orRegistryError(this.#foreign.findRetained(workload, signal));
    const left = (await Promise.all(found.map((each) => this.#withRow(each)))).filter((each) => each !== undefined);
    return target === undefined ? left : this.#withUse(left, target);
  }

  /**
   * A machine migrates with its address, whatever else is recorded: of several of one NIC reads which ones pods of
   * other nodes have.
   */
  #withUse(found: readonly Allocation[], target: Pick<Claim, "namespace" | "pod">): Promise<readonly Allocation[]> {
    const isOne = (row: Allocation): boolean =>
      found.every((other) => other === row || other.ifName !== row.ifName || other.ip.family !== row.ip.family);
    const complete = async (row: Allocation): Promise<Allocation> =>
      row.state !== "Bound" || !mayBeShared(row.workload) || isOne(row)
        ? row
        : { ...row, isInUse: await this.#isInUse(row, target) };
    return orRegistryError(Promise.all(found.map(complete)));
  }

  /** A pod of an earlier run that has ended is gone, whether it is deleted or not. */
  async #isInUse(row: Allocation, target: Pick<Claim, "namespace" | "pod">): Promise<boolean> {
    const { readHolderStatus = async () => "gone", node } = this.#options.live;
    const { holders = [] } = this.#foreign.find(nameOf(row))?.spec ?? {};
    const others = holders.filter((holder) => holder.node !== node);
    const statuses = await Promise.all(others.map((holder) => readHolderStatus(target, holder)));
    return statuses.some((status) => status !== "gone");
  }

  /**
   * Corrects an object by this node's journal: returns undefined if it is left of a claim of this node that was
   * undone, and the number of the row if the member was answered with it here. A row of another pod is older than the
   * object: a journal was restored. So is a row in quarantine, which goes: this node was asked to probe the address for
   * a lost one, and the member has got it elsewhere since.
   */
  async #withRow(found: Allocation): Promise<Allocation | undefined> {
    const { state, space, ip, owner, claim } = found;
    const isHere =
      state === "Bound" && this.#foreign.find(nameOf({ space, ip }))?.spec.node === this.#options.live.node;
    if (state === "Quarantined") return found;
    const row = await this.#journal.findAddress(space, ip);
    if (row?.state === "Quarantined" && !isHere) await this.republish(row);
    if (!isHere || row?.owner !== owner) return found;
    if (row.state === "Cooling" && row.workload === undefined) return undefined;
    const isAnswered = row.isConfirmed === true && row.workload !== undefined;
    if (!isAnswered || claim === undefined) return found;
    return { ...found, claim: { ...claim, number: Math.max(claim.number, numberOf(row)) } };
  }

  async close(): Promise<void> {
    this.objects.close();
    await this.objects.idle();
    await this.#round?.catch(() => {});
    await this.#journal.close();
  }

  /**
   * Writes a row for an object of this node that the journal lacks; a Cooling one cools and is then deleted, and so is
   * one of a claim that was undone before the object came. Returns undefined if the address has a row.
   */
  async adopt(adoption: Adoption): Promise<Allocation | undefined> {
    const undone = adoption.claim && this.objects.findUndone(adoption.claim.id);
    const late = undone === undefined ? {} : { state: "Cooling" as const, workload: undone.workload };
    const row = await this.#journal.adopt({ ...adoption, ...late });
    if (row?.state === "Bound") this.objects.noteSent(row);
    if (row !== undefined) this.#syncLater([row]);
    return row;
  }

  async collect(row: Allocation): Promise<Allocation | undefined> {
    const collected = await this.#journal.collect(row);
    if (collected !== undefined) this.#syncLater([collected]);
    return collected;
  }

  /** The same of an address that its pod keeps without Berth: it is not retained, whatever its address owner. */
  async renounce(row: Allocation): Promise<Allocation | undefined> {
    await this.#journal.record([{ ...row, workload: undefined }]);
    const current = await this.#journal.findAddress(row.space, row.ip);
    return current?.owner === row.owner ? this.collect(current) : undefined;
  }

  /**
   * Releases addresses of {@link findRetained} that their member cannot use any more: each cools on this node, if its
   * object is unchanged (retention).
   */
  async releaseRetained(retained: readonly Allocation[]): Promise<void> {
    for (const each of retained) {
      const { space, ip, prefixLength, pool, ifName, namespace, pod } = each;
      if (await orRegistryError(this.#foreign.coolRetained(each))) {
        // It was Kept until now, and that has no row.
        this.objects.invalidate(each);
        await this.adopt({ space, ip, prefixLength, pool, ifName, namespace, pod, owner: "", state: "Cooling" });
      }
    }
  }

  /** The pod shows another address owner than before: its addresses are that one's. */
  async followOwner(owner: string): Promise<void> {
    this.#followOwners(await this.#journal.findOwner(owner));
  }

  /** Reads the row's object again, and makes it match the row; a cooling one is shown to the other nodes. */
  republish(row: Allocation): Promise<void> {
    if (row.state === "Cooling") this.#tight.note(row.pool);
    this.objects.invalidate(row);
    return this.objects.sync(row);
  }

  /** Reads whether the row's pod is there and has not ended. */
  readonly isLive = ({ namespace, pod, owner }: Allocation): Promise<boolean> =>
    this.#options.live.isLivePod(namespace, pod, owner);

  /** Takes back the row's address from another node that shows it as cooling. Returns whether that succeeded. */
  async takeBack(row: Allocation, cooling: IpAllocation): Promise<boolean> {
    this.#foreign.remember(cooling);
    const task = { ...taskOf(row, FOR_POD), row, replaces: rowVersionOf(cooling) };
    return (await this.objects.publish(task)).kind === "published";
  }

  /** Reads whether another pod has the address, too, because a machine migrates. Rejects with RegistryError. */
  readonly isShared = (row: Allocation, signal: AbortSignal): Promise<boolean> =>
    orRegistryError(this.#foreign.isShared(row, signal));

  /**
   * Waits until the object of another node's address changes. Returns false if it has not changed after so many
   * milliseconds. Rejects with the signal's reason, and with RegistryError.
   */
  readonly awaitChange = (row: Allocation, withinMs: number, signal: AbortSignal): Promise<boolean> =>
    orRegistryError(this.#foreign.awaitChange(row, withinMs, signal));

  /** The pool is marked as wanted: shows its addresses that cool here to the other nodes. */
  async publishCooling(pool: string): Promise<void> {
    this.#tight.note(pool);
    for await (const row of listRows(this.#journal)) {
      if (row.state === "Cooling" && row.pool === pool) this.objects.syncLater(row);
    }
  }

  /**
   * Marks the pool as wanted, so that all nodes show their cooling addresses. Never rejects: the ADD is refused in
   * any case. `waiting`: so many more pods wait for a block.
   */
  async markWanted(pool: string, waiting?: number): Promise<void> {
    try {
      await this.#foreign.markWanted(pool, waiting);
    } catch (error) {
      this.#options.log.warn({ err: error, pool }, "Marking a pool as wanted failed");
    }
  }

  /** Syncs all rows that are due. A failure stays in the backlog. */
  async #syncDue(): Promise<void> {
    const seen = new Set<number>();
    for (;;) {
      const due = (await this.#journal.findDue(LIST_PAGE + seen.size)).filter(({ version }) => !seen.has(version));
      for (const { version } of due) seen.add(version);
      await this.objects.syncDue(due);
      if (due.length === 0) return;
    }
  }

  #followOwners(rows: readonly Allocation[]): void {
    const { findOwnerOf } = this.#options.live;
    for (const row of rows)
      if (row.workload !== undefined && isRecreated(row.workload, findOwnerOf?.(row))) this.objects.syncLater(row);
  }

  #syncLater(rows: readonly Allocation[]): readonly Allocation[] {
    for (const row of rows) this.objects.syncLater(row);
    return rows;
  }
}

function orRegistryError<T>(question: Promise<T>): Promise<T> {
  return question.catch((error: unknown) => {
    throw failureOf(error, "Reading from the API server failed");
  });
}
