/** The entries that the agent's parts write to the audit log. */

import type { AuditName } from "../../records/audit-line.ts";
import type { Allocation } from "../../registry/registry.ts";

/** The facts that are known when an event happens: texts are formatted later. */
export interface AuditEntry {
  readonly audit: AuditName;
  readonly plugin?: string;
  /** Default: those of the first allocation. */
  readonly namespace?: string | undefined;
  readonly pod?: string | undefined;
  readonly uid?: string | undefined;
  readonly ifName?: string | undefined;
  readonly network?: string | undefined;
  readonly containerId?: string | undefined;
  readonly allocations?: readonly Allocation[];
  readonly sources?: readonly string[];
  readonly rule?: string;
  readonly code?: number;
  readonly ms?: number;
  readonly repeats?: number;
  readonly message?: string;
  readonly details?: string | undefined;
  readonly names?: string | undefined;
}

export type Refusal = AuditEntry & Required<Pick<AuditEntry, "audit" | "plugin" | "code" | "message">>;

/** The fields that tell one request and its repetitions from others. */
export type Served = Pick<AuditEntry, "audit" | "plugin" | "namespace" | "pod" | "ifName" | "containerId">;

export interface Audit {
  /** Queues a line; never waits and never throws. */
  record(entry: AuditEntry): void;
  /** The same for a refused request, unless it only repeats the one before. Returns whether it has a line. */
  refuse(refusal: Refusal): boolean;
  /** Whether {@link served} has anything to do. */
  readonly remembersRefusals: boolean;
  /** The request was served: its next refusal is a new one. */
  served(request: Served): void;
}
