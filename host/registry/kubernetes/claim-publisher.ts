/**
 * A claim in a cluster: first the journal's rows, then one object for each row, all at once. If one of them is taken
 * or fails, all are undone.
 */
import { randomUUID } from "node:crypto";
import { ApiError, ApiUnavailable } from "../../kubernetes/kube-api.ts";
import { untilAborted, waitAtMost } from "../../lib/abort.ts";
import { messageOf } from "../../lib/describe.ts";
import { KeyedSerialQueue } from "../../lib/serial.ts";
import type { Workload } from "../../resources/member.ts";
import { isNewClaim, numberOf, renewClaim } from "../claims.ts";
import type { Journal } from "../journal.ts";
import {
  type Allocation,
  type Bound,
  type Claim,
  type ClaimOutcome,
  type PublishOutcome,
  RegistryError,
} from "../registry.ts";
import type { CallTerms } from "./allocation-objects.ts";
import { nameOf } from "./known-object.ts";
import type { LostObserver, ObjectSync, Publication } from "./object-sync.ts";

/** Time for which maintenance waits for the API server in one round: milliseconds. The work goes on after that. */
export const EXPIRE_WAIT_MS = 2_000;

/**
 * Total time for which a claim in a cluster waits for the API server: milliseconds. Shorter than the shim's 90
 * seconds.
 * @limit
 */
const CLAIM_PATIENCE_MS = 60_000;

/** One row of a claim, from the journal's answer to the claim's. */
interface Part extends Publication {
  /** Of the claim's NIC. */
  readonly isHeld: boolean;
  readonly isCreated: boolean;
  readonly toProbe: ToProbe | undefined;
  /** As in {@link ClaimOutcome}. */
  isOpen: boolean;
  /** Of its publication; undefined: it is not published by this claim. */
  outcome: PublishOutcome | { readonly kind: "failed"; readonly error: unknown } | undefined;
}

/**
 * A row that is published only when a probe finds the address silent: until then the object stays that of the earlier
 * pod, whose node is lost.
 */
interface ToProbe extends Publication {
  /** Of the earlier pod. */
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

  /** Rejects with RegistryError, or the signal's reason. Then, and if one is taken, the whole claim is undone. */
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
    await this.#journal.record([{ ...row, workload: toProbe.owner }]);
    const trusted = await this.#journal.endQuarantine(row);
    if (trusted === undefined) return undefined;
    this.#toProbe.delete(nameOf(row));
    try {
      return await this.#publishProbed({ ...toProbe, row: { ...trusted, quarantine: row.quarantine } });
    } catch (error) {
      await this.undo([trusted]);
      throw failureOf(error);
    }
  }

  async #publishProbed(probed: Publication): Promise<Allocation> {
    const terms = { lane: "pod" as const, isAsked: true, patienceMs: CLAIM_PATIENCE_MS };
    const outcome = await this.#objectSync.publish(probed, terms);
    if (outcome.kind === "taken")
      throw new RegistryError(
        `Address ${nameOf(probed.row)} was claimed by another pod, or by its node again, while it was probed`,
      );
    const answered = { ...probed.row, quarantine: undefined, isConfirmed: true };
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
    const terms = { lane: "pod" as const, isAsked: true, patienceMs: CLAIM_PATIENCE_MS, signal };
    const bound = await this.#journal.claim(claim);
    if (bound.kind !== "bound") return bound;
    if (claim.proposals.some(({ requested }) => requested === true)) await this.#syncReplaced(claim);
    const parts = [...new Set([...bound.held, ...bound.created])].map((row) => this.#partOf(claim, bound, row));
    const wanted = parts.filter((part) => !part.toProbe && (part.isCreated || this.#isUnpublished(part.row)));
    await Promise.all(wanted.map((part) => this.#publish(part, terms, claim.isMigrationTarget === true)));
    if (!wanted.every(isPublished)) return this.#keepRest(claim, bound, parts);
    if (wanted.length === 0 || (await this.#confirm(wanted, parts))) return boundOf(bound, parts);
    await this.#undoAll(parts, true);
    throw new RegistryError(`Interface "${claim.ifName}" was released while its addresses were claimed`);
  }

  #partOf({ proposals, workload }: Claim, { held, created }: Bound, row: Allocation): Part {
    const { ifName } = row;
    const proposal = proposals.find((each) => each.ifName === ifName && nameOf(each) === nameOf(row));
    const owner = (proposal ?? proposals.find((each) => each.ifName === ifName))?.workload ?? workload;
    const isCreated = created.includes(row);
    const publication = { row, owner, replaces: proposal?.replaces };
    if (isCreated && row.quarantine !== undefined) this.#noteToProbe(publication, proposal?.needsProbe === true);
    return {
      ...publication,
      isHeld: held.includes(row),
      isCreated,
      toProbe: this.#findToProbe(row),
      // A row that is to be probed first is not the owner's yet.
      isOpen: !isCreated && isOpen(row, owner),
      outcome: undefined,
    };
  }

  #isUnpublished(row: Allocation): boolean {
    return row.isConfirmed !== true || this.#lost.isLost?.(row) === true || this.#objectSync.isSent(row);
  }

  async #publish(part: Part, terms: CallTerms, isMigrationTarget: boolean): Promise<void> {
    const { signal } = terms;
    try {
      if (this.#objectSync.isSent(part.row) && !isNewClaim(part.row)) await this.#renew(part);
      const publishing = this.#objectSync.publish(part, terms);
      part.outcome = await (signal === undefined ? publishing : untilAborted(publishing, signal));
    } catch (error) {
      part.outcome = { kind: "failed", error };
    }
    const { row, owner, outcome } = part;
    if (owner === undefined) return;
    const isShared = outcome.kind === "published" && outcome.isShared === true;
    const mayComeLater = isMigrationTarget && !isShared && row.isConfirmed !== true;
    part.isOpen = mayComeLater || isOpen(row, owner);
  }

  /** A NIC that has its address again has it by another claim if a write under the old one may be carried out yet. */
  async #renew(part: Part): Promise<void> {
    const { row } = part;
    const [renewed = row] = await this.#journal.record([{ ...row, claim: renewClaim(row, randomUUID()) }]);
    part.row = renewed;
  }

  /** A claim of an address that an earlier pod on a lost node has is not published before the address was probed. */
  #noteToProbe(publication: Publication, needsProbe: boolean): void {
    const { row, replaces = 0 } = publication;
    const node = this.#objectSync.findPredecessorNode(row);
    if (needsProbe && replaces < 0 && node !== undefined) this.#toProbe.set(nameOf(row), { ...publication, node });
    else this.#toProbe.delete(nameOf(row));
  }

  #findToProbe(row: Allocation): ToProbe | undefined {
    const found = row.quarantine === undefined ? undefined : this.#toProbe.get(nameOf(row));
    return found?.row.owner === row.owner ? found : undefined;
  }

  /** Syncs the addresses that were claimed ahead of the ADD and gave way to requested ones. */
  async #syncReplaced({ owner }: Claim): Promise<void> {
    const own = await this.#journal.findOwner(owner);
    for (const row of own.filter(({ state }) => state === "Cooling")) this.#objectSync.syncLater(row);
  }

  /** Some addresses are taken, or failed: keeps the others if the claim may, and undoes the rest. */
  async #keepRest(claim: Claim, bound: Bound, parts: readonly Part[]): Promise<ClaimOutcome> {
    const by = parts.flatMap(({ outcome }) => (outcome?.kind === "taken" ? [outcome.by] : []));
    const [failed] = parts.flatMap(({ outcome }) => (outcome?.kind === "failed" ? [outcome] : []));
    const published = parts.filter(isPublished);
    const mayKeep = claim.keepsRest === true && failed === undefined && published.length > 0;
    const kept = mayKeep && (await this.#confirm(published, parts)) ? published : [];
    await this.#undoAll(
      parts.filter((part) => !kept.includes(part)),
      failed === undefined,
    );
    if (failed !== undefined) throw failureOf(failed.error);
    if (kept.length === 0) return { kind: "taken", by };
    const { previous, added, open } = boundOf(bound, kept);
    // All published rows are undone if the ADD fails, also those that an earlier agent claimed and never answered.
    return { kind: "taken", by, kept: { created: kept.map(({ row }) => row), previous, added, open } };
  }

  /**
   * Precedes the answer: a row that is not confirmed was answered to no ADD, and may be undone. Returns false if a row
   * is not as the claim wrote it, because a DEL, a sweep or an undo has come meanwhile.
   */
  async #confirm(published: readonly Part[], parts: readonly Part[]): Promise<boolean> {
    for (const part of published) if (!part.isOpen) part.row = { ...part.row, isConfirmed: true };
    try {
      const recorded = await this.#journal.record(published.map(({ row }) => row));
      return recorded.length === published.length;
    } catch (error) {
      await this.#undoAll(parts, false);
      throw error;
    }
  }

  /**
   * Undoes what the claim wrote of them, the journal's rows first. With `isAnswered` waits a little for the objects,
   * because the next attempt may need them.
   */
  async #undoAll(parts: readonly Part[], isAnswered: boolean): Promise<void> {
    const written = parts.filter(({ isCreated, outcome }) => isCreated || outcome !== undefined);
    const left = await this.#forgetTaken(written);
    await this.undo(left.map(({ row }) => row));
    for (const { row, outcome } of left) {
      if (outcome?.kind !== "taken") continue;
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
  async #forgetTaken(written: readonly Part[]): Promise<readonly Part[]> {
    const isForgotten = async ({ row, replaces, outcome }: Part): Promise<boolean> =>
      outcome?.kind === "taken" &&
      replaces === undefined &&
      row.quarantine === undefined &&
      (await this.#journal.forget(row, true));
    const forgotten = await Promise.all(written.map(isForgotten));
    return written.filter((_, index) => forgotten[index] !== true);
  }
}

function isPublished({ outcome }: Part): boolean {
  return outcome?.kind === "published";
}

/**
 * Returns the claim's answer. Rows that an earlier agent claimed and never answered are undone like those that this
 * claim wrote.
 */
function boundOf({ previous }: Bound, parts: readonly Part[]) {
  const held: Allocation[] = [];
  const created: Allocation[] = [];
  const added: Allocation[] = [];
  const open: Allocation[] = [];
  for (const { row: of, toProbe, isHeld, isCreated, isOpen, outcome } of parts) {
    const row = toProbe === undefined ? of : { ...of, predecessorNode: toProbe.node };
    if (isHeld) held.push(row);
    if (isCreated || (outcome !== undefined && isOpen && row.isConfirmed !== true)) created.push(row);
    // The API server had no object of it.
    if (outcome?.kind === "published" && outcome.isNew) added.push(row);
    if (isOpen) open.push(row);
  }
  return { kind: "bound" as const, held, created, previous, added, open };
}

/**
 * Returns whether the claim's answer must wait until the owner's other addresses are read: the row is not known as its
 * own, or was claimed before that.
 */
function isOpen(row: Allocation, owner: Workload | undefined): boolean {
  return owner !== undefined && (row.workload === undefined || numberOf(row) === 0);
}

/** Returns the failure of a call to the API server as the registry's, and any other error as it is. */
export function failureOf(error: unknown, what = "The API server did not record the address"): unknown {
  if (!(error instanceof ApiError || error instanceof ApiUnavailable)) return error;
  return new RegistryError(`${what}: ${messageOf(error)}`, { cause: error });
}
