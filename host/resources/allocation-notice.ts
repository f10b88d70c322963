/**
 * A notice of the controller to one node's agent: the allocations to read again (recreate, docs/decisions/0035). It is
 * an annotation of the node's Node object, which the agent watches by name. A notice decides nothing: a forged one
 * causes only reads.
 */
import { parseAllocationName } from "./ip-allocation.ts";

export const NOTICE_ANNOTATION = "ipam.vendor.io/read-allocations";

/** Annotation of the controllers' election Lease: the identity of a leader that sends notices; older ones keep it. */
export const NOTIFIER_ANNOTATION = "ipam.vendor.io/notifier";

export const CONTROLLER_LEASE = "berth-controller";

/** Most names in one notice; more are "all". */
export const MAX_NOTICE_NAMES = 64;

/** Names of allocations, or all allocations of the node. */
export type NoticedAllocations = readonly string[] | "all";

const ALL = "*";

/**
 * Returns the annotation's value: `2026-11-22T15:00:00.000Z 10.6.0.1 10.6.0.2`. `id` differs from that of the node's
 * last notice, and has no space.
 */
export function formatNotice(id: string, names: readonly string[]): string {
  return [id, ...(names.length > MAX_NOTICE_NAMES ? [ALL] : names)].join(" ");
}

/** Returns "all" for a notice of another form: another version of the controller may have written it. */
export function parseNotice(value: string): NoticedAllocations {
  const [, ...names] = value.split(" ");
  const isKnown = names.length <= MAX_NOTICE_NAMES && names.every((name) => parseAllocationName(name) !== undefined);
  return isKnown && names.length > 0 ? names : "all";
}
