/**
 * Which entries of the server of record to create, change and delete, decided from the addresses that pods have, the
 * entries that the server is known to have, and how long each pod has had its address. No state of its own.
 */

import { hashUid } from "../../../host/controller/cached-allocation.ts";
import { type AddressPlace, contentOf, type PodAddress, placeKey } from "../record-server/pod-address.ts";

/** Most entries of a plan: later plans have the others, from the addresses in use then. */
const MAX_PLANNED = 1_000;

/** An entry of this cluster on the server. */
export interface KnownEntry extends AddressPlace {
  readonly id: string;
  /** {@link printOf} of its content. */
  readonly print: number;
}

/** A pod's address as it should be recorded. */
export interface UsedAddress extends PodAddress {
  /** Of the IPAllocation. */
  readonly name: string;
  /** Tells two pods of one name apart. */
  readonly holder: number;
}

/** Since when an address that is not recorded yet has been seen with the same pod. */
export interface HeldSince {
  readonly print: number;
  readonly sinceMs: number;
}

/** A place at which the server has or wants something else. It is left alone until `againMs`. */
export interface RecordFinding {
  readonly kind: "foreign" | "refused";
  /** Of the IPAllocation. */
  readonly name: string;
  /** What is wrong, after "Address 10.6.0.7", with the entry or the server's words. */
  readonly text: string;
  readonly againMs: number;
}

interface RecordsSituation {
  readonly used: Iterable<UsedAddress>;
  /** By {@link placeKey}; the plan updates it. */
  readonly held: Map<string, HeldSince>;
  readonly known: ReadonlyMap<string, KnownEntry>;
  readonly findings: ReadonlyMap<string, RecordFinding>;
  readonly nowMs: number;
  /** An address is recorded when its pod has had it for so long. */
  readonly intervalMs: number;
  /** Whether all addresses in use are known: otherwise nothing is deleted. */
  readonly isComplete: boolean;
}

export interface RecordsPlan {
  readonly create: readonly UsedAddress[];
  readonly update: readonly (UsedAddress & { readonly id: string })[];
  readonly remove: readonly KnownEntry[];
  /** Entries that are as they should be. */
  readonly inSync: number;
  /** Entries to create, change and delete, only some of which are planned; without findings. */
  readonly pending: number;
  /** Findings that are about an address in use, or an entry to delete. */
  readonly open: ReadonlyMap<string, RecordFinding>;
}

/** Returns 32 bits of an entry's content. */
export function printOf(address: PodAddress): number {
  return hashUid(contentOf(address));
}

export function knownEntry(entry: PodAddress & { readonly id: string }): KnownEntry {
  const { id, space, ip } = entry;
  return { id, space, ip, print: printOf(entry) };
}

/** Returns since when the address has been seen with its pod. */
function see(address: UsedAddress, key: string, { held, nowMs }: RecordsSituation): HeldSince {
  const print = printOf(address) ^ address.holder;
  const before = held.get(key);
  if (before?.print === print) return before;
  const seen = { print, sinceMs: nowMs };
  held.set(key, seen);
  return seen;
}

export function planRecords(situation: RecordsSituation): RecordsPlan {
  const { used, held, known, findings, nowMs, intervalMs, isComplete } = situation;
  const create: UsedAddress[] = [];
  const update: (UsedAddress & { readonly id: string })[] = [];
  const open = new Map<string, RecordFinding>();
  const inUse = new Set<string>();
  let [inSync, pending] = [0, 0];
  const rests = (key: string): boolean => {
    const finding = findings.get(key);
    if (finding !== undefined) open.set(key, finding);
    return finding !== undefined && finding.againMs > nowMs;
  };
  for (const address of used) {
    const key = placeKey(address);
    inUse.add(key);
    const entry = known.get(key);
    if (entry !== undefined && entry.print === printOf(address)) {
      inSync++;
      held.delete(key);
      continue;
    }
    const { sinceMs } = see(address, key, situation);
    if (nowMs - sinceMs < intervalMs || rests(key)) continue;
    pending++;
    if (create.length + update.length >= MAX_PLANNED) continue;
    if (entry === undefined) create.push(address);
    else update.push({ ...address, id: entry.id });
  }
  for (const key of held.keys()) if (!inUse.has(key)) held.delete(key);
  const gone = isComplete ? [...known].flatMap(([key, entry]) => (inUse.has(key) || rests(key) ? [] : [entry])) : [];
  return { create, update, remove: gone.slice(0, MAX_PLANNED), inSync, pending: pending + gone.length, open };
}

/** Returns how many entries others have changed or deleted, or have put back, since they were known as `before`. */
export function countDrift(before: ReadonlyMap<string, KnownEntry>, now: ReadonlyMap<string, KnownEntry>): number {
  let drifted = 0;
  for (const [key, { print }] of before) if (now.get(key)?.print !== print) drifted++;
  for (const key of now.keys()) if (!before.has(key)) drifted++;
  return drifted;
}
