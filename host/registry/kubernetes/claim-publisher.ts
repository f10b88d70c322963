/**
 * A claim in a cluster: first the journal's rows, then one object for each row, all at once. If one of them is taken
 * or fails, all are undone.
 */
import { ApiError, ApiUnavailable } from "../../kubernetes/kube-api.ts";
import { untilAborted, waitAtMost } from "../../lib/abort.ts";
import { messageOf } from "../../lib/describe.ts";
import { KeyedSerialQueue } from "../../lib/serial.ts";
import { ownerOf, type Workload } from "../../resources/member.ts";
import { type Journal, UNKNOWN_CONTAINER } from "../journal.ts";
import {
  type Allocation,
  type Claim,
  type ClaimedPart,
  type ClaimOutcome,
  type Proposal,
  RegistryError,
} from "../registry.ts";
import type { CallTerms } from "./allocation-objects.ts";
import { nameOf } from "./known-object.ts";
import type { ObjectSync, PublishOutcome } from "./object-sync.ts";

/** Time for which maintenance waits for the API server in one round: milliseconds. The work goes on after that. */
export const EXPIRE_WAIT_MS = 2_000;

/**
 * Total time for which a claim in a cluster waits for the API server: milliseconds. Shorter than the shim's 90
 * seconds.
 * @limit
 */
const CLAIM_PATIENCE_MS = 60_000;

type Bound = Extract<ClaimOutcome, { kind: "bound" }>;

/** One row of a claim, with the outcome of its publication. */
interface Result {
  readonly row: Allocation;
  readonly replaces: number | undefined;
  /** The NIC's address owner did not have the address before. */
  readonly isNewToOwner: boolean;
  /** As in {@link Bound.presumed}. */
  readonly isPresumed: boolean;
  readonly outcome: PublishOutcome | { readonly kind: "failed"; readonly error: unknown };
}

/** A claim between the journal's answer and its own. */
interface OpenClaim {
  readonly claim: Claim;
  readonly outcome: Bound;
  readonly untilMs: number;
  readonly names: ReadonlySet<string>;
  /** One of its rows was written by a DEL, a sweep or another claim's undo. */
  isTouched: boolean;
}

/** The source of a claimed row's address, for as long as the claim may be undone. */
interface Source {
  readonly version: number;
  /**
   * `new`: its address owner did not have it. `taken over`: the same, or without an owner; from a pod of another
   * node, whose address still cooled. `taken in`: the journal had lost it, or no pod is known to have been answered
   * with it, and {@link ClaimPublisher.retain} is still to come.
   */
  readonly kind: "new" | "taken over" | "taken in";
}

/**
 * A row that is published only when a probe finds the address silent: until then the object stays that of the earlier
 * pod, whose node is lost.
 */
interface Deferred {
  readonly owner: string;
  readonly workload: Workload | undefined;
  /** Version of the object that is taken over. */
  readonly replaces: number;
  /** The node of the earlier pod. */
  readonly node: string;
}

/** A row that cools, in whose place its owner may get another address. */
interface GivenUp {
  /** Version of the row that was given up. */
  readonly version: number;
  readonly cooling: Allocation;
}

export class ClaimPublisher {
  readonly #journal: Journal;
  readonly #objectSync: ObjectSync;
  readonly #isLost: (row: Allocation) => boolean;
  /** The claims of one owner run one by one: an ADD waits for the prefetch of its addresses. */
  readonly #owners = new KeyedSerialQueue();
  readonly #sources = new Map<string, Source>();
  readonly #open = new Set<OpenClaim>();
  readonly #deferred = new Map<string, Deferred>();
  readonly #givenUp = new Map<string, GivenUp>();

  constructor(journal: Journal, objectSync: ObjectSync, isLost: (row: Allocation) => boolean = () => false) {
    this.#journal = journal;
    this.#objectSync = objectSync;
    this.#isLost = isLost;
  }

  /**
   * Rejects with RegistryError, or with the signal's reason. In that case, and if an address is taken, the whole
   * claim is undone.
   */
  claim(claim: Claim, signal: AbortSignal | undefined): Promise<ClaimOutcome> {
    const begun = Promise.withResolvers<void>();
    const claimed = this.#owners.run(claim.owner, () => {
      begun.resolve();
      return this.#claim(claim, signal);
    });
    // A claim that has begun handles the signal itself, and undoes what it wrote.
    return signal === undefined ? claimed : untilAborted(begun.promise, signal).then(() => claimed);
  }

  /**
   * The address of the row was probed and is silent: publishes the row if that was deferred. Rejects with
   * RegistryError if the object changed.
   */
  async trust(row: Allocation): Promise<void> {
    const deferred = this.#findDeferred(row);
    if (deferred === undefined) return;
    const terms = { lane: "pod" as const, patienceMs: CLAIM_PATIENCE_MS };
    const owned = { ...row, workload: deferred.workload };
    const retain = (): Promise<void> => this.#journal.retain([owned]);
    const outcome = await this.#objectSync.publish(owned, terms, deferred.replaces, retain).catch((error: unknown) => {
      throw failureOf(error);
    });
    if (outcome.kind === "taken")
      throw new RegistryError(
        `Address ${nameOf(row)} was claimed by another pod, or by its node again, while it was probed`,
      );
    this.#deferred.delete(nameOf(row));
    await this.#journal.confirm([row]);
  }

  /** `superseded`: those in whose place the member wants other addresses. */
  async undo(given: readonly Allocation[], superseded: readonly Allocation[] = []): Promise<void> {
    const created: Allocation[] = [];
    // The object of a row that was never published is still the earlier pod's: the row is forgotten, and no object
    // changes.
    for (const row of given) {
      const isDeferred = this.#findDeferred(row) !== undefined;
      if (isDeferred) this.#deferred.delete(nameOf(row));
      if (!(isDeferred && (await this.#journal.forget(row)))) created.push(row);
    }
    const sourceOf = (row: Allocation): Source["kind"] | undefined => {
      const source = this.#sources.get(nameOf(row));
      return source?.version === row.version ? source.kind : undefined;
    };
    const isSuperseded = (row: Allocation): boolean => superseded.some((each) => nameOf(each) === nameOf(row));
    const isForeign = (row: Allocation): boolean => sourceOf(row) === "new" || sourceOf(row) === "taken over";
    await this.#journal.disown(created.filter(isForeign));
    const isGivenUp = (row: Allocation): boolean => sourceOf(row) === "taken in" && isSuperseded(row);
    for (const row of created.filter(isGivenUp)) await this.#giveUp(row);
    // A NIC may have had it until just now.
    const isUsed = (row: Allocation): boolean => sourceOf(row) === "taken over";
    for (const row of created.filter(isUsed)) await this.#journal.collect(row);
    await this.#journal.undo(created.filter((row) => !isUsed(row) && !isGivenUp(row)));
    for (const row of created) {
      this.noteWritten(row);
      this.#objectSync.syncLater(row);
    }
  }

  /** The row cools, and its object stays as it is: whether the member gets another address is not known yet. */
  async #giveUp(row: Allocation): Promise<void> {
    const cooling = await this.#journal.collect(row);
    if (cooling?.state !== "Cooling") return;
    this.#objectSync.suspend(row);
    this.#givenUp.set(nameOf(row), { version: row.version, cooling });
  }

  /**
   * The ADD that has undone `superseded` has ended. `isReplaced`: their member has others in their place, and they
   * are released; otherwise they are retained.
   */
  async settleSuperseded(superseded: readonly Allocation[], isReplaced: boolean): Promise<void> {
    const found = superseded.flatMap((row) => {
      const givenUp = this.#givenUp.get(nameOf(row));
      return givenUp?.version === row.version ? [givenUp.cooling] : [];
    });
    try {
      if (isReplaced) await this.#journal.disown(found);
    } finally {
      for (const row of found) {
        this.#givenUp.delete(nameOf(row));
        this.#objectSync.continueSync(row);
      }
    }
  }

  /** The ADD's search has ended with these: its address owner has no other ones. Precedes the answer. */
  async retain(rows: readonly Allocation[]): Promise<void> {
    await this.#journal.retain(rows);
    await this.#journal.confirm(rows);
    for (const row of rows) if (this.#isInDoubt(row)) this.#sources.delete(nameOf(row));
  }

  /** The row was written by a call other than its claim, which must not undo it. */
  noteWritten(row: Allocation): void {
    const name = nameOf(row);
    this.#sources.delete(name);
    for (const open of this.#open) if (open.names.has(name)) open.isTouched = true;
  }

  /** The journal undid these claims in another call. */
  noteUndone(rows: readonly Allocation[]): void {
    for (const row of rows) if (this.#findDeferred(row) !== undefined) this.#deferred.delete(nameOf(row));
  }

  async #claim(claim: Claim, signal: AbortSignal | undefined): Promise<ClaimOutcome> {
    signal?.throwIfAborted();
    const untilMs = performance.now() + CLAIM_PATIENCE_MS;
    const replaced = await this.#findReplaced(claim);
    const outcome = await this.#journal.claim(claim);
    if (outcome.kind !== "bound") return outcome;
    // Registered at once, so that no write to the rows is missed.
    const open: OpenClaim = { claim, outcome, untilMs, names: new Set(outcome.held.map(nameOf)), isTouched: false };
    this.#open.add(open);
    this.#noteAdopted(claim, outcome);
    try {
      for (const row of replaced) this.#objectSync.noteFormerOwner(row, row.owner);
      return await this.#publish(open, signal);
    } finally {
      this.#open.delete(open);
    }
  }

  async #publish(open: OpenClaim, signal: AbortSignal | undefined): Promise<ClaimOutcome> {
    const { claim, outcome } = open;
    await this.#syncReplaced(claim);
    await this.#settle(open, signal);
    const isUnknown = (row: Allocation): boolean => row.isConfirmed !== true || this.#isLost(row);
    const unknown = outcome.held.filter((row) => isUnknown(row) && !outcome.created.includes(row));
    this.#noteDeferred(claim, outcome);
    const rows = [...outcome.created, ...unknown].filter((row) => this.#findDeferred(row) === undefined);
    if (rows.length === 0) return this.#withPredecessors(this.#withAdopted(claim, { ...outcome, fresh: [] }));
    return this.#conclude(open, await Promise.all(rows.map((row) => this.#publishRow(row, open, signal))));
  }

  /**
   * Writes the rows that the journal had lost and taken in before the claim is answered: a write of the agent that
   * had the journal may still be carried out (sandbox-restart). If it cannot be written, the claim is undone.
   */
  async #settle({ outcome, untilMs }: OpenClaim, signal: AbortSignal | undefined): Promise<void> {
    const { held, created } = outcome;
    const inDoubt = held.filter(
      (row) => row.isConfirmed === true && !created.includes(row) && this.#objectSync.isInDoubt(row),
    );
    try {
      for (const row of inDoubt) {
        const published = this.#objectSync.publish(row, termsUntil(untilMs, signal), undefined);
        await (signal === undefined ? published : untilAborted(published, signal));
      }
    } catch (error) {
      await this.undo(created);
      throw failureOf(error);
    }
  }

  async #publishRow(row: Allocation, { claim, untilMs }: OpenClaim, signal: AbortSignal | undefined): Promise<Result> {
    const replaces = findProposal(claim, row)?.replaces;
    const terms = termsUntil(untilMs, signal);
    const owner = findOwner(claim, row);
    let workload = row.workload ?? (owner && ownerOf(owner, true));
    let isNewToOwner = owner !== undefined && row.workload === undefined && row.isConfirmed !== true;
    const published = { ...row, workload };
    // Recorded before the object is written: whatever becomes of the claim, the address is retained again.
    const onTakeOver = async (isFresh: boolean): Promise<void> => {
      if (!isNewToOwner) return;
      workload = owner && ownerOf(owner, isFresh);
      await this.#journal.retain([{ ...row, workload }]);
      isNewToOwner = false;
    };
    try {
      const publishing = this.#objectSync.publish(published, terms, replaces, onTakeOver);
      const outcome = await (signal === undefined ? publishing : untilAborted(publishing, signal));
      const isPresumed =
        claim.isMigrationTarget === true &&
        workload !== undefined &&
        !isNewToOwner &&
        !(outcome.kind === "published" && outcome.isShared);
      return { row: isNewToOwner ? row : { ...row, workload }, replaces, isNewToOwner, isPresumed, outcome };
    } catch (error) {
      return { row, replaces, isNewToOwner, isPresumed: false, outcome: { kind: "failed", error } };
    }
  }

  /** A claim of an address that an earlier pod on a lost node has is not published before the address was probed. */
  #noteDeferred(claim: Claim, { created }: Bound): void {
    for (const row of created) {
      const { needsProbe, replaces } = findProposal(claim, row) ?? {};
      const node = this.#objectSync.findPredecessorNode(row);
      if (needsProbe === true && replaces !== undefined && replaces < 0 && node !== undefined)
        this.#deferred.set(nameOf(row), { owner: claim.owner, workload: findOwner(claim, row), replaces, node });
      else this.#deferred.delete(nameOf(row));
    }
  }

  #findDeferred(row: Allocation): Deferred | undefined {
    const found = row.quarantine === undefined ? undefined : this.#deferred.get(nameOf(row));
    return found?.owner === row.owner ? found : undefined;
  }

  /**
   * Adds what the journal had lost and taken in: whether an ADD was answered with it is unknown. If it was, the owner
   * has no other address, and keeps this one.
   */
  #withAdopted(claim: Claim, outcome: Bound): Bound {
    const { held, fresh = [] } = outcome;
    const { created } = outcome;
    const isOther = (row: Allocation): boolean => ![...created, ...fresh].some((each) => nameOf(each) === nameOf(row));
    // The claim ahead of the ADD ended before it had looked for what is retained.
    const isUndecided = (row: Allocation): boolean => row.workload === undefined && isOther(row);
    const isAdopted = (row: Allocation): boolean =>
      findOwner(claim, row) !== undefined && (this.#isInDoubt(row) || isUndecided(row));
    const adopted = held.filter(isAdopted);
    for (const row of adopted.filter((each) => this.#isInDoubt(each))) {
      const kind = this.#sources.get(nameOf(row))?.kind ?? "taken in";
      this.#sources.set(nameOf(row), { version: row.version, kind });
    }
    return { ...outcome, fresh: [...fresh, ...adopted] };
  }

  #isInDoubt(row: Allocation): boolean {
    const kind = this.#sources.get(nameOf(row))?.kind;
    return kind === "taken in" || row.workload?.isFresh === true;
  }

  /** The row names its container from now on, whatever becomes of the claim. */
  #noteAdopted(claim: Claim, { held, previous }: Bound): void {
    for (const row of held) {
      const before = previous.find((each) => each.containerId === UNKNOWN_CONTAINER && nameOf(each) === nameOf(row));
      if (before === undefined || findOwner(claim, row) === undefined) continue;
      this.#sources.set(nameOf(row), { version: row.version, kind: "taken in" });
    }
  }

  #withPredecessors(outcome: Bound): Bound {
    const complete = (row: Allocation): Allocation => {
      const deferred = this.#findDeferred(row);
      return deferred === undefined ? row : { ...row, predecessorNode: deferred.node };
    };
    return { ...outcome, held: outcome.held.map(complete), created: outcome.created.map(complete) };
  }

  /** Returns the rows of this node that the claim is to take over, as they are before. */
  async #findReplaced({ proposals }: Claim): Promise<readonly Allocation[]> {
    const found: Allocation[] = [];
    for (const { space, ip, replaces } of proposals) {
      if (replaces === undefined || replaces < 0) continue;
      const row = await this.#journal.findAddress(space, ip);
      if (row?.version === replaces) found.push(row);
    }
    return found;
  }

  /** Syncs the addresses that were claimed ahead of the ADD and gave way to requested ones. */
  async #syncReplaced({ owner, proposals }: Claim): Promise<void> {
    if (!proposals.some(({ requested }) => requested === true)) return;
    const own = await this.#journal.findOwner(owner);
    for (const row of own.filter(({ state }) => state === "Cooling")) {
      // It never was on a NIC, so it is not retained.
      if (this.#sources.get(nameOf(row))?.kind === "new") await this.#journal.disown([row]);
      this.#objectSync.syncLater(row);
    }
  }

  async #conclude(open: OpenClaim, results: readonly Result[]): Promise<ClaimOutcome> {
    const { claim, outcome } = open;
    const failed = results.map((each) => each.outcome).find((each) => each.kind === "failed");
    const by = results.flatMap((each) => (each.outcome.kind === "taken" ? [each.outcome.by] : []));
    if (failed === undefined && by.length === 0) {
      const bound = await this.#settleResults(open, results);
      if (!open.isTouched || (await this.#isHeld(claim, outcome)))
        return this.#withPredecessors(this.#withAdopted(claim, bound));
    }
    const published = results.filter((each) => each.outcome.kind === "published");
    const isTaken = failed === undefined && by.length > 0;
    const isKept = claim.keepsRest === true && isTaken && published.length > 0 && !open.isTouched;
    const undone = isKept ? results.filter((each) => !published.includes(each)) : results;
    await this.#undoAll(undone, failed === undefined);
    await this.undo(outcome.created.filter((row) => this.#findDeferred(row) !== undefined));
    if (failed !== undefined) throw failureOf(failed.error);
    if (isKept) return { kind: "taken", by, kept: await this.#keep(open, published) };
    if (by.length > 0) return { kind: "taken", by };
    throw new RegistryError(`Interface "${claim.ifName}" was released while its addresses were claimed`);
  }

  /** All that was published is undone if the ADD fails, also what an earlier agent claimed and never answered. */
  async #keep(open: OpenClaim, published: readonly Result[]): Promise<ClaimedPart> {
    const { created, previous, fresh, presumed = [] } = await this.#settleResults(open, published);
    const isOther = ({ row }: Result): boolean => !created.some((each) => nameOf(each) === nameOf(row));
    const all = [...created, ...published.filter(isOther).map(({ row }) => row)];
    return { created: all, previous, presumed, ...(fresh === undefined ? {} : { fresh }) };
  }

  /** Returns what the results have of the claim, which is confirmed as far as its address owner had it before. */
  async #settleResults({ outcome }: OpenClaim, results: readonly Result[]): Promise<Bound> {
    const rows = results
      .filter(({ isNewToOwner, isPresumed }) => !isNewToOwner && !isPresumed)
      .map(({ row }) => ({ ...row, isConfirmed: true }));
    await this.#confirm(rows, results);
    for (const result of results) this.#noteSource(result);
    const fresh = results.filter(isFresh).map(({ row }) => row);
    const presumed = results.filter(({ isPresumed }) => isPresumed).map(({ row }) => row);
    const complete = (row: Allocation): Allocation =>
      [...rows, ...presumed].find((each) => nameOf(each) === nameOf(row)) ?? row;
    const isOf = (all: readonly Allocation[], row: Allocation): boolean =>
      all.some((each) => nameOf(each) === nameOf(row));
    const own = results.map(({ row }) => row);
    const created = outcome.created.filter((row) => isOf(own, row) || this.#findDeferred(row) !== undefined);
    // Rows that an earlier agent claimed and never answered are undone like those that this claim wrote.
    const unanswered = results.filter((each) => each.isNewToOwner || each.isPresumed).map(({ row }) => row);
    const all = [...created, ...unanswered.filter((row) => !isOf(outcome.created, row))].map(complete);
    const bound = { ...outcome, held: outcome.held.map(complete), created: all, fresh: fresh.map(complete) };
    return presumed.length > 0 ? { ...bound, presumed } : bound;
  }

  /** Precedes the answer: a row that is not confirmed was answered to no ADD, and may be undone. */
  async #confirm(rows: readonly Allocation[], results: readonly Result[]): Promise<void> {
    try {
      await this.#journal.confirm(rows);
    } catch (error) {
      await this.#undoAll(results, false);
      throw error;
    }
  }

  /** Returns whether the NIC still has all of its addresses: no DEL and no undo has come meanwhile. */
  async #isHeld({ owner }: Claim, { held }: Bound): Promise<boolean> {
    const found = (await this.#journal.findOwner(owner)).filter(({ state }) => state === "Bound");
    const isSame = (row: Allocation, each: Allocation): boolean =>
      each.containerId === row.containerId && nameOf(each) === nameOf(row);
    return held.every((row) => found.some((each) => isSame(row, each)));
  }

  #noteSource({ row, replaces, isNewToOwner, outcome }: Result): void {
    if (outcome.kind !== "published") return;
    if (row.workload?.isFresh === true) this.#sources.set(nameOf(row), { version: row.version, kind: "taken in" });
    if (row.workload !== undefined) return;
    // An earlier claim of the same ADD has taken it over.
    const before = this.#sources.get(nameOf(row));
    if (before?.version === row.version && before.kind === "taken over") return;
    const kind = replaces !== undefined && replaces < 0 ? "taken over" : "new";
    if (kind === "taken over" || isNewToOwner) this.#sources.set(nameOf(row), { version: row.version, kind });
  }

  /**
   * Undoes the journal's rows first. With `isAnswered` waits a little for the objects, because the next attempt may
   * need them.
   */
  async #undoAll(results: readonly Result[], isAnswered: boolean): Promise<void> {
    for (const result of results) this.#noteSource(result);
    const left = await this.#forgetTaken(results);
    await this.undo(left.map(({ row }) => row));
    for (const { row, outcome } of left) {
      if (outcome.kind !== "taken") continue;
      const found = await this.#journal.findAddress(row.space, row.ip);
      // The object is another pod's, so there is nothing to sync.
      if (found?.state === "Cooling" && found.owner === row.owner) await this.#forget(found);
    }
    if (isAnswered) await waitAtMost(Promise.all(left.map(({ row }) => this.#objectSync.sync(row))), EXPIRE_WAIT_MS);
  }

  /** Forgets a row whose object is another pod's. Returns whether it had not been written meanwhile. */
  async #forget(row: Allocation): Promise<boolean> {
    const isForgotten = await this.#journal.forget(row, true);
    if (isForgotten) this.#objectSync.noteTaken(row);
    return isForgotten;
  }

  /**
   * Forgets rows that were new in this claim and whose objects are taken. Returns the other rows, and those that were
   * written meanwhile.
   */
  async #forgetTaken(results: readonly Result[]): Promise<readonly Result[]> {
    const isForgotten = async ({ row, replaces, outcome }: Result): Promise<boolean> =>
      outcome.kind === "taken" && replaces === undefined && row.quarantine === undefined && this.#forget(row);
    const forgotten = await Promise.all(results.map(isForgotten));
    return results.filter((_, index) => forgotten[index] !== true);
  }
}

function termsUntil(untilMs: number, signal: AbortSignal | undefined): CallTerms {
  const patienceMs = Math.max(1, untilMs - performance.now());
  return { lane: "pod", patienceMs, ...(signal === undefined ? {} : { signal }) };
}

/** Returns the address owner of the row's NIC. */
function findOwner({ proposals, workload }: Claim, { ifName }: Allocation): Workload | undefined {
  return proposals.find((each) => each.ifName === ifName)?.workload ?? workload;
}

/** The claim's answer must wait until it is known that the owner has no other address. */
function isFresh({ isNewToOwner, row, outcome }: Result): boolean {
  return isNewToOwner || (row.workload === undefined && outcome.kind === "published" && outcome.isNew);
}

function findProposal({ proposals }: Claim, row: Allocation): Proposal | undefined {
  return proposals.find((each) => nameOf(each) === nameOf(row));
}

function failureOf(error: unknown): unknown {
  if (!(error instanceof ApiError || error instanceof ApiUnavailable)) return error;
  return new RegistryError(`The API server did not record the address: ${messageOf(error)}`, { cause: error });
}
