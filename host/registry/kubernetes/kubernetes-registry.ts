/**
 * The registry of a cluster: the node's journal and, for each address, an object of the API server that a publisher makes equal to the row.
 * Called by the agent in cluster mode, in the embedded registry's place; the reconciler tells it what the API server has.
 * Effects: those of the journal and of the API server's calls.
 */

import { ApiError, ApiUnavailable } from "../../kubernetes/kube-api.ts";
import { LIST_PAGE } from "../../kubernetes/list.ts";
import { messageOf } from "../../lib/describe.ts";
import type { Ip } from "../../net/ip.ts";
import type { Workload } from "../../resources/ip-allocation.ts";
import type { PoolUsage } from "../../resources/usage/ip-pool-usage.ts";
import { type Adoption, type Journal, UNKNOWN_CONTAINER } from "../journal.ts";
import { listRows } from "../list-rows.ts";
import type {
  AddressSpan,
  Allocation,
  Attachment,
  Claim,
  ClaimOutcome,
  Cooldowns,
  ListCursor,
  Quarantine,
  QuarantineQuery,
  UsageCount,
} from "../registry.ts";
import { RegistryError } from "../registry.ts";
import { openSqliteJournal } from "../sqlite/registry.ts";
import { AllocationObjects, type CallTerms } from "./allocation-objects.ts";
import { ClaimPublisher, EXPIRE_WAIT_MS } from "./claim-publisher.ts";
import type { KubernetesRegistry, KubernetesRegistryOptions } from "./cluster-registry.ts";
import { ForeignObjects } from "./foreign-objects.ts";
import { type ObjectChange, ObjectSync } from "./object-sync.ts";
import { PoolUsages } from "./pool-usages.ts";
import { packUsed, Survey } from "./survey.ts";
import { TIGHT_SHARE, TightPools } from "./tight-pools.ts";
import { atMost } from "./waiting.ts";

/** Pools of together so many addresses are asked for by name when they seem full, two of /16; for larger ones the answer would be many megabytes. @limit */
export const SURVEY_MAX_ADDRESSES = 131_072;

/** For a question that an ADD waits for. */
const ASKED: CallTerms = { lane: "pod" };

export async function openKubernetesRegistry(options: KubernetesRegistryOptions): Promise<KubernetesRegistry> {
  return openRegistryOn(await openSqliteJournal(options), options);
}

/** The same on a journal that is open already. */
export async function openRegistryOn(
  journal: Journal,
  options: KubernetesRegistryOptions,
): Promise<KubernetesRegistry> {
  const registry = new JournalledRegistry(journal, options);
  await registry.recall();
  return registry;
}

class JournalledRegistry implements KubernetesRegistry {
  readonly #journal: Journal;
  readonly #options: KubernetesRegistryOptions;
  readonly #publisher: ObjectSync;
  readonly #claims: ClaimPublisher;
  readonly #foreign: ForeignObjects;
  readonly #survey: Survey;
  readonly #tight: TightPools;
  readonly #usages: PoolUsages;
  #round: Promise<void> | undefined;

  constructor(journal: Journal, options: KubernetesRegistryOptions) {
    this.#journal = journal;
    this.#options = options;
    this.#foreign = new ForeignObjects(options);
    this.#tight = new TightPools({ usedShare: () => undefined, ...options });
    const isPublic = (pool: string): boolean => this.#tight.isTight(pool);
    const onUndone = (row: Allocation): void => this.#claims.forget(row);
    this.#publisher = new ObjectSync({ ...options, journal, foreign: this.#foreign, isPublic, onUndone });
    this.#claims = new ClaimPublisher(journal, this.#publisher, options.isLost);
    this.#survey = new Survey(new AllocationObjects(options.api), ASKED);
    this.#usages = new PoolUsages(options);
  }

  get size(): KubernetesRegistry["size"] {
    return this.#publisher.size;
  }

  /** What an earlier agent may not have told the API server is seen to by the next {@link expire}. */
  async recall(): Promise<void> {
    await this.#eachRow((row) => {
      if (row.state !== "Bound" || row.isConfirmed !== true) this.#publisher.recall(row);
    });
  }

  claim(claim: Claim, signal?: AbortSignal): Promise<ClaimOutcome> {
    return this.#claims.claim(claim, signal);
  }
  undo(created: readonly Allocation[]): Promise<void> {
    return this.#claims.undo(created);
  }
  async release(attachment: Attachment): Promise<readonly Allocation[]> {
    return this.#settleLater(await this.#journal.release(attachment));
  }

  /** Only nominates: what goes, goes because its pod is gone (allocation rule 1). */
  async releaseOthers(network: string, valid: readonly Attachment[], beforeMs: number): Promise<readonly Allocation[]> {
    const alive = new Set(valid.map(({ containerId, ifName }) => `${containerId}/${ifName}`));
    const nominated: Allocation[] = [];
    await this.#eachRow((row) => {
      const { state, containerId, ifName, sinceMs } = row;
      if (state !== "Bound" || row.network !== network || sinceMs >= beforeMs) return;
      if (containerId === "" || containerId === UNKNOWN_CONTAINER || alive.has(`${containerId}/${ifName}`)) return;
      nominated.push(row);
    });
    const released: Allocation[] = [];
    for (const row of nominated) {
      if ((await asked(this.#options.isPodGone(row))) && (await this.collect(row)) !== undefined) released.push(row);
    }
    return released;
  }

  async releaseUnattached(beforeMs: number): Promise<readonly Allocation[]> {
    return this.#settleLater(await this.#journal.releaseUnattached(beforeMs));
  }

  async expire(): Promise<number> {
    this.#round ??= this.#workOff().finally(() => {
      this.#round = undefined;
    });
    await atMost(EXPIRE_WAIT_MS, this.#round);
    return this.#journal.expire();
  }

  findAttachment(attachment: Attachment): Promise<readonly Allocation[]> {
    return this.#journal.findAttachment(attachment);
  }
  findAddress(space: string, ip: Ip): Promise<Allocation | undefined> {
    return this.#journal.findAddress(space, ip);
  }
  findOwner(owner: string): Promise<readonly Allocation[]> {
    return this.#journal.findOwner(owner);
  }

  async findCooling(spans: readonly AddressSpan[], limit: number, pool?: string): Promise<readonly Allocation[]> {
    const own = await this.#journal.findCooling(spans, limit);
    if (pool === undefined) return own;
    this.#tight.note(pool);
    const foreign = await asked(this.#foreign.findCooling(spans, pool, ASKED));
    if (own.length + foreign.length === 0) await this.markWanted(pool);
    return [...own, ...foreign].sort((a, b) => a.sinceMs - b.sinceMs).slice(0, limit);
  }

  async quarantine(
    allocation: Allocation,
    quarantine: Quarantine,
    created: readonly Allocation[] = [],
  ): Promise<Allocation | undefined> {
    const found = await this.#journal.quarantine(allocation, quarantine, created);
    if (found !== undefined) this.#settleLater([allocation, ...created]);
    return found;
  }
  findQuarantined(query: QuarantineQuery): Promise<readonly Allocation[]> {
    return this.#journal.findQuarantined(query);
  }
  postponeProbe(allocation: Allocation, nextProbeAtMs: number): Promise<void> {
    return this.#journal.postponeProbe(allocation, nextProbeAtMs);
  }
  async endQuarantine(allocation: Allocation): Promise<void> {
    await this.#journal.endQuarantine(allocation);
    this.#settleLater([allocation]);
  }
  async trust(allocation: Allocation): Promise<Allocation | undefined> {
    await this.#claims.trust(allocation);
    return this.#journal.trust(allocation);
  }
  readUsed(span: AddressSpan): Promise<Uint8Array> {
    return this.#journal.readUsed(span);
  }

  async listUsed(span: AddressSpan, pools: readonly string[]): Promise<Uint8Array | undefined> {
    for (const pool of pools) this.#usages.surveyed(pool);
    const size = pools.reduce((sum, pool) => sum + (this.#options.poolSize(pool) ?? Number.POSITIVE_INFINITY), 0);
    if (size > SURVEY_MAX_ADDRESSES) return undefined;
    const names = (await asked(Promise.all(pools.map((pool) => this.#survey.names(pool))))).flat();
    if (names.length >= size * TIGHT_SHARE) for (const pool of pools) this.#tight.note(pool);
    return packUsed(span, names, await this.#journal.readUsed(span));
  }

  async readUsageSummary(pool: string): Promise<PoolUsage | undefined> {
    const usage = await this.#usages.news(pool);
    if (usage !== undefined && usage.total - usage.free >= usage.total * TIGHT_SHARE) this.#tight.note(pool);
    return usage;
  }

  findRetained(workload: Workload, signal?: AbortSignal): Promise<readonly Allocation[]> {
    return asked(this.#foreign.findRetained(workload, signal === undefined ? ASKED : { ...ASKED, signal }));
  }
  countUsage(): Promise<readonly UsageCount[]> {
    return this.#journal.countUsage();
  }
  list(after: ListCursor | undefined, limit: number): Promise<readonly Allocation[]> {
    return this.#journal.list(after, limit);
  }
  get trouble(): string | undefined {
    return this.#journal.trouble;
  }
  probe(): Promise<void> {
    return this.#journal.probe();
  }
  setCooldowns(cooldowns: Cooldowns): void {
    this.#journal.setCooldowns(cooldowns);
  }

  async close(): Promise<void> {
    this.#publisher.end();
    await this.#publisher.idle();
    await this.#round?.catch(() => {});
    await this.#journal.close();
  }

  observe(change: ObjectChange): void {
    this.#publisher.observe(change);
  }

  async adopt(adoption: Adoption): Promise<Allocation | undefined> {
    const row = await this.#journal.adopt(adoption);
    if (row !== undefined) this.#settleLater([row]);
    return row;
  }

  async collect(row: Allocation): Promise<Allocation | undefined> {
    const collected = await this.#journal.collect(row);
    if (collected !== undefined) this.#settleLater([collected]);
    return collected;
  }

  async releaseRetained(kept: readonly Allocation[]): Promise<void> {
    for (const each of kept) {
      const { space, ip, prefixLength, pool, ifName, namespace, pod } = each;
      const names = { space, ip, prefixLength, pool, ifName, namespace, pod, owner: "" };
      if (await asked(this.#foreign.giveUp(each, ASKED))) await this.adopt({ ...names, state: "Cooling" });
    }
  }

  republish(row: Allocation): Promise<void> {
    this.#publisher.distrust(row);
    return this.#publisher.settle(row);
  }

  isShared({ space, ip }: Allocation, signal: AbortSignal): Promise<boolean> {
    return asked(this.#foreign.isShared({ space, ip }, { ...ASKED, signal }));
  }

  awaitChange(row: Allocation, withinMs: number, signal: AbortSignal): Promise<boolean> {
    return asked(this.#foreign.awaitChange(row, withinMs, { ...ASKED, signal }));
  }

  async publishCooling(pool: string): Promise<void> {
    this.#tight.note(pool);
    await this.#eachRow((row) => {
      if (row.state === "Cooling" && row.pool === pool) this.#publisher.settleLater(row);
    });
  }

  /** Never rejects: the ADD is refused in any case. */
  async markWanted(pool: string): Promise<void> {
    try {
      await this.#foreign.markWanted(pool, new Date().toISOString(), ASKED);
    } catch (error) {
      this.#options.log.warn({ err: error, pool }, "The pool could not be marked as wanted");
    }
  }

  idle(): Promise<void> {
    return this.#publisher.idle();
  }

  /** All that is due; what fails waits in the backlog. */
  async #workOff(): Promise<void> {
    const seen = new Set<number>();
    for (;;) {
      const due = (await this.#journal.findDue(LIST_PAGE + seen.size)).filter(({ version }) => !seen.has(version));
      for (const { version } of due) seen.add(version);
      await this.#publisher.workOff(due);
      if (due.length === 0) return;
    }
  }

  #settleLater(rows: readonly Allocation[]): readonly Allocation[] {
    for (const row of rows) {
      this.#claims.forget(row);
      this.#publisher.settleLater(row);
    }
    return rows;
  }

  async #eachRow(look: (row: Allocation) => void): Promise<void> {
    for await (const row of listRows(this.#journal, LIST_PAGE)) look(row);
  }
}

async function asked<T>(question: Promise<T>): Promise<T> {
  try {
    return await question;
  } catch (error) {
    if (!(error instanceof ApiError || error instanceof ApiUnavailable)) throw error;
    throw new RegistryError(`The API server could not be asked: ${messageOf(error)}`, { cause: error }); // biome-ignore format: one thought
  }
}
