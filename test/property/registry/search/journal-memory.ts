/** An agent's memory, and the key by which its states are told apart. */
import { AddressStates } from "../../../../host/registry/kubernetes/address-states.ts";
import { findLostNode } from "../../../../host/registry/kubernetes/known-object.ts";
import { type Allocation, type ClaimName, UNNAMED } from "../../../../host/registry/registry.ts";
import type { IpAllocation, IpAllocationSpec } from "../../../../host/resources/ip-allocation.ts";
import type { Workload } from "../../../../host/resources/member.ts";
import { flag, keyOfCall, keyOfWorkload, NAME, rankOf } from "./journal-object.ts";
import type { Call } from "./protocol.ts";

type Spec = IpAllocationSpec;

/** A sync of the object, or a claim's publication, that waits for the answer to its write. */
export interface Task {
  /** The row with which it writes. */
  readonly row: Allocation;
  readonly written: Allocation;
  readonly action: "create" | "change" | "delete";
  readonly object: IpAllocation | undefined;
  readonly call: Call<Spec>;
  readonly claim?: ClaimTask | undefined;
}

export interface ClaimTask {
  readonly container: string;
  readonly replaces?: number | undefined;
  /** The address owner of a new row. */
  readonly workload?: Workload | undefined;
  /** As the claim found the row: whether it was cooling, and not yet due. */
  readonly wasCooling: boolean;
}

export interface Memory {
  readonly states: AddressStates;
  readonly task?: Task | undefined;
  /** A claim that waits for the answer to {@link task}. */
  readonly queued?: { readonly row: Allocation; readonly claim: ClaimTask } | undefined;
  readonly isReconciled: boolean;
  readonly isDue: boolean;
  readonly isBacklogged: boolean;
  /** A write had no answer: the name is looked at again. */
  readonly looksAgain: boolean;
  readonly attaching?: string | undefined;
  readonly isLost: boolean;
}

/** Returns the knowledge of an agent that starts with this row. */
export function startMemory(row: Allocation | undefined, node: string): Memory {
  const states = new AddressStates(node);
  const isOpen = row !== undefined && (row.state !== "Bound" || row.isConfirmed !== true);
  if (isOpen) states.noteSent(NAME);
  return { states, isReconciled: false, isDue: false, looksAgain: false, isBacklogged: isOpen, isLost: false };
}

export function keyOfRow({
  state,
  owner,
  containerId,
  isConfirmed,
  workload,
  freeAtMs,
  quarantine,
  claim,
}: Allocation): string {
  const times = state === "Cooling" ? `${freeAtMs}` : "";
  return `${state} ${owner} ${containerId} ${flag(isConfirmed)}${keyOfWorkload(workload)}${times}${flag(quarantine !== undefined)}${keyOfClaimName(claim)}`;
}

function keyOfClaimName(claim: ClaimName | undefined): string {
  return claim === undefined
    ? ""
    : ` #${claim.id} ${rankOf(claim.number)} ${claim.earlier.map((id) => `#${id}`).join(" ")}`;
}

function keyOfKnown(object: IpAllocation | undefined): string {
  if (object === undefined) return "-";
  const { uid, resourceVersion, spec } = object;
  const { state, node, holders, number, workload } = spec;
  const [{ podUid = "", claim = UNNAMED } = {}] = holders;
  return `#${uid} #${resourceVersion} ${state} ${node} ${podUid} #${claim} ${rankOf(number)} ${keyOfWorkload(workload)} ${findLostNode(spec)}`;
}

export function keyOfMemory(memory: Memory, row: Allocation | undefined): string {
  const { states, task, queued, attaching } = memory;
  const { object, isSent } = states.get(NAME);
  const known =
    object.kind === "known"
      ? keyOfKnown(object.object)
      : `${object.isProber} ${object.kind === "ended" ? `#${object.last.resourceVersion}` : ""}`;
  const keyOfClaim = (claim: ClaimTask | undefined): string =>
    claim === undefined
      ? "-"
      : `${claim.container} #${-(claim.replaces ?? 0)} ${keyOfWorkload(claim.workload)}${flag(claim.wasCooling)}`;
  const parts = [
    known,
    flag(isSent),
    task === undefined
      ? ""
      : `${flag(task.row.version === row?.version)} ${keyOfRow(task.row)} ${keyOfKnown(task.object)} ${keyOfCall(task.call)} ${keyOfClaim(task.claim)}`,
    queued === undefined ? "" : `${flag(queued.row.version === row?.version)} ${keyOfClaim(queued.claim)}`,
    flag(memory.isReconciled) + flag(memory.isDue) + flag(memory.isBacklogged) + flag(memory.looksAgain),
    flag(memory.isLost) + (attaching ?? ""),
  ];
  return parts.join("|");
}
