/**
 * The claims by which NICs have addresses, and which of several addresses of one member, NIC and family is the member's
 * (docs/decisions/0049).
 */
import { compareText } from "../lib/order.ts";
import { type Allocation, type ClaimName, UNNAMED } from "./registry.ts";

/** Most earlier claims that are remembered of one address. Of older ones the pods decide. */
const MAX_EARLIER_CLAIMS = 8;

/**
 * Returns the number of the allocation's claim. An older release has numbered none: what it retains for an address
 * owner was answered.
 */
export function numberOf({ claim, workload }: Pick<Allocation, "claim" | "workload">): number {
  return claim?.number ?? Number(workload !== undefined);
}

/**
 * Returns whether the row was claimed ahead for a member that had no address, and was on no NIC: the member retains
 * what another of its pods has claimed meanwhile.
 */
export function isUnused({ containerId, claim }: Pick<Allocation, "claim" | "containerId">): boolean {
  return containerId === "" && claim?.number === 1;
}

type Ordered = Pick<Allocation, "claim" | "workload" | "isInUse" | "createdAt" | "version">;

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

/**
 * Returns the claim of a row that is written over `idle`, this node's row of the address before. A NIC that has its
 * cooling address again has it by the same claim. `row.workload` is defined if the address was its member's before.
 * `number`: the least, of a claim that was made after the member's others were read; `id`: of a new claim.
 */
export function claimOver(
  row: Allocation,
  idle: Allocation | undefined,
  { number, id: next }: { readonly number: number; readonly id: string },
): ClaimName {
  const isRetained = row.workload !== undefined;
  const { id = UNNAMED, number: before = Number(isRetained) } = idle?.claim ?? {};
  const earlier = idle === undefined ? [] : earlierWith(idle.claim, id);
  const isSameNic = idle?.state === "Cooling" && idle.owner === row.owner && idle.ifName === row.ifName;
  if (isSameNic) return { id, number: before, earlier };
  // Without having read the member's others, 0 stays 0.
  return { id: next, number: Math.max(number, isRetained ? before && before + 1 : 0), earlier };
}

/** Returns the row's claim when it takes over the object of an earlier pod of its member, or one retained for it. */
export function claimAfter({ claim }: Allocation, before: number | undefined = 1): ClaimName {
  const { id = UNNAMED, number = 0, earlier = [] } = claim ?? {};
  // 1 is that of a member's first address.
  return { id, number: number + before > 0 ? Math.max(number, before + 1, 2) : 0, earlier };
}

/**
 * Returns another claim of the same NIC. Its object has to be written, which makes the precondition of a write under
 * the old claim fail (sandbox-restart).
 */
export function renewClaim(row: Allocation, id: string): ClaimName {
  return { id, number: numberOf(row), earlier: earlierWith(row.claim, row.claim?.id ?? UNNAMED) };
}

/** Returns whether the row's claim is one that was never written: the row is new, or its NIC has the address anew. */
export function isNewClaim({ claim, isConfirmed }: Allocation): boolean {
  return claim !== undefined && isConfirmed !== true && !claim.earlier.includes(claim.id);
}

function earlierWith(claim: ClaimName | undefined, id: string): readonly string[] {
  return [...(claim?.earlier ?? []).filter((each) => each !== id), id].slice(-MAX_EARLIER_CLAIMS);
}
