/** Which of several addresses of one member, NIC and family is the member's (docs/decisions/0049). */
import { compareText } from "../lib/order.ts";
import type { Allocation } from "./registry.ts";

type Ordered = Pick<Allocation, "claim" | "isInUse" | "createdAt" | "version">;

/** Returns the number of the allocation's claim. An older release has numbered none: its addresses were answered. */
export function numberOf({ claim }: Pick<Allocation, "claim">): number {
  return claim?.number ?? 1;
}

/**
 * Compares two objects of the API server, as rows: negative if the first comes first. That is the one that a live pod
 * shares; then the one with the highest number; then the one that was created first. Versions of objects are negative.
 */
export function compareRecords(a: Ordered, b: Ordered): number {
  return (
    Number(b.isInUse === true) - Number(a.isInUse === true) ||
    numberOf(b) - numberOf(a) ||
    compareText(a.createdAt ?? "", b.createdAt ?? "") ||
    b.version - a.version
  );
}
