import type { AllocationRecord } from "./allocation-record.ts";

export interface PodRecord {
  readonly namespace: string;
  readonly name: string;
  /** Absent where pods are unknown, as outside of a cluster. */
  readonly pod?: { readonly uid: string; readonly node: string; readonly phase: string } | undefined;
  /** Whether pods are known, and this one does not exist. */
  readonly isMissing: boolean;
  /** Allocations of the pod's NICs, and those that are retained for it. */
  readonly allocations: readonly AllocationRecord[];
}
