/** Which nodes the registry's epoch waits for (registry-epoch). */
import type { Node } from "../../resources/node.ts";
import { type EpochRecord, markOf } from "../../resources/registry-epoch.ts";
import { nodeStatus } from "../gc/read-status.ts";

interface EpochInputs {
  readonly epoch: string;
  readonly nodes: Iterable<Node>;
  /** Returns for how long the node has not been ready: milliseconds. */
  readonly notReadyMs: (node: string) => number;
  readonly nodeLostMs: number;
}

/**
 * Returns the names of the nodes whose agents have marked some epoch, but not this one, and are not decided about by
 * the rule node-lost: those that are out of service, or lost for long enough, are. A node that is gone is not among
 * them.
 */
export function planEpoch({ epoch, nodes, notReadyMs, nodeLostMs }: EpochInputs): readonly string[] {
  const isWaitedFor = (node: Node): boolean => {
    const mark = markOf(node, epoch);
    if (mark === "unknown" || mark === "settled") return false;
    const status = nodeStatus(node);
    return status !== "outOfService" && (status === "ready" || notReadyMs(node.name) < nodeLostMs);
  };
  return [...nodes]
    .filter(isWaitedFor)
    .map(({ name }) => name)
    .sort();
}

/** Most nodes that are named. */
const MAX_NAMES = 5;

/** Returns the nodes for people: `n1, n2 and 40 more`. */
function describeNodes(names: readonly string[]): string {
  const named = names.slice(0, MAX_NAMES).join(", ");
  return names.length > MAX_NAMES ? `${named} and ${names.length - MAX_NAMES} more` : named;
}

/** Returns what the epoch's record should say now; undefined if it does. */
export function planRecord(record: EpochRecord, waiting: readonly string[]): EpochRecord | undefined {
  const waitsFor = describeNodes(waiting);
  const planned = { ...record, settled: waiting.length === 0 ? record.epoch : record.settled, waitsFor };
  return planned.settled === record.settled && waitsFor === record.waitsFor ? undefined : planned;
}
