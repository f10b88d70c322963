/**
 * The plugin `berth`: the verbs of CNI over the registry.
 * Effects: those of the registry.
 */
import { CniError, ErrorCode } from "../../cni/error.ts";
import type { Allocation, Registry } from "../../registry/registry.ts";
import { containerOfNetns } from "../embedded/recovery/plan-recovery.ts";
import type { Plugin } from "../plugin.ts";
import { type AddTools, addAddresses } from "./add.ts";
import { type CheckTools, checkAddresses } from "./check.ts";

/** Whether the agent can serve, from memory. */
export interface Readiness {
  readonly ready: boolean;
  /** Why no address can be recorded, a sentence: pods that run keep theirs, an ADD is refused by the registry. Absent: all is well. */
  readonly trouble?: string | undefined;
  /** Each a sentence, the most important first. */
  readonly problems: readonly string[];
}

export interface IpamPluginOptions extends AddTools, CheckTools {
  readonly catalogue: AddTools["catalogue"];
  readonly readiness: () => Readiness;
  /** As in Foundation. */
  readonly synced: (signal: AbortSignal) => Promise<void>;
}

export function createIpamPlugin(options: IpamPluginOptions): Plugin {
  const { registry, log, readiness, verified } = options;
  return {
    add: async (request, signal) => {
      await options.synced(signal);
      requireReady(readiness());
      return addAddresses(options, request, signal);
    },
    check: (request) => checkAddresses(options, request),
    del: async ({ containerId, ifName, netns, netConf }) => {
      verified.delete({ containerId, ifName });
      const own = await registry.release({ containerId, ifName, network: netConf.name });
      const released = own.length > 0 || netns === undefined ? own : await releaseRecovered(registry, netns, ifName);
      log.debug({ containerId, ifName, released: released.length }, "DEL");
    },
    gc: async ({ netConf }) => {
      if (netConf.validAttachments === undefined) return;
      const released = await registry.releaseOthers(netConf.name, netConf.validAttachments, options.nowMs());
      for (const each of released) verified.delete(each);
      if (released.length > 0) log.info({ network: netConf.name, released: released.length }, "GC released addresses");
    },
    status: async () => {
      const now = readiness();
      requireReady(now);
      requireRecording(now);
      return now.problems.join("; ");
    },
  };
}

function requireReady({ ready, problems }: Readiness): void {
  if (ready) return;
  throw new CniError(ErrorCode.PluginNotAvailable, `Berth is not ready: ${problems[0] ?? "it is starting"}`, {
    details: problems.join("\n"),
  });
}

function requireRecording({ trouble, problems }: Readiness): void {
  if (trouble === undefined) return;
  throw new CniError(ErrorCode.LimitedConnectivity, `Pods keep their network, new ones get no address: ${trouble}`, {
    details: problems.join("\n"),
  });
}

/** What a recovery found on a NIC, without any container (docs/recovery.md). */
function releaseRecovered(registry: Registry, netns: string, ifName: string): Promise<readonly Allocation[]> {
  return registry.release({ containerId: containerOfNetns(netns), ifName });
}
