/**
 * Which machine it is that has a node's name. The name and the Node object's UID change owners and the machine
 * (docs/decisions/0053); `systemUUID` with `machineID`, as the kubelet reports them, do not.
 */
import { hash } from "node:crypto";

/** `status.nodeInfo` of a Node, or the same of the host; "" where the machine has none. */
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

/**
 * Returns whether what names this machine, or none, is of `machine`. Older writers name none; an unknown machine
 * (undefined) is none of those that are named.
 */
export function isOfMachine(named: { readonly machine?: string | undefined }, machine: string | undefined): boolean {
  return named.machine === undefined || named.machine === machine;
}

/** Returns whether both are named, and are two. */
export function areTwoMachines(
  one: { readonly machine?: string | undefined } | undefined,
  other: { readonly machine?: string | undefined } | undefined,
): boolean {
  return one?.machine !== undefined && other?.machine !== undefined && one.machine !== other.machine;
}
