/**
 * A plugin whose name is installed but which this version does not have: it refuses to attach and has nothing to detach.
 * Called by the dispatcher.
 * Effects: none.
 */
import { CniError, ErrorCode } from "../cni/error.ts";
import type { Plugin } from "./plugin.ts";

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
