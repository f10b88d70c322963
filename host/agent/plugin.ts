import type { AttachRequest, DetachRequest, NodeRequest } from "../cni/request.ts";
import type { CniResult } from "../cni/result.ts";

/** A result that takes effect only when it has reached the caller. */
export interface Addition {
  readonly result: CniResult;
  /** Undoes what the ADD recorded when the answer cannot be delivered (undo). */
  readonly undo: () => Promise<void>;
}

/** One CNI plugin. Every method rejects with CniError, ConfigError or RegistryError; any other error is a bug. */
export interface Plugin {
  add(request: AttachRequest, signal: AbortSignal): Promise<Addition>;
  check(request: AttachRequest): Promise<void>;
  del(request: DetachRequest): Promise<void>;
  gc(request: NodeRequest): Promise<void>;
  /** Resolves with a notice for the operator; "" if there is none. */
  status(request: NodeRequest): Promise<string>;
}
