/**
 * What the dispatcher needs of a plugin, and what a plugin may use.
 */
import type { AttachRequest, DetachRequest, NodeRequest } from "../cni/request.ts";
import type { CniResult } from "../cni/result.ts";

/** A result that counts only once it has reached the caller. */
export interface Addition {
  readonly result: CniResult;
  /** Takes back what the ADD recorded, when nobody is there to hear the answer (undo). */
  readonly undo: () => Promise<void>;
}

/** One CNI plugin. Every method rejects with CniError, ConfigError or RegistryError; anything else is a bug. */
export interface Plugin {
  add(request: AttachRequest, signal: AbortSignal): Promise<Addition>;
  check(request: AttachRequest): Promise<void>;
  del(request: DetachRequest): Promise<void>;
  gc(request: NodeRequest): Promise<void>;
  /** Resolves with a notice for people, "" when there is nothing to say. */
  status(request: NodeRequest): Promise<string>;
}
