/** An agent's memory, and the key by which its states are told apart. */
import { AddressStates } from "../../../../host/registry/kubernetes/address-states.ts";
import type { KnownObject } from "../../../../host/registry/kubernetes/known-object.ts";
import type { Allocation } from "../../../../host/registry/registry.ts";
import type { IpAllocationSpec } from "../../../../host/resources/ip-allocation.ts";
import type { Workload } from "../../../../host/resources/member.ts";
import { flag, keyOfCall, keyOfWorkload, NAME } from "./journal-object.ts";
import type { Call } from "./protocol.ts";

type Spec = IpAllocationSpec;

/** A sync of the object, or a claim's publication, that waits for the answer to its write. */
export interface Task {
  /** The row with which it writes. */
  readonly row: Allocation;
  readonly written: Allocation;
  readonly action: "create" | "change" | "delete";
  readonly object: KnownObject | undefined;
  readonly call: Call<Spec>;
  readonly claim?: ClaimTask | undefined;
}

export interface ClaimTask {
  readonly container: string;
  readonly replaces?: string | undefined;
  /** The address owner of a new row. */
  readonly workload?: Workload | undefined;
  /** As the claim found the row: whether it was cooling, and not yet due. */
  readonly wasCooling: boolean;
  readonly isNewToOwner: boolean;
}

export interface Memory {
  readonly states: AddressStates;
  /** {@link AddressStates} reads it. */
  readonly isLateOver: boolean;
  readonly task?: Task | undefined;
  /** A claim that waits for the answer to {@link task}. */
  readonly queued?: { readonly row: Allocation; readonly claim: ClaimTask } | undefined;
  readonly isReconciled: boolean;
  readonly isDue: boolean;
  readonly isBacklogged: boolean;
  /** Until no late write is to be expected. */
  readonly isPostponed: boolean;
  readonly attaching?: string | undefined;
  readonly isLost: boolean;
}

/** Wide enough apart for AddressStates: before and after the limit of late writes. */
export const [EARLY_MS, LATE_MS] = [0, 10_000];

export function openStates(node: string, nowMs: () => number): AddressStates {
  return new AddressStates({ node, nowMs });
}

/** Returns what an agent knows that starts with this row. */
export function startMemory(row: Allocation | undefined, node: string): Memory {
  const states = openStates(node, () => EARLY_MS);
  const isOpen = row !== undefined && (row.state !== "Bound" || row.isConfirmed !== true);
  if (isOpen) states.noteRestart(NAME);
  const nothing = { isLateOver: false, isReconciled: false, isDue: false, isPostponed: false };
  return { ...nothing, states, isBacklogged: isOpen, isLost: false };
}

export function keyOfRow({
  state,
  owner,
  containerId,
  isConfirmed,
  workload,
  freeAtMs,
  quarantine,
}: Allocation): string {
  const times = state === "Cooling" ? `${freeAtMs}` : "";
  return `${state} ${owner} ${containerId} ${flag(isConfirmed)}${keyOfWorkload(workload)}${times}${flag(quarantine !== undefined)}`;
}

function keyOfKnown(object: KnownObject | undefined): string {
  if (object === undefined) return "-";
  const { uid, resourceVersion, state, node, podUid, workload, lost } = object;
  return `#${uid} #${resourceVersion} ${state} ${node} ${podUid} ${keyOfWorkload(workload)} ${lost}`;
}

export function keyOfMemory(memory: Memory, row: Allocation | undefined): string {
  const { states, task, queued, attaching } = memory;
  const { object, pending } = states.get(NAME);
  const isLate = pending.lateUntilMs > 0;
  const known =
    object.kind === "known"
      ? `${object.source} ${keyOfKnown(object.object)}`
      : `${object.isProber} ${object.kind === "ended" ? `#${object.last.resourceVersion}` : ""}`;
  const keyOfClaim = (claim: ClaimTask | undefined): string =>
    claim === undefined
      ? "-"
      : `${claim.container} #${claim.replaces ?? 0} ${keyOfWorkload(claim.workload)}${flag(claim.wasCooling)}${flag(claim.isNewToOwner)}`;
  const parts = [
    known,
    [...pending.formerOwners].sort().join(),
    flag(pending.isUnanswered) + flag(isLate) + flag(isLate && memory.isLateOver),
    task === undefined
      ? ""
      : `${flag(task.row.version === row?.version)} ${keyOfRow(task.row)} ${keyOfKnown(task.object)} ${keyOfCall(task.call)} ${keyOfClaim(task.claim)}`,
    queued === undefined ? "" : `${flag(queued.row.version === row?.version)} ${keyOfClaim(queued.claim)}`,
    flag(memory.isReconciled) + flag(memory.isDue) + flag(memory.isBacklogged) + flag(memory.isPostponed),
    flag(memory.isLost) + (attaching ?? ""),
  ];
  return parts.join("|");
}
