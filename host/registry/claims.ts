/**
 * The claims by which NICs have addresses, and which of several addresses of one member, NIC and family is the member's
 * (docs/decisions/0049).
 */
import type { Proposal } from "../ipam/pick.ts";
import { compareText } from "../lib/order.ts";
import { equalIp } from "../net/ip.ts";
import { isOfOtherNetwork } from "./nic.ts";
import { type Allocation, type Claim, type ClaimName, UNNAMED } from "./registry.ts";

/** Most earlier claims that are remembered of one address. Of older ones the pods decide. */
const MAX_EARLIER_CLAIMS = 8;

/** Returns the number of the allocation's claim. Older releases had none: their retained addresses were answered. */
export function numberOf({ claim, workload }: Pick<Allocation, "claim" | "workload">): number {
  return claim?.number ?? Number(workload !== undefined);
}

/**
 * Returns whether the row was claimed ahead for a member without an address, and was on no NIC: the member retains the
 * address that another of its pods has claimed meanwhile.
 */
export function isUnused({ containerId, claim }: Pick<Allocation, "claim" | "containerId">): boolean {
  return containerId === "" && claim?.number === 1;
}

/** Returns whether the object is of a member whose pods never had the address: its workload names it. */
export function isReservation({ claim }: Pick<Allocation, "claim">): boolean {
  return claim?.number === 0 && claim.id === UNNAMED;
}

type Ordered = Pick<Allocation, "claim" | "workload" | "isInUse" | "createdAt" | "version">;

/**
 * Compares two objects of the API server, as rows: negative if the first comes first. A live pod's shared one comes
 * first; then the one with the highest number; then the one created first. Versions of objects are negative.
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

/** Returns whether the row's claim was never written: the row is new, or its NIC has the address anew. */
export function isNewClaim({ claim, isConfirmed }: Allocation): boolean {
  return claim !== undefined && isConfirmed !== true && !claim.earlier.includes(claim.id);
}

function earlierWith(claim: ClaimName | undefined, id: string): readonly string[] {
  return [...(claim?.earlier ?? []).filter((each) => each !== id), id].slice(-MAX_EARLIER_CLAIMS);
}

/**
 * Decides about a claim's writes, or returns its outcome without any. `own`: all rows of its owner; `find` returns the
 * row at a proposed address. `needed`: the proposals for NICs that lack an address of the family, with the idle rows
 * that they are written over; `wanted`: rows of the claim's NIC that it keeps; `unwanted`: those that give way to
 * requested addresses.
 */
export function planClaim(
  claim: Claim,
  own: readonly Allocation[],
  find: (proposal: Proposal) => Allocation | undefined,
) {
  const bound = own.filter((each) => each.state === "Bound" && !isOfOtherNetwork(each, claim));
  const held = bound.filter(({ ifName }) => ifName === claim.ifName);
  const cooling = own.filter(({ state, ifName }) => state === "Cooling" && ifName === claim.ifName);
  const offered = new Set(claim.proposals.map(({ replaces }) => replaces));
  const isMissing = ({ ip }: Allocation): boolean => !held.some((other) => other.ip.family === ip.family);
  if (!claim.skipOwnCooling && cooling.some((each) => !offered.has(each.version) && isMissing(each)))
    return { kind: "cooling" as const, own: cooling };
  const others = claim.partial ? held.filter(({ containerId }) => containerId !== claim.containerId) : [];
  if (others.length > 0) return { kind: "taken" as const, by: others };
  const unwanted = held.filter((row) => isContradicted(row, claim));
  const isServed = ({ ifName, ip }: Proposal): boolean =>
    bound.some((row) => !unwanted.includes(row) && row.ifName === ifName && row.ip.family === ip.family);
  const isReplacing = ({ ifName, ip }: Proposal): boolean =>
    unwanted.some((row) => row.ip.family === ip.family && row.ifName === ifName);
  const needed = claim.proposals
    .filter((proposal) => !isServed(proposal) || isReplacing(proposal))
    .map((proposal) => ({ proposal, idle: find(proposal) }));
  const taken = needed.flatMap(({ proposal, idle }) =>
    idle === undefined || (isIdle(idle) && idle.version === proposal.replaces) ? [] : [idle],
  );
  if (taken.length > 0) return { kind: "taken" as const, by: taken };
  return { kind: "write" as const, needed, wanted: held.filter((row) => !unwanted.includes(row)), unwanted };
}

/** The attachment of a NIC that has an ADD of its own still to come. */
const UNATTACHED = { containerId: "", network: "", netns: undefined, netnsCookie: undefined, mac: undefined };

/** Returns the part of the proposal's row that the claim decides. */
export function rowOf({ space, ip, prefixLength, pool, routers, ifName, workload }: Proposal, claim: Claim) {
  const { owner, namespace, pod } = claim;
  const { containerId, network, netns, netnsCookie, mac } = ifName === claim.ifName ? claim : UNATTACHED;
  const address = { space, ip, prefixLength, pool, routers, ifName };
  const nic = { containerId, network, netns, netnsCookie, mac };
  return { ...address, ...nic, owner, namespace, pod, workload: workload ?? claim.workload };
}

/** Returns whether compare-and-swap may give the address to another owner. */
function isIdle({ state }: Allocation): boolean {
  return state === "Cooling" || state === "Quarantined";
}

/** Returns whether another NIC's ADD claimed the address, unattached, and the NIC's ADD requests another one. */
function isContradicted({ containerId, ifName, ip }: Allocation, { proposals }: Claim): boolean {
  if (containerId !== "") return false;
  return proposals.some(
    (each) =>
      each.requested === true && each.ifName === ifName && each.ip.family === ip.family && !equalIp(each.ip, ip),
  );
}
