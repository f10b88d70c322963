/**
 * A claim in a cluster: first the journal's rows, then one object for each row, all at once. If one of them is taken
 * or fails, all are undone.
 */
import { randomUUID } from "node:crypto";
import type { Proposal } from "../../ipam/pick.ts";
import { ApiError, ApiUnavailable } from "../../kubernetes/kube-api.ts";
import { untilAborted, waitAtMost } from "../../lib/abort.ts";
import { messageOf } from "../../lib/describe.ts";
import { KeyedSerialQueue } from "../../lib/serial.ts";
import type { Workload } from "../../resources/member.ts";
import { claimAfter, isNewClaim, numberOf, renewClaim } from "../claims.ts";
import type { Journal } from "../journal.ts";
import {
  type Allocation,
  type Bound,
  type Claim,
  type ClaimedPart,
  type ClaimOutcome,
  type PublishOutcome,
  RegistryError,
} from "../registry.ts";
import type { CallTerms } from "./allocation-objects.ts";
import { nameOf } from "./known-object.ts";
import type { LostObserver, ObjectSync } from "./object-sync.ts";

/** Time for which maintenance waits for the API server in one round: milliseconds. The work goes on after that. */
export const EXPIRE_WAIT_MS = 2_000;

/**
 * Total time for which a claim in a cluster waits for the API server: milliseconds. Shorter than the shim's 90
 * seconds.
 * @limit
 */
const CLAIM_PATIENCE_MS = 60_000;

/** One row of a claim, with the outcome of its publication. */
interface Result {
  readonly row: Allocation;
  readonly replaces: number | undefined;
  /** As in {@link ClaimOutcome}. */
  readonly isOpen: boolean;
  readonly outcome: PublishOutcome | { readonly kind: "failed"; readonly error: unknown };
}

/** A claim between the journal's answer and its own. */
interface JournalClaim {
  readonly claim: Claim;
  readonly outcome: Bound;
  readonly untilMs: number;
}

/**
 * A row that is published only when a probe finds the address silent: until then the object stays that of the earlier
 * pod, whose node is lost.
 */
interface ToProbe {
  readonly owner: string;
  readonly workload: Workload | undefined;
  /** Version of the object that is taken over. */
  readonly replaces: number;
  /** The node of the earlier pod. */
  readonly node: string;
}

export class ClaimPublisher {
  readonly #journal: Journal;
  readonly #objectSync: ObjectSync;
  readonly #lost: Pick<LostObserver, "isLost">;
  /** The claims of one owner run one by one: an ADD waits for the prefetch of its addresses. */
  readonly #owners = new KeyedSerialQueue();
  readonly #toProbe = new Map<string, ToProbe>();

  constructor(journal: Journal, objectSync: ObjectSync, lost: Pick<LostObserver, "isLost">) {
    this.#journal = journal;
    this.#objectSync = objectSync;
    this.#lost = lost;
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
   * The address of the row was probed and is silent, which the journal records first: a DEL from here on releases the
   * row to its owner. Then publishes it, if it was not. Returns undefined if the row has changed. Rejects with
   * RegistryError if the object has.
   */
  async trust(row: Allocation): Promise<Allocation | undefined> {
    const toProbe = this.#findToProbe(row);
    if (toProbe === undefined) return this.#journal.endQuarantine(row);
    const { workload, replaces } = toProbe;
    await this.#journal.record([{ ...row, workload }]);
    const trusted = await this.#journal.endQuarantine(row);
    if (trusted === undefined) return undefined;
    this.#toProbe.delete(nameOf(row));
    try {
      return await this.#publishProbed({ ...trusted, quarantine: row.quarantine }, replaces);
    } catch (error) {
      await this.undo([trusted]);
      throw failureOf(error);
    }
  }

  async #publishProbed(probed: Allocation, replaces: number): Promise<Allocation> {
    const terms = { lane: "pod" as const, isAsked: true, patienceMs: CLAIM_PATIENCE_MS };
    let row = probed;
    const outcome = await this.#publish(probed, { terms, replaces }, (taken) => {
      row = taken;
    });
    if (outcome.kind === "taken")
      throw new RegistryError(
        `Address ${nameOf(row)} was claimed by another pod, or by its node again, while it was probed`,
      );
    const answered = { ...row, quarantine: undefined, isConfirmed: true };
    await this.#journal.record([answered]);
    return answered;
  }

  /** An address that the owner did not have before the claim is not retained for it. */
  async undo(given: readonly Allocation[]): Promise<void> {
    const published: Allocation[] = [];
    // The object of a row that was never published is still the earlier pod's: the row is forgotten, and no object
    // changes.
    for (const row of given) {
      const isToProbe = this.#findToProbe(row) !== undefined;
      if (isToProbe) this.#toProbe.delete(nameOf(row));
      if (!(isToProbe && (await this.#journal.forget(row)))) published.push(row);
    }
    await this.#journal.record(published.map((row) => ({ ...row, isConfirmed: false })));
    await this.#journal.undo(published);
    for (const row of published) {
      this.#objectSync.noteUndone(row);
      this.#objectSync.syncLater(row);
    }
  }

  /** The journal undid these claims in another call. */
  noteUndone(rows: readonly Allocation[]): void {
    for (const row of rows) if (this.#findToProbe(row) !== undefined) this.#toProbe.delete(nameOf(row));
  }

  async #claim(claim: Claim, signal: AbortSignal | undefined): Promise<ClaimOutcome> {
    signal?.throwIfAborted();
    const untilMs = performance.now() + CLAIM_PATIENCE_MS;
    const outcome = await this.#journal.claim(claim);
    if (outcome.kind !== "bound") return outcome;
    if (claim.proposals.some(({ requested }) => requested === true)) await this.#syncReplaced(claim);
    const isUnpublished = (row: Allocation): boolean =>
      row.isConfirmed !== true || this.#lost.isLost?.(row) === true || this.#objectSync.isSent(row);
    const left = outcome.held.filter((row) => !outcome.created.includes(row) && isUnpublished(row));
    this.#noteToProbe(claim, outcome);
    const rows = [...outcome.created, ...left].filter((row) => this.#findToProbe(row) === undefined);
    const open = { claim, outcome, untilMs };
    if (rows.length === 0) return this.#withPredecessors(complete(open, []));
    return this.#conclude(open, await Promise.all(rows.map((row) => this.#publishRow(row, open, signal))));
  }

  async #publishRow(given: Allocation, { claim, untilMs }: JournalClaim, signal: AbortSignal | undefined) {
    const replaces = findProposal(claim, given)?.replaces;
    const terms = termsUntil(untilMs, signal);
    const owner = findOwner(claim, given);
    let row = given;
    try {
      row = await this.#renew(given);
      const wanted = { ...row, workload: row.workload ?? owner };
      const publishing = this.#publish(wanted, { terms, replaces }, (taken) => {
        row = taken;
      });
      const outcome = await (signal === undefined ? publishing : untilAborted(publishing, signal));
      const isShared = outcome.kind === "published" && outcome.isShared === true;
      const mayComeLater = claim.isMigrationTarget === true && !isShared && row.isConfirmed !== true;
      return { row, replaces, isOpen: isOpen(row, owner) || (owner !== undefined && mayComeLater), outcome };
    } catch (error) {
      return { row, replaces, isOpen: isOpen(row, owner), outcome: { kind: "failed" as const, error } };
    }
  }

  /**
   * Publishes the row. `onTakeOver` is told what is written over the object of an earlier pod, which the journal
   * records first: whatever becomes of the claim, the address is retained again. A claim that was released meanwhile
   * takes nothing over.
   */
  #publish(
    row: Allocation,
    { terms, replaces }: { readonly terms: CallTerms; readonly replaces: number | undefined },
    onTakeOver: (taken: Allocation) => void,
  ): Promise<PublishOutcome> {
    return this.#objectSync.publish(row, terms, replaces, async ({ number }) => {
      const taken = { ...row, claim: claimAfter(row, number) };
      onTakeOver(taken);
      const [recorded] = await this.#journal.record([taken]);
      if (recorded === undefined)
        throw new RegistryError(`Interface "${row.ifName}" was released while its addresses were claimed`);
      return taken;
    });
  }

  /** A NIC that has its address again has it by another claim if a write under the old one may be carried out yet. */
  async #renew(row: Allocation): Promise<Allocation> {
    if (isNewClaim(row) || !this.#objectSync.isSent(row)) return row;
    const [renewed] = await this.#journal.record([{ ...row, claim: renewClaim(row, randomUUID()) }]);
    return renewed ?? row;
  }

  /** A claim of an address that an earlier pod on a lost node has is not published before the address was probed. */
  #noteToProbe(claim: Claim, { created }: Bound): void {
    if (this.#toProbe.size === 0 && !claim.proposals.some(({ needsProbe }) => needsProbe === true)) return;
    for (const row of created) {
      const { needsProbe, replaces } = findProposal(claim, row) ?? {};
      const node = this.#objectSync.findPredecessorNode(row);
      if (needsProbe === true && replaces !== undefined && replaces < 0 && node !== undefined)
        this.#toProbe.set(nameOf(row), { owner: claim.owner, workload: findOwner(claim, row), replaces, node });
      else this.#toProbe.delete(nameOf(row));
    }
  }

  #findToProbe(row: Allocation): ToProbe | undefined {
    const found = row.quarantine === undefined ? undefined : this.#toProbe.get(nameOf(row));
    return found?.owner === row.owner ? found : undefined;
  }

  #withPredecessors(outcome: Bound): Bound {
    if (this.#toProbe.size === 0) return outcome;
    const withNode = (row: Allocation): Allocation => {
      const toProbe = this.#findToProbe(row);
      return toProbe === undefined ? row : { ...row, predecessorNode: toProbe.node };
    };
    return { ...outcome, held: outcome.held.map(withNode), created: outcome.created.map(withNode) };
  }

  /** Syncs the addresses that were claimed ahead of the ADD and gave way to requested ones. */
  async #syncReplaced({ owner }: Claim): Promise<void> {
    const own = await this.#journal.findOwner(owner);
    for (const row of own.filter(({ state }) => state === "Cooling")) this.#objectSync.syncLater(row);
  }

  async #conclude(open: JournalClaim, results: readonly Result[]): Promise<ClaimOutcome> {
    const { claim, outcome } = open;
    const published = results.filter((each) => each.outcome.kind === "published");
    const by = results.flatMap((each) => (each.outcome.kind === "taken" ? [each.outcome.by] : []));
    const isWhole = published.length === results.length;
    const hasFailed = published.length + by.length < results.length;
    const isKept = isWhole || (claim.keepsRest === true && !hasFailed && published.length > 0);
    const confirmed = isKept ? await this.#confirm(published, results) : undefined;
    if (confirmed !== undefined && isWhole) return this.#withPredecessors(complete(open, confirmed));
    await this.#undoAll(
      confirmed === undefined ? results : results.filter((each) => !published.includes(each)),
      !hasFailed,
    );
    await this.undo(outcome.created.filter((row) => this.#findToProbe(row) !== undefined));
    for (const each of results) if (each.outcome.kind === "failed") throw failureOf(each.outcome.error);
    if (confirmed !== undefined) return { kind: "taken", by, kept: partOf(complete(open, confirmed), confirmed) };
    if (by.length > 0) return { kind: "taken", by };
    throw new RegistryError(`Interface "${claim.ifName}" was released while its addresses were claimed`);
  }

  /**
   * Precedes the answer: a row that is not confirmed was answered to no ADD, and may be undone. Returns what was
   * published as it is recorded then; undefined if a row is not as the claim wrote it, because a DEL, a sweep or an
   * undo has come meanwhile.
   */
  async #confirm(published: readonly Result[], results: readonly Result[]): Promise<readonly Result[] | undefined> {
    const confirmed = published.map((each) =>
      each.isOpen ? each : { ...each, row: { ...each.row, isConfirmed: true } },
    );
    try {
      const recorded = await this.#journal.record(confirmed.map(({ row }) => row));
      return recorded.length === confirmed.length ? confirmed : undefined;
    } catch (error) {
      await this.#undoAll(results, false);
      throw error;
    }
  }

  /**
   * Undoes the journal's rows first. With `isAnswered` waits a little for the objects, because the next attempt may
   * need them.
   */
  async #undoAll(results: readonly Result[], isAnswered: boolean): Promise<void> {
    const left = await this.#forgetTaken(results);
    await this.undo(left.map(({ row }) => row));
    for (const { row, outcome } of left) {
      if (outcome.kind !== "taken") continue;
      const found = await this.#journal.findAddress(row.space, row.ip);
      // The object is another pod's, so there is nothing to sync.
      if (found?.state === "Cooling" && found.owner === row.owner) await this.#journal.forget(found, true);
    }
    if (isAnswered) await waitAtMost(Promise.all(left.map(({ row }) => this.#objectSync.sync(row))), EXPIRE_WAIT_MS);
  }

  /**
   * Forgets rows that were new in this claim and whose objects are taken. Returns the other rows, and those that were
   * written meanwhile.
   */
  async #forgetTaken(results: readonly Result[]): Promise<readonly Result[]> {
    const isForgotten = async ({ row, replaces, outcome }: Result): Promise<boolean> =>
      outcome.kind === "taken" &&
      replaces === undefined &&
      row.quarantine === undefined &&
      (await this.#journal.forget(row, true));
    const forgotten = await Promise.all(results.map(isForgotten));
    return results.filter((_, index) => forgotten[index] !== true);
  }
}

/**
 * Returns what the published rows have of the claim. Rows that an earlier agent claimed and never answered are undone
 * like those that this claim wrote.
 */
function complete({ claim, outcome }: JournalClaim, published: readonly Result[]): Bound {
  const results = new Map(published.map((each) => [nameOf(each.row), each]));
  const written = (row: Allocation): Allocation => results.get(nameOf(row))?.row ?? row;
  const isCreated = (row: Allocation): boolean => outcome.created.some((each) => nameOf(each) === nameOf(row));
  const unanswered = published.filter(({ row, isOpen }) => isOpen && row.isConfirmed !== true && !isCreated(row));
  const created = [...outcome.created.map(written), ...unanswered.map(({ row }) => row)];
  const held = outcome.held.map(written);
  const added = published.filter(isNewObject).map(({ row }) => row);
  // A row that is to be probed first is not the owner's yet.
  const isOpenRow = (row: Allocation): boolean =>
    results.get(nameOf(row))?.isOpen ?? (!isCreated(row) && isOpen(row, findOwner(claim, row)));
  const hasOwner = claim.workload !== undefined || claim.proposals.some(({ workload }) => workload !== undefined);
  const rows = hasOwner ? new Map([...held, ...created].map((row) => [nameOf(row), row])) : undefined;
  return { ...outcome, held, created, added, open: [...(rows?.values() ?? [])].filter(isOpenRow) };
}

/** All that was published is undone if the ADD fails, also what an earlier agent claimed and never answered. */
function partOf({ previous, added = [], open = [] }: Bound, published: readonly Result[]): ClaimedPart {
  const created = published.map(({ row }) => row);
  const isKept = (row: Allocation): boolean => created.some((each) => nameOf(each) === nameOf(row));
  return { created, previous, added, open: open.filter(isKept) };
}

function termsUntil(untilMs: number, signal: AbortSignal | undefined): CallTerms {
  const patienceMs = Math.max(1, untilMs - performance.now());
  return { lane: "pod", isAsked: true, patienceMs, signal };
}

/** Returns the address owner of the row's NIC. */
function findOwner({ proposals, workload }: Claim, { ifName }: Allocation): Workload | undefined {
  return proposals.find((each) => each.ifName === ifName)?.workload ?? workload;
}

/**
 * Returns whether the claim's answer must wait until the owner's other addresses are read: the row is not known as its
 * own, or was claimed before that.
 */
function isOpen(row: Allocation, owner: Workload | undefined): boolean {
  return owner !== undefined && (row.workload === undefined || numberOf(row) === 0);
}

/** Returns whether the API server had no object of the address. */
function isNewObject({ outcome }: Result): boolean {
  return outcome.kind === "published" && outcome.isNew;
}

function findProposal({ proposals }: Claim, row: Allocation): Proposal | undefined {
  return proposals.find((each) => nameOf(each) === nameOf(row));
}

function failureOf(error: unknown): unknown {
  if (!(error instanceof ApiError || error instanceof ApiUnavailable)) return error;
  return new RegistryError(`The API server did not record the address: ${messageOf(error)}`, { cause: error });
}
