/**
 * The plugin `coordinator`: the verbs of CNI over observe, plan, diff and apply (docs/coordinator.md).
 * Effects: those of attach.ts and detach.ts.
 */
import { CniError, ErrorCode } from "../../cni/error.ts";
import type { CniRequest, DetachRequest } from "../../cni/request.ts";
import { ConfigError } from "../../config/config-error.ts";
import { type CoordinatorConf, resolveCoordinatorConf } from "../../config/coordinator-settings.ts";
import type { Conflict, ProbeLink } from "../../coordinator/probe.ts";
import type { Log } from "../../lib/log.ts";
import type { Ip } from "../../net/ip.ts";
import type { Allocation } from "../../registry/registry.ts";
import { coordinatorLayers } from "../../resources/coordinator.ts";
import type { Plugin } from "../plugin.ts";
import { type Attaching, attach, checkAttachment } from "./attach.ts";
import type { CoordinatedAttachments } from "./attachments.ts";
import { collect, type Detaching, detach } from "./detach.ts";
import { type CoordinatorTools, settingsOf } from "./gather.ts";
import { Turns } from "./turns.ts";

interface Attachment {
  readonly containerId: string;
  readonly ifName: string;
}

export interface CoordinatorPluginOptions extends CoordinatorTools {
  /** The log that a configuration asks for. Throws CniError when it must not be written. */
  readonly pluginLog: (options: CoordinatorConf["logOptions"]) => Log;
  /** Whether `berth` has found the address to be free before it was on the NIC. */
  readonly isVerified: (attachment: Attachment, ip: Ip) => boolean;
  /** Whether another pod has the address, too, as a machine migrates. Absent: none ever has. */
  readonly isShared?: ((attachment: Attachment, ip: Ip) => boolean) | undefined;
  readonly attachments: CoordinatedAttachments;
  readonly refuseConflict: (attachment: Attachment, conflict: Conflict, link: ProbeLink) => Promise<CniError>;
}

function deletedMeanwhile({ containerId, ifName }: Attachment): CniError {
  const text = `Interface "${ifName}" of container ${containerId} was deleted while it was being attached`;
  return new CniError(ErrorCode.TryAgainLater, text);
}

const keyOf = ({ containerId, ifName }: Attachment): string => `${containerId} ${ifName}`;

/** An attachment without its DEL: the agent itself takes away what was made for it. */
export type WithdrawnAttachment = Pick<Allocation, "containerId" | "ifName" | "netns" | "network">;

export interface CoordinatorPlugin extends Plugin, Disposable {
  /** What a DEL would do, which may still come, and finds nothing then. */
  withdraw(attachment: WithdrawnAttachment, conf: CoordinatorConf): Promise<void>;
}

export function createCoordinatorPlugin(options: CoordinatorPluginOptions): CoordinatorPlugin {
  const announcements = new Map<string, Disposable>();
  /** ADDs that may be asking the segment. A DEL of the same attachment ends them: nothing may be made after it. */
  const underWay = new Map<string, AbortController>();
  const turns = new Turns();
  const forget = (attachment: Attachment): void => {
    announcements.get(keyOf(attachment))?.[Symbol.dispose]();
    announcements.delete(keyOf(attachment));
  };
  const attachingOf = (request: CniRequest & Attachment): Attaching => {
    const { conf, warnings, networks } = settingsOf(request, options);
    const log = options.pluginLog(conf.logOptions);
    for (const warning of warnings) log.warn({ network: request.netConf.name }, warning);
    return {
      tools: options,
      ...{ conf, log, networks },
      isVerified: (ip) => options.isVerified(request, ip),
      isShared: (ip) => options.isShared?.(request, ip) === true,
      refuseConflict: (conflict, link) => options.refuseConflict(request, conflict, link),
      remember: (facts) => options.attachments.set(request, facts),
      keep: (announce) => {
        forget(request);
        const timer = setImmediate(() => announcements.set(keyOf(request), announce()));
        announcements.set(keyOf(request), { [Symbol.dispose]: () => clearImmediate(timer) });
      },
    };
  };
  const end = async (request: Detaching, conf: CoordinatorConf, log: Log): Promise<void> => {
    underWay.get(keyOf(request))?.abort(deletedMeanwhile(request));
    forget(request);
    options.attachments.delete(request);
    await turns.take(request.containerId, () => detach(options, conf, request, log));
  };
  return {
    add: async (request, signal) => {
      const attaching = attachingOf(request);
      const ended = new AbortController();
      underWay.set(keyOf(request), ended);
      const either = AbortSignal.any([signal, ended.signal]);
      const { containerId } = request;
      try {
        const { result, undo } = await turns.take(containerId, async () => {
          either.throwIfAborted();
          return attach(attaching, request, either);
        });
        return { result, undo: () => turns.take(containerId, undo) };
      } finally {
        if (underWay.get(keyOf(request)) === ended) underWay.delete(keyOf(request));
      }
    },
    check: (request) => turns.take(request.containerId, async () => checkAttachment(attachingOf(request), request)),
    del: async (request) => {
      const { conf, log } = detachSettings(options, request);
      await end(request, conf, log);
    },
    withdraw: ({ containerId, ifName, netns, network }, conf) =>
      end({ containerId, ifName, netns, netConf: { name: network } }, conf, options.log),
    gc: async (request) => {
      const removed = await collect(options, request);
      if (removed.length > 0) options.log.info({ network: request.netConf.name, removed }, "GC removed pairs");
    },
    status: async (request) => {
      const { conf, warnings } = settingsOf(request, options);
      options.pluginLog(conf.logOptions);
      return warnings.join("; ");
    },
    [Symbol.dispose]: () => {
      for (const announcement of announcements.values()) announcement[Symbol.dispose]();
      announcements.clear();
    },
  };
}

/** A DEL goes on without what its configuration fails to say: else a pod with a bad one could never go away. */
function detachSettings(
  options: CoordinatorPluginOptions,
  request: DetachRequest,
): { conf: CoordinatorConf; log: Log } {
  const { coordinator } = options.snapshot();
  let conf: CoordinatorConf;
  try {
    ({ conf } = settingsOf(request, options));
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    conf = resolveCoordinatorConf(...coordinatorLayers(coordinator));
  }
  try {
    return { conf, log: options.pluginLog(conf.logOptions) };
  } catch {
    return { conf, log: options.log };
  }
}
