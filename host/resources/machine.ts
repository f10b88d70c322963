/**
 * Identifies the machine behind a node's name. The name and the Node object's UID change owners and the machine
 * (docs/decisions/0053); `systemUUID` with `machineID`, as the kubelet reports them, do not.
 */
import { hash } from "node:crypto";

/** `status.nodeInfo` of a Node, or the host's own; "" where the machine has none. */
interface MachineNames {
  readonly systemUuid: string;
  readonly machineId: string;
}

/** Returns a digest of both, 16 hexadecimal digits; undefined if the machine has neither. */
export function machineOf({ systemUuid, machineId }: MachineNames): string | undefined {
  if (systemUuid === "" && machineId === "") return undefined;
  // Kernels differ in the case of the UUID.
  return hash("sha256", `${systemUuid.toLowerCase()}/${machineId.toLowerCase()}`, "hex").slice(0, 16);
}

/** In place of a machine: none is it, so that no agent and no taint confirms anything for it. */
export const NO_MACHINE = "-";

/** Returns whether `named` has `machine`, or none, as from older writers. An unknown machine equals no named one. */
export function isOfMachine(named: { readonly machine?: string | undefined }, machine: string | undefined): boolean {
  return named.machine === undefined || named.machine === machine;
}

/** Returns whether both are named, and differ, or one of them is none. */
export function areTwoMachines(
  one: { readonly machine?: string | undefined } | undefined,
  other: { readonly machine?: string | undefined } | undefined,
): boolean {
  if (one?.machine === NO_MACHINE || other?.machine === NO_MACHINE) return true;
  return one?.machine !== undefined && other?.machine !== undefined && one.machine !== other.machine;
}
