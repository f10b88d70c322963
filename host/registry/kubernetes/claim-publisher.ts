/**
 * A claim in a cluster: the journal's rows first, then one object for each row, all at once; if one of them cannot be had, all are given back.
 * Effects: writes the journal and objects of the API server.
 */

import { ApiError, ApiUnavailable } from "../../kubernetes/kube-api.ts";
import { messageOf } from "../../lib/describe.ts";
import { KeyedMutex } from "../../lib/keyed-mutex.ts";
import type { Journal } from "../journal.ts";
import { type Allocation, type Claim, type ClaimOutcome, RegistryError } from "../registry.ts";
import { nameOf } from "./foreign-objects.ts";
import type { ObjectSync, PublishOutcome } from "./object-sync.ts";
import { atMost } from "./waiting.ts";

/** How long the janitor waits for the API server in one round: milliseconds. The work goes on behind it. @limit */
export const EXPIRE_WAIT_MS = 2_000;

/** How long a claim of a cluster waits for the API server in all: milliseconds. Shorter than the shim's 90 seconds. @limit */
export const CLAIM_PATIENCE_MS = 60_000;

/** What became of one row: as the publisher says, or why it could not be found out. */
interface Result {
  readonly row: Allocation;
  readonly replaces: number | undefined;
  readonly outcome: PublishOutcome | { readonly kind: "failed"; readonly error: unknown };
}

/** What the steps of one claim share. */
interface Course {
  readonly claim: Claim;
  readonly outcome: Bound;
  /** Rows of this node that were taken over, as they were before. */
  readonly replaced: readonly Allocation[];
  readonly untilMs: number;
  readonly open: OpenClaim;
}

/** Where the address of a claimed row comes from, as long as the claim may be undone. */
interface Origin {
  readonly version: number;
  /** Out of nothing, or from a pod of another node whose address still cooled. */
  readonly kind: "new" | "taken over";
}

type Bound = Extract<ClaimOutcome, { kind: "bound" }>;

interface Inherited {
  readonly owner: string;
  /** Version of the object that is taken over. */
  readonly replaces: number;
  /** That of the earlier pod. */
  readonly node: string;
}

/** A claim between the journal's answer and its own. */
interface OpenClaim {
  readonly names: ReadonlySet<string>;
  /** Somebody has written to one of its rows: a DEL, a sweep, another claim's undo. */
  isTouched: boolean;
}

export class ClaimPublisher {
  readonly #journal: Journal;
  readonly #publisher: ObjectSync;
  readonly #isLost: (row: Allocation) => boolean;
  /** The claims of one owner: the ADD that arrives while its prefetch claims waits for it. */
  readonly #owners = new KeyedMutex();
  readonly #origins = new Map<string, Origin>();
  readonly #open = new Set<OpenClaim>();
  /** Rows whose objects are still those of earlier pods on lost nodes: they are published when nobody answers for the addresses. */
  readonly #inherited = new Map<string, Inherited>();

  constructor(journal: Journal, publisher: ObjectSync, isLost: (row: Allocation) => boolean = () => false) {
    this.#journal = journal;
    this.#publisher = publisher;
    this.#isLost = isLost;
  }

  /** Rejects with RegistryError, or with the signal's reason. Then, and when something was taken, nothing of the claim stays. */
  claim(claim: Claim, signal: AbortSignal | undefined): Promise<ClaimOutcome> {
    const begun = Promise.withResolvers<void>();
    const turn = this.#owners.run(claim.owner, () => {
      begun.resolve();
      return this.#claim(claim, signal);
    });
    // Once it has begun it ends by itself, with everything taken back.
    return signal === undefined ? turn : orAborted(begun.promise, signal).then(() => turn);
  }

  /** Nobody answers for the address: its object becomes this pod's. Rejects with RegistryError when it is somebody else's by now. */
  async trust(row: Allocation): Promise<void> {
    const inherited = this.#findInherited(row);
    if (inherited === undefined) return;
    const terms = { lane: "pod" as const, patienceMs: CLAIM_PATIENCE_MS };
    const outcome = await this.#publisher.publish(row, terms, inherited.replaces).catch((error: unknown) => {
      throw failureOf(error);
    });
    if (outcome.kind === "taken")
      throw new RegistryError(`Address ${nameOf(row)} went to another pod or back to its node while it was asked for`);
    this.#inherited.delete(nameOf(row));
    await this.#journal.confirm([row]);
  }

  async undo(given: readonly Allocation[]): Promise<void> {
    const created: Allocation[] = [];
    // What was never published is the earlier pod's as before: the journal has nothing to say of it.
    for (const row of given) {
      const isInherited = this.#findInherited(row) !== undefined;
      if (isInherited) this.#inherited.delete(nameOf(row));
      if (!(isInherited && (await this.#journal.forget(row)))) created.push(row);
    }
    const isOf = (row: Allocation, kind: Origin["kind"]): boolean => {
      const origin = this.#origins.get(nameOf(row));
      return origin?.version === row.version && origin.kind === kind;
    };
    for (const row of created.filter((each) => isOf(each, "taken over"))) await this.#journal.collect(row);
    await this.#journal.undo(created.filter((each) => !isOf(each, "taken over")));
    for (const row of created) {
      const found = await this.#journal.findAddress(row.space, row.ip);
      if (found?.state === "Cooling" && this.#origins.get(nameOf(row))?.version === row.version)
        this.#publisher.discard(row);
      this.forget(row);
      this.#publisher.settleLater(row);
    }
  }

  /** Somebody has written to the row: it is no longer the claim's to undo. */
  forget(row: Allocation): void {
    const name = nameOf(row);
    this.#origins.delete(name);
    for (const open of this.#open) if (open.names.has(name)) open.isTouched = true;
  }

  async #claim(claim: Claim, signal: AbortSignal | undefined): Promise<ClaimOutcome> {
    signal?.throwIfAborted();
    const untilMs = performance.now() + CLAIM_PATIENCE_MS;
    const replaced = await this.#findReplaced(claim);
    const outcome = await this.#journal.claim(claim);
    if (outcome.kind !== "bound") return outcome;
    // At once: what is written to the rows from here on is noticed.
    const open: OpenClaim = { names: new Set(outcome.held.map(nameOf)), isTouched: false };
    this.#open.add(open);
    try {
      return await this.#publish({ claim, outcome, replaced, untilMs, open }, signal);
    } finally {
      this.#open.delete(open);
    }
  }

  async #publish(course: Course, signal: AbortSignal | undefined): Promise<ClaimOutcome> {
    const { claim, outcome, replaced, untilMs } = course;
    for (const { space, ip, owner } of replaced) this.#publisher.supersede({ space, ip }, owner);
    await this.#settleUnwanted(claim);
    const isUnknown = (row: Allocation): boolean => row.isConfirmed !== true || this.#isLost(row);
    const unknown = outcome.held.filter((row) => isUnknown(row) && !outcome.created.includes(row));
    this.#noteInherited(claim, outcome);
    const all = [...outcome.created, ...unknown];
    const rows = all.filter((row) => this.#findInherited(row) === undefined);
    if (rows.length === 0) return this.#withAwaited({ ...outcome, fresh: [] });
    const publish = async (row: Allocation): Promise<Result> => {
      const replaces = claim.proposals.find((each) => nameOf(each) === nameOf(row))?.replaces;
      const terms = { lane: "pod" as const, patienceMs: Math.max(1, untilMs - performance.now()) };
      const published = this.#publisher.publish(
        row,
        { ...terms, ...(signal === undefined ? {} : { signal }) },
        replaces,
      );
      const error = (reason: unknown) => ({ kind: "failed" as const, error: reason });
      return {
        row,
        replaces,
        outcome: await (signal === undefined ? published : orAborted(published, signal)).catch(error),
      };
    };
    return this.#conclude(course, await Promise.all(rows.map(publish)));
  }

  /** A claim of what an earlier pod has on a lost node writes nothing that others see before the address was asked for. */
  #noteInherited({ proposals, owner }: Claim, { created }: Bound): void {
    for (const row of created) {
      const proposal = proposals.find((each) => nameOf(each) === nameOf(row));
      const { needsProbe, replaces } = proposal ?? {};
      const node = this.#publisher.findFormerNode(row);
      if (needsProbe === true && replaces !== undefined && replaces < 0 && node !== undefined)
        this.#inherited.set(nameOf(row), { owner, replaces, node });
      else this.#inherited.delete(nameOf(row));
    }
  }

  #findInherited({ owner, quarantine, ...place }: Allocation): Inherited | undefined {
    const found = quarantine === undefined ? undefined : this.#inherited.get(nameOf(place));
    return found?.owner === owner ? found : undefined;
  }

  #withAwaited(outcome: Bound): Bound {
    const tell = (row: Allocation): Allocation => {
      const inherited = this.#findInherited(row);
      return inherited === undefined ? row : { ...row, predecessorNode: inherited.node };
    };
    return { ...outcome, held: outcome.held.map(tell), created: outcome.created.map(tell) };
  }

  /** The rows of this node that the claim wants to take over, as they are before. */
  async #findReplaced({ proposals }: Claim): Promise<readonly Allocation[]> {
    const found: Allocation[] = [];
    for (const { space, ip, replaces } of proposals) {
      if (replaces === undefined || replaces < 0) continue;
      const row = await this.#journal.findAddress(space, ip);
      if (row?.version === replaces) found.push(row);
    }
    return found;
  }

  /** What was claimed ahead and gave way to an address that was asked for. */
  async #settleUnwanted({ owner, proposals }: Claim): Promise<void> {
    if (!proposals.some(({ requested }) => requested === true)) return;
    const own = await this.#journal.findOwner(owner);
    for (const row of own.filter(({ state }) => state === "Cooling")) {
      // It never was on a NIC: nothing of it is kept.
      if (this.#origins.get(nameOf(row))?.kind === "new") this.#publisher.discard(row);
      this.#publisher.settleLater(row);
    }
  }

  async #conclude({ claim, outcome, open }: Course, results: readonly Result[]): Promise<ClaimOutcome> {
    const failed = results.map((each) => each.outcome).find((each) => each.kind === "failed");
    const by = results.flatMap((each) => (each.outcome.kind === "taken" ? [each.outcome.by] : []));
    if (failed === undefined && by.length === 0) {
      const rows = results.map(({ row }) => row);
      await this.#confirm(rows, results);
      if (!open.isTouched || (await this.#isHeld(claim, outcome))) {
        for (const result of results) this.#noteOrigin(result);
        const confirm = (row: Allocation): Allocation => (rows.includes(row) ? { ...row, isConfirmed: true } : row);
        const isFresh = ({ outcome: published }: Result): boolean => published.kind === "published" && published.isNew;
        const fresh = results.filter(isFresh).map(({ row }) => confirm(row));
        const confirmed = { ...outcome, held: outcome.held.map(confirm), created: outcome.created.map(confirm) };
        return this.#withAwaited({ ...confirmed, fresh });
      }
    }
    await this.#takeBack(results, failed === undefined);
    await this.undo(outcome.created.filter((row) => this.#findInherited(row) !== undefined));
    if (by.length > 0 && failed === undefined) return { kind: "taken", by };
    if (failed === undefined) throw new RegistryError(`Interface "${claim.ifName}" was released while its addresses were claimed`); // biome-ignore format: one thought
    throw failureOf(failed.error);
  }

  /** Before the answer: a row that is not confirmed was answered to no ADD, and may be undone. */
  async #confirm(rows: readonly Allocation[], results: readonly Result[]): Promise<void> {
    try {
      await this.#journal.confirm(rows);
    } catch (error) {
      await this.#takeBack(results, false);
      throw error;
    }
  }

  /** Whether the NIC still has all of them: no DEL came while the API server was asked, and nothing was undone. */
  async #isHeld({ owner }: Claim, { held }: Bound): Promise<boolean> {
    const found = (await this.#journal.findOwner(owner)).filter(({ state }) => state === "Bound");
    const isOf = (row: Allocation, each: Allocation): boolean =>
      each.containerId === row.containerId && nameOf(each) === nameOf(row);
    return held.every((row) => found.some((each) => isOf(row, each)));
  }

  #noteOrigin({ row, replaces, outcome }: Result): void {
    if (outcome.kind !== "published") return;
    const isForeign = replaces !== undefined && replaces < 0;
    // What is kept for the member it keeps; what it took over while that cooled was never its own.
    if (isForeign && (row.workload === undefined || outcome.isTakenOver)) this.#origins.set(nameOf(row), { version: row.version, kind: "taken over" });
    else if (outcome.isNew && row.workload !== undefined) this.#origins.set(nameOf(row), { version: row.version, kind: "new" }); // biome-ignore format: one thought
  }

  /** The journal first; the objects are waited for, a little, where the next attempt profits. */
  async #takeBack(results: readonly Result[], isAnswered: boolean): Promise<void> {
    for (const result of results) this.#noteOrigin(result);
    const left = await this.#forgetMissed(results);
    await this.undo(left.map(({ row }) => row));
    for (const { row, outcome } of left) {
      if (outcome.kind !== "taken") continue;
      const found = await this.#journal.findAddress(row.space, row.ip);
      // The object is somebody else's: there is nothing to wait for.
      if (found?.state === "Cooling" && found.owner === row.owner) await this.#journal.forget(found);
    }
    if (isAnswered) await atMost(EXPIRE_WAIT_MS, Promise.all(left.map(({ row }) => this.#publisher.settle(row))));
  }

  /** Rows that were made for this claim alone and never got an object go without a trace. Gives the others, and what somebody has written to. */
  async #forgetMissed(results: readonly Result[]): Promise<readonly Result[]> {
    const isForgotten = async ({ row, replaces, outcome }: Result): Promise<boolean> =>
      outcome.kind === "taken" && replaces === undefined && row.quarantine === undefined && this.#journal.forget(row);
    const forgotten = await Promise.all(results.map(isForgotten));
    return results.filter((_, index) => forgotten[index] !== true);
  }
}

/** The work's answer, or the signal's reason as soon as it is there; the work goes on. */
async function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const abort = (): void => reject(signal.reason);
  if (signal.aborted) abort();
  signal.addEventListener("abort", abort, { once: true });
  try {
    return await Promise.race([work, promise]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

function failureOf(error: unknown): unknown {
  if (!(error instanceof ApiError || error instanceof ApiUnavailable)) return error;
  return new RegistryError(`The API server does not record the address: ${messageOf(error)}`, { cause: error });
}
