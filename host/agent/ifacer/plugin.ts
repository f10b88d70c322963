/**
 * The plugin `ifacer`: the verbs of CNI for devices that pods of several definitions share (docs/ifacer.md).
 * Called by the dispatcher. DEL, GC and the undoing of an answer that nobody heard remove nothing: other pods may use the device, and
 * nothing on the node says how many.
 * Effects: those of attach.ts.
 */
import { pluginKeys } from "../../cni/net-conf.ts";
import type { CniRequest } from "../../cni/request.ts";
import { type DeviceSpec, decodeDeviceSpec } from "../../ifacer/device-spec.ts";
import type { Plugin } from "../plugin.ts";
import { attach, checkDevices, type IfacerTools } from "./attach.ts";

/** Throws ConfigError. */
function wishOf({ netConf }: CniRequest): DeviceSpec {
  return decodeDeviceSpec(pluginKeys(netConf), "CNI configuration");
}

export function createIfacerPlugin(tools: IfacerTools): Plugin {
  const nothing = async (): Promise<void> => {};
  return {
    add: async (request) => ({ result: await attach(wishOf(request), request, tools), undo: nothing }),
    check: async (request) => checkDevices(wishOf(request), tools),
    del: nothing,
    gc: nothing,
    status: async (request) => {
      wishOf(request);
      return "";
    },
  };
}
