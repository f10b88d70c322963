import type { AttachRequest, DetachRequest, NodeRequest } from "../../cni/request.ts";
import type { CniResult } from "../../cni/result.ts";
import type { Allocation } from "../../registry/registry.ts";
import type { AuditEntry } from "../log/audit.ts";

/** A result that takes effect only when it has reached the caller. */
export interface Addition {
  readonly result: CniResult;
  /** Undoes the ADD's records when the answer cannot be delivered (undo). */
  readonly undo: () => Promise<void>;
  /** Default: the plugin assigns no addresses. */
  readonly assigned?: Assigned;
}

/** The assignment of an ADD of `berth`, for the audit log. */
export type Assigned = Required<Pick<AuditEntry, "namespace" | "pod" | "uid" | "allocations" | "sources" | "rule">>;

/** One CNI plugin. Every method rejects with CniError, ConfigError or RegistryError; any other error is a bug. */
export interface Plugin {
  add(request: AttachRequest, signal: AbortSignal): Promise<Addition>;
  check(request: AttachRequest): Promise<void>;
  /** Resolves with the released addresses. */
  del(request: DetachRequest): Promise<readonly Allocation[]>;
  /** Resolves with the released addresses. */
  gc(request: NodeRequest): Promise<readonly Allocation[]>;
  /** Resolves with a notice for the operator; "" if there is none. */
  status(request: NodeRequest): Promise<string>;
}
