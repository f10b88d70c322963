/** Learns of the ADDs and DELs of a world, whichever runtime or agent gets them. */
import type { LabPod } from "./objects.ts";

export interface Witness {
  /** An ADD of the pod's NIC is about to be called. */
  adding(pod: Pick<LabPod, "name" | "uid">, ifName: string): WitnessedAdd;
  /** A DEL is about to be called, or the machine has lost power. Default: all NICs of the pod. */
  leaving(podUid: string, ifName?: string): void;
  /** The member that had the address may get another one: the test is about that. */
  excuse(address: string): void;
}

/** One of the two is called, at once after the answer. */
export interface WitnessedAdd {
  /** Addresses without length. */
  answered(ips: readonly string[]): void;
  /** `code` of the CNI error; undefined: there was no answer. */
  refused(code: number | undefined, text: string): void;
}
