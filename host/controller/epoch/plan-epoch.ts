/** Decides which nodes the registry's epoch waits for (registry-epoch). */
import { listSome } from "../../lib/describe.ts";
import type { Node } from "../../resources/node.ts";
import { type EpochRecord, markOf } from "../../resources/registry-epoch.ts";
import { nodeStatus } from "../gc/read-status.ts";

interface EpochInputs {
  readonly epoch: string;
  readonly nodes: Iterable<Node>;
  /** Returns the time for which the node has not been ready: milliseconds. */
  readonly notReadyMs: (node: string) => number;
  readonly nodeLostMs: number;
}

export interface EpochPlan {
  readonly waiting: readonly string[];
  /** Names of nodes that it no longer waits for, by the rule node-lost: their pods may live. */
  readonly missing: readonly string[];
}

/** Finds nodes whose agents have marked an epoch, but not this one. Absent and out-of-service nodes do not count. */
export function planEpoch({ epoch, nodes, notReadyMs, nodeLostMs }: EpochInputs): EpochPlan {
  const waiting: string[] = [];
  const missing: string[] = [];
  for (const node of nodes) {
    const [mark, status] = [markOf(node, epoch), nodeStatus(node)];
    if (mark === "unknown" || mark === "settled" || status === "outOfService") continue;
    (status === "ready" || notReadyMs(node.name) < nodeLostMs ? waiting : missing).push(node.name);
  }
  return { waiting: waiting.sort(), missing: missing.sort() };
}

/** Most nodes that the record names. */
const MAX_NAMES = 5;

/**
 * Time for which first claims are probed in an epoch that began because the history went back: a node that has joined
 * since the copy has no object, and its pods end with their grace period. Milliseconds.
 */
const PROBED_MS = 3_600_000;

/**
 * Returns the new record of the epoch; undefined if it is up to date. `writtenMs`: time since it was settled. Each
 * process measures nodes' absence from its own start: it names them all, and a settled epoch stays settled.
 */
export function planRecord(
  record: EpochRecord,
  { waiting, missing }: EpochPlan,
  writtenMs: number,
): EpochRecord | undefined {
  const away = [...waiting, ...missing].sort();
  const isWritten = waiting.length === 0 || record.settled === record.epoch;
  const isProbed = isWritten && (away.length > 0 || (record.cause === "history" && writtenMs < PROBED_MS));
  const planned = {
    ...record,
    settled: isWritten ? record.epoch : record.settled,
    waitsFor: listSome(away, MAX_NAMES),
    probed: isProbed ? record.epoch : "",
  };
  const isSame = (["settled", "waitsFor", "probed"] as const).every((key) => planned[key] === record[key]);
  return isSame ? undefined : planned;
}
