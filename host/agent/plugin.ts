/**
 * What the dispatcher needs of a plugin, and what a plugin may use.
 * Implemented by ipam/plugin.ts; the others stand here until they have a folder of their own.
 * Effects: none.
 */
import { CniError, ErrorCode } from "../cni/error.ts";
import type { AttachRequest, DetachRequest, NodeRequest } from "../cni/request.ts";
import type { CniResult } from "../cni/result.ts";

/** A result that counts only once it has reached the caller. */
export interface Addition {
  readonly result: CniResult;
  /** Takes back what the ADD recorded, when nobody is there to hear the answer (allocation rule 4). */
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

/** A plugin whose name is installed but which this version does not have: it refuses to attach and has nothing to detach. */
export function createAbsentPlugin(name: string): Plugin {
  const refuse = async (): Promise<never> => {
    throw new CniError(
      ErrorCode.InvalidNetworkConfig,
      `Plugin "${name}" is not part of this version of Berth; remove it from the network configuration`,
    );
  };
  const nothing = async (): Promise<void> => {};
  return { add: refuse, check: refuse, status: refuse, del: nothing, gc: nothing };
}
