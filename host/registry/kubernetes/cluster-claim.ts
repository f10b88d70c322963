/**
 * A claim in a cluster: first the journal's rows, then one object for each row, all at once. If one of them is taken
 * or fails, all are undone.
 */
import { ApiError, ApiUnavailable } from "../../kubernetes/kube-api.ts";
import { untilAborted } from "../../lib/abort.ts";
import { messageOf } from "../../lib/describe.ts";
import type { Workload } from "../../resources/member.ts";
import { numberOf } from "../claims.ts";
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
import { type ClaimTask, type ObjectSync, taskOf } from "./object-sync.ts";

/**
 * Total time for which a claim in a cluster waits for the API server: milliseconds. Shorter than the shim's 90
 * seconds.
 * @limit
 */
const CLAIM_PATIENCE_MS = 60_000;

const CLAIM_TERMS: CallTerms = { lane: "pod", isAsked: true, patienceMs: CLAIM_PATIENCE_MS };

/** Where a claim is recorded. */
export interface Records {
  readonly journal: Journal;
  readonly objects: ObjectSync;
}

/** One row of a claim, from the journal's answer to the claim's. */
interface Part extends ClaimTask {
  /** Of the claim's NIC. */
  readonly isHeld: boolean;
  readonly isCreated: boolean;
  /** As in {@link ClaimOutcome}. */
  isOpen: boolean;
  /** Of its publication; undefined: it is not published by this claim. */
  outcome: PublishOutcome | { readonly kind: "failed"; readonly error: unknown } | undefined;
}

/** Rejects with RegistryError, or the signal's reason. Then, and if one is taken, the whole claim is undone. */
export async function claimInCluster(records: Records, claim: Claim, signal?: AbortSignal): Promise<ClaimOutcome> {
  signal?.throwIfAborted();
  const { journal, objects } = records;
  const bound = await journal.claim(claim);
  if (bound.kind !== "bound") return bound;
  if (claim.proposals.some(({ requested }) => requested === true)) await syncReplaced(records, claim);
  const terms = { ...CLAIM_TERMS, signal };
  const rows = new Set([...bound.held, ...bound.created]);
  const parts = [...rows].map((row) => partOf(objects, { claim, bound, terms }, row));
  const wanted = parts.filter(
    ({ row, isCreated }) => row.predecessorNode === undefined && (isCreated || objects.isUnpublished(row)),
  );
  await Promise.all(wanted.map((part) => publish(objects, part, claim.isMigrationTarget === true)));
  const [failed] = wanted.flatMap(({ outcome }) => (outcome?.kind === "failed" ? [outcome] : []));
  const published = wanted.filter(({ outcome }) => outcome?.kind === "published");
  const isWhole = published.length === wanted.length;
  const mayKeep = isWhole || (claim.keepsRest === true && failed === undefined);
  const isKept = mayKeep && (await confirm(records, published, parts));
  if (isWhole && isKept) return boundOf(bound, parts);
  const kept = isKept ? published : [];
  const rest = parts.filter((part) => !kept.includes(part));
  await undoParts(records, rest);
  if (failed !== undefined) throw failureOf(failed.error);
  if (isWhole) throw new RegistryError(`Interface "${claim.ifName}" was released while its addresses were claimed`);
  const by = wanted.flatMap(({ outcome }) => (outcome?.kind === "taken" ? [outcome.by] : []));
  if (kept.length === 0) return { kind: "taken", by };
  const { previous, added, open } = boundOf(bound, kept);
  // All published rows are undone if the ADD fails, also those that an earlier agent claimed and never answered.
  return { kind: "taken", by, kept: { created: kept.map(({ row }) => row), previous, added, open } };
}

/**
 * The address of the row was probed and is silent, which the journal records first: a DEL from here on releases the
 * row to its owner. Then publishes it, if it was not. Returns undefined if the row has changed. Rejects with
 * RegistryError if the object has.
 */
export async function trust(records: Records, row: Allocation): Promise<Allocation | undefined> {
  const { journal, objects } = records;
  const toProbe = objects.findToProbe(row);
  if (toProbe !== undefined) await journal.record([{ ...row, workload: toProbe.owner }]);
  const trusted = await journal.endQuarantine(row);
  if (toProbe === undefined || trusted === undefined) return trusted;
  objects.forgetProbe(row);
  const probed = { ...toProbe, row: { ...trusted, quarantine: row.quarantine } };
  try {
    const outcome = await objects.publish(probed);
    if (outcome.kind === "taken")
      throw new RegistryError(
        `Address ${nameOf(row)} was claimed by another pod, or by its node again, while it was probed`,
      );
    const answered = { ...probed.row, quarantine: undefined, isConfirmed: true };
    await journal.record([answered]);
    return answered;
  } catch (error) {
    await undo(records, [trusted]);
    throw failureOf(error);
  }
}

/** An address that the owner did not have before the claim is not retained for it. */
export async function undo({ journal, objects }: Records, given: readonly Allocation[]): Promise<void> {
  const published: Allocation[] = [];
  // The object of a row that was never published is still the earlier pod's: the row is forgotten, and no object
  // changes.
  for (const row of given) if (!(objects.forgetProbe(row) && (await journal.forget(row)))) published.push(row);
  await journal.undo(published.map((row) => ({ ...row, isConfirmed: false })));
  for (const row of published) {
    objects.noteUndone(row);
    objects.syncLater(row);
  }
}

function partOf(
  objects: ObjectSync,
  { claim, bound, terms }: { readonly claim: Claim; readonly bound: Bound; readonly terms: CallTerms },
  row: Allocation,
): Part {
  const { proposals, workload } = claim;
  const ofNic = proposals.filter(({ ifName }) => ifName === row.ifName);
  const proposal = ofNic.find((each) => nameOf(each) === nameOf(row));
  const owner = (proposal ?? ofNic[0])?.workload ?? workload;
  const isCreated = bound.created.includes(row);
  const task: ClaimTask = { ...taskOf(row, CLAIM_TERMS), row, owner, replaces: proposal?.replaces };
  if (isCreated && row.quarantine !== undefined) objects.noteToProbe(task, proposal?.needsProbe === true);
  const predecessorNode = objects.findToProbe(row)?.row.predecessorNode;
  return {
    ...task,
    terms,
    row: predecessorNode === undefined ? row : { ...row, predecessorNode },
    isHeld: bound.held.includes(row),
    isCreated,
    // A row that is to be probed first is not the owner's yet.
    isOpen: !isCreated && isOpen(row, owner),
    outcome: undefined,
  };
}

async function publish(objects: ObjectSync, part: Part, isMigrationTarget: boolean): Promise<void> {
  const { signal } = part.terms;
  try {
    const publishing = objects.publish(part);
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

/** Syncs the addresses that were claimed ahead of the ADD and gave way to requested ones. */
async function syncReplaced({ journal, objects }: Records, { owner }: Claim): Promise<void> {
  for (const row of await journal.findOwner(owner)) if (row.state === "Cooling") objects.syncLater(row);
}

/**
 * Precedes the answer: a row that is not confirmed was answered to no ADD, and may be undone. Returns false if a row
 * is not as the claim wrote it, because a DEL, a sweep or an undo has come meanwhile.
 */
async function confirm(records: Records, published: readonly Part[], parts: readonly Part[]): Promise<boolean> {
  if (published.length === 0) return true;
  for (const part of published) if (!part.isOpen) part.row = { ...part.row, isConfirmed: true };
  try {
    const recorded = await records.journal.record(published.map(({ row }) => row));
    return recorded.length === published.length;
  } catch (error) {
    await undoParts(records, parts);
    throw error;
  }
}

/** Undoes what the claim wrote of them, the journal's rows first. */
async function undoParts(records: Records, parts: readonly Part[]): Promise<void> {
  const { journal } = records;
  const written = parts.filter(({ isCreated, outcome }) => isCreated || outcome !== undefined);
  const left = await forgetTaken(journal, written);
  const rows = left.map(({ row }) => row);
  await undo(records, rows);
  for (const { row, outcome } of left) {
    if (outcome?.kind !== "taken") continue;
    const found = await journal.findAddress(row.space, row.ip);
    // The object is another pod's, so there is nothing to sync.
    if (found?.state === "Cooling" && found.owner === row.owner) await journal.forget(found, true);
  }
}

/**
 * Forgets rows that were new in this claim and whose objects are taken. Returns the other rows, and those that were
 * written meanwhile.
 */
async function forgetTaken(journal: Journal, written: readonly Part[]): Promise<readonly Part[]> {
  const isForgotten = async ({ row, replaces, outcome }: Part): Promise<boolean> =>
    outcome?.kind === "taken" &&
    replaces === undefined &&
    row.quarantine === undefined &&
    (await journal.forget(row, true));
  const forgotten = await Promise.all(written.map(isForgotten));
  return written.filter((_, index) => forgotten[index] !== true);
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
  for (const { row, isHeld, isCreated, isOpen, outcome } of parts) {
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
