/**
 * The plugin `ifacer`: the CNI verbs for devices that pods of several definitions share (docs/ifacer.md). DEL, GC and
 * undoing an ADD delete nothing: other pods may use the device, and nothing on the node says how many.
 */
import { pluginKeys } from "../../cni/net-conf.ts";
import type { CniRequest } from "../../cni/request.ts";
import type { PlacedEntry } from "../../config/network-definition.ts";
import { type DeviceSpec, decodeDeviceSpec } from "../../ifacer/device-spec.ts";
import { OWN_NETNS } from "../../kernel/netns.ts";
import { openNamespace } from "../../kernel/open-namespace.ts";
import type { Operation } from "../../plan/operation.ts";
import type { Plugin } from "../request/plugin.ts";
import { attach, checkDevices, type IfacerDeps, restoreDevices, undoMoves } from "./attach.ts";
import { MoveRecord } from "./move-record.ts";

/** Throws ConfigError. */
function specOf({ netConf }: { readonly netConf: Pick<CniRequest["netConf"], "raw"> }): DeviceSpec {
  return decodeDeviceSpec(pluginKeys(netConf), "CNI configuration");
}

export function createIfacerPlugin(deps: IfacerDeps): Plugin {
  const nothing = async (): Promise<[]> => [];
  return {
    add: async (request) => ({ result: await attach(specOf(request), request, deps), undo: async () => {} }),
    check: async (request) => checkDevices(specOf(request), deps),
    del: nothing,
    gc: nothing,
    status: async (request) => {
      specOf(request);
      return "";
    },
  };
}

interface OpenIfacer extends Disposable {
  readonly plugin: Plugin;
  /** {@link restoreDevices} of a plugin entry; throws ConfigError for an invalid one. */
  restore(entry: PlacedEntry["entry"]): Promise<readonly Operation[]>;
}

interface OpenIfacerOptions extends Pick<IfacerDeps, "faults" | "log" | "permission"> {
  readonly stateDirectory: string;
  readonly bootId: string;
}

/**
 * Opens the ifacer after undoing the unfinished move of an agent that was killed. Throws NetlinkError if the kernel
 * refuses a socket.
 */
export async function openIfacer({ stateDirectory, bootId, ...rest }: OpenIfacerOptions): Promise<OpenIfacer> {
  const host = openNamespace(OWN_NETNS);
  const deps = { host, moves: new MoveRecord(stateDirectory, bootId), ...rest };
  await undoMoves(deps);
  return {
    plugin: createIfacerPlugin(deps),
    restore: (entry) => restoreDevices(specOf({ netConf: { raw: entry } }), deps),
    [Symbol.dispose]: () => host[Symbol.dispose](),
  };
}
