/** The plugin `coordinator`: the CNI verbs over observe, plan, diff and apply (docs/develop/coordinator.md). */

import { CniError, ErrorCode } from "../../cni/error.ts";
import type { AttachRequest, CniRequest, DetachRequest } from "../../cni/request.ts";
import { isConfigError } from "../../config/config-error.ts";
import {
  type CoordinatorConf,
  DEFAULT_COORDINATOR_CONF,
  resolveCoordinatorConf,
} from "../../config/coordinator-settings.ts";
import type { PlacedEntry } from "../../config/network-definition.ts";
import { Announcer } from "../../coordinator/announcer.ts";
import { AddressRefusal } from "../../coordinator/plan/address-policy.ts";
import { isPairName } from "../../coordinator/plan/names.ts";
import type { Comparison } from "../../findings/node/find-drift.ts";
import { LinkRemover } from "../../kernel/link-remover.ts";
import { OWN_NETNS, readNetnsIdentity } from "../../kernel/netns.ts";
import { watchNodeChanges } from "../../kernel/node-changes.ts";
import { MIRROR_GATHER_MS, type NodeMirror } from "../../kernel/node-mirror.ts";
import { openNode } from "../../kernel/open-namespace.ts";
import type { Log } from "../../lib/log.ts";
import { PeriodicWorker } from "../../lib/periodic.ts";
import { KeyedSerialQueue } from "../../lib/serial.ts";
import { insteadOf, tryOr } from "../../lib/try-or.ts";
import type { CoordinatorMetrics } from "../../metrics/agent-metrics.ts";
import { equalIp } from "../../net/ip.ts";
import type { Operation } from "../../plan/operation.ts";
import type { Allocation, Attachment } from "../../registry/registry.ts";
import { coordinatorLayers } from "../../resources/coordinator.ts";
import type { OccupiedIp } from "../../resources/occupied-ips.ts";
import { NodeAddresses } from "../ipam/occupied-addresses.ts";
import type { RefusedAddresses } from "../ipam/refused-addresses.ts";
import type { Plugin } from "../request/plugin.ts";
import { attach } from "./attach.ts";
import { CoordinatedAttachments, keyOf } from "./attachments.ts";
import { checkAttachment, compareAttachment, repairAttachment, restoreNodeSide } from "./compare.ts";
import type { AttachContext } from "./decide.ts";
import { collect, type DetachInput, detach } from "./detach.ts";
import { KnownAttachments } from "./known-attachments.ts";
import type { LateDetectionDeps } from "./late-detection.ts";
import { explainMacConflict } from "./mac-conflict.ts";
import { NicRemover } from "./nic-remover.ts";
import { NodeRepair } from "./node-repair.ts";
import { type NodeState, observeNode } from "./observe-node.ts";
import { PairRemover } from "./pair-remover.ts";
import { openPluginLogs, type PluginLogs } from "./plugin-logs.ts";
import { type CoordinatorDeps, SettingsReader } from "./settings.ts";

interface CoordinatorPluginOptions extends CoordinatorDeps, Omit<LateDetectionDeps, "registry"> {
  /** The log files that network definitions name. */
  readonly logs: Pick<PluginLogs, "for">;
  readonly attachments: CoordinatedAttachments;
  readonly refused: Pick<RefusedAddresses, "add">;
  /** Whether the agent has released the addresses of the attachment, whose sandbox is still there. */
  readonly isReleased: (attachment: Attachment) => boolean;
}

/** An attachment that the agent itself detaches, without a DEL. */
type WithdrawnAttachment = Pick<Allocation, "containerId" | "ifName" | "netns" | "network">;

interface CoordinatorPlugin extends Plugin, Disposable {
  /** Like a DEL, and waits until the pair is gone: the pod may still run. A later DEL finds nothing to do. */
  withdraw(attachment: WithdrawnAttachment, conf: CoordinatorConf): Promise<void>;
  /** Rejects as CHECK does. */
  compare(request: AttachRequest): Promise<Comparison>;
  /** Restores the ADD's state on the node, and returns the operations. Rejects as CHECK does, and with ApplyError. */
  restoreNodeSide(request: AttachRequest): Promise<readonly Operation[]>;
  /**
   * Applies these operations and returns them; none if a DEL of the served attachment has come meanwhile. Rejects as
   * {@link repairAttachment}.
   */
  repair(request: AttachRequest, isServed: boolean): Promise<readonly Operation[]>;
}

function deletedMeanwhile({ containerId, ifName }: Attachment): CniError {
  const text = `Interface "${ifName}" of container ${containerId} was deleted while it was being attached`;
  return new CniError(ErrorCode.TryAgainLater, text);
}

/** Its main plugin came too late. */
function releasedMeanwhile({ containerId, ifName }: Attachment): CniError {
  const text = `The addresses of interface "${ifName}" of container ${containerId} were released while it was being attached, because its pod is deleted`;
  return new CniError(ErrorCode.TryAgainLater, text);
}

export function createCoordinatorPlugin(options: CoordinatorPluginOptions): CoordinatorPlugin {
  const settings = new SettingsReader(options);
  const announcer = new Announcer();
  /** ADDs that may be probing. A DEL of the same attachment aborts them, so that nothing is created after it. */
  const running = new Map<string, AbortController>();
  /** An ADD waits until a DEL of its container has retired the pair, which it would mistake for its own. */
  const queue = new KeyedSerialQueue();
  /** Serves a call of the runtime, which announcements give way to. */
  const serve = async <T>(work: () => Promise<T>): Promise<T> => {
    announcer.giveWay();
    try {
      return await work();
    } finally {
      announcer.giveWay();
    }
  };
  const contextOf = (request: CniRequest & Attachment): AttachContext => {
    const { conf, warnings, networks } = settings.read(request);
    const log = options.logs.for(conf.logOptions);
    for (const warning of warnings) log.warn({ network: request.netConf.name }, warning);
    return {
      deps: options,
      conf,
      networks,
      log,
      remember: (facts) => options.attachments.set(request, facts),
      announceLater: (announcement) => announcer.announce(keyOf(request), announcement),
    };
  };
  /** The pod's next ADD gets another address than the refused one, if that was Berth's. */
  const noteRefusal = async (attachment: Attachment, error: unknown): Promise<void> => {
    if (!(error instanceof AddressRefusal)) return;
    const rows = await options.registry.findAttachment(attachment);
    const row = rows.find(({ ip }) => equalIp(ip, error.ip));
    if (row !== undefined) options.refused.add(row.owner, { space: row.space, ip: row.ip, why: error.why });
  };
  const nics = new NicRemover(options.log, options.faults);
  const detachNow = async (request: DetachInput, conf: CoordinatorConf, log: Log, remover?: NicRemover) => {
    running.get(keyOf(request))?.abort(deletedMeanwhile(request));
    await queue.run(request.containerId, () => {
      // Not before: an ADD under way that is too late to be aborted notes its attachment first.
      announcer.cancel(keyOf(request));
      const areDispensable = options.attachments.isNicDispensable(request);
      options.attachments.delete(request);
      return detach(options, conf, request, log, remover && { remover, areDispensable });
    });
  };
  const add: Plugin["add"] = async (request, signal) => {
    const context = contextOf(request);
    const deleted = new AbortController();
    running.set(keyOf(request), deleted);
    const either = AbortSignal.any([signal, deleted.signal]);
    const { containerId } = request;
    try {
      const { result, undo } = await queue.run(containerId, async () => {
        either.throwIfAborted();
        if (options.isReleased(request)) throw releasedMeanwhile(request);
        await options.remover.clear(containerId, () => readNetnsIdentity(request.netns));
        const addition = await attach(context, request, either);
        options.attachments.setRequest(request);
        return addition;
      });
      const undoAll = (): Promise<void> => {
        announcer.cancel(keyOf(request));
        options.attachments.delete(request);
        return queue.run(containerId, undo);
      };
      return { result, undo: undoAll };
    } catch (error) {
      const told = explainMacConflict(error, request);
      await noteRefusal(request, told);
      throw told;
    } finally {
      if (running.get(keyOf(request)) === deleted) running.delete(keyOf(request));
    }
  };
  return {
    add: (request, signal) => serve(() => add(request, signal)),
    check: (request) =>
      serve(() => queue.run(request.containerId, async () => checkAttachment(contextOf(request), request))),
    repair: (request, isServed) =>
      queue.run(request.containerId, async () => {
        if (isServed && !options.attachments.has(request)) return [];
        return repairAttachment(contextOf(request), request);
      }),
    compare: (request) => queue.run(request.containerId, async () => compareAttachment(contextOf(request), request)),
    restoreNodeSide: (request) =>
      queue.run(request.containerId, async () => restoreNodeSide(contextOf(request), request)),
    del: async (request) => {
      const { conf, log } = detachSettings(options, settings, request);
      await serve(() => detachNow(request, conf, log, nics));
      return [];
    },
    withdraw: async ({ containerId, ifName, netns, network }, conf) => {
      await detachNow({ containerId, ifName, netns, netConf: { name: network } }, conf, options.log);
      await options.remover.flush();
    },
    gc: async (request) => {
      const removed = await collect(options, request);
      if (removed.length > 0) options.log.info({ network: request.netConf.name, removed }, "GC removed veth pairs");
      return [];
    },
    status: async (request) => {
      const { conf, warnings } = settings.read(request);
      options.logs.for(conf.logOptions);
      return warnings.join("; ");
    },
    [Symbol.dispose]: () => announcer[Symbol.dispose](),
  };
}

/** The settings for a DEL, which ignores an invalid configuration: otherwise the pod could never be deleted. */
function detachSettings(
  options: CoordinatorPluginOptions,
  settings: SettingsReader,
  request: DetachRequest,
): { conf: CoordinatorConf; log: Log } {
  const conf =
    insteadOf(isConfigError, undefined, () => settings.read(request).conf) ??
    resolveCoordinatorConf(...coordinatorLayers(options.snapshot().coordinator));
  return tryOr(() => ({ conf, log: options.logs.for(conf.logOptions) }), { conf, log: options.log });
}

export interface OpenCoordinator {
  readonly plugin: Plugin;
  readonly attachments: CoordinatedAttachments;
  readonly compare: CoordinatorPlugin["compare"];
  readonly repair: CoordinatorPlugin["repair"];
  observeNode(): NodeState;
  /** Returns the node's addresses and its routes' next hops; the same value while unchanged. Throws NetlinkError. */
  readonly readOccupied: () => readonly OccupiedIp[];
  /** Restores the node's state when other programs remove it. */
  readonly nodeRepair: Pick<NodeRepair, "problems" | "isCutOff">;
  /** Removes the attachment's objects, as its DEL would. */
  withdraw(attachment: WithdrawnAttachment): Promise<void>;
  close(): Promise<void>;
}

interface OpenCoordinatorOptions
  extends Omit<CoordinatorDeps, "host" | "remover">,
    Omit<LateDetectionDeps, "registry"> {
  /** Whether pools, pods and settings are known. */
  readonly isReady: () => boolean;
  /** Restores the devices of an entry of the ifacer; returns the operations. */
  readonly restoreDevices: (entry: PlacedEntry["entry"]) => Promise<readonly Operation[]>;
  /** Tells people about the node: a sentence. */
  readonly reportNode: (reason: string, sentence: string) => void;
  /** A link of the node that is no pair is gone, or may be. */
  readonly onLinkGone: () => void;
  readonly refused: Pick<RefusedAddresses, "add">;
  readonly isReleased: CoordinatorPluginOptions["isReleased"];
  readonly nowMs: () => number;
  readonly metrics: CoordinatorMetrics;
  /** Directory that stands for `/var/log/vendor/` of network definitions on this machine. */
  readonly logDirectory: string;
}

/** Most differences between mirror and kernel that a log line shows. */
const MAX_SHOWN_DIFFERENCES = 16;

/** Interval at which the mirror of the node's network is compared with the kernel's state: milliseconds. */
const MIRROR_COMPARISON_INTERVAL_MS = 60_000;

/** Shortest time between two listings of the node's gateways: milliseconds. */
const LISTING_REST_MS = 1_000;

/** The same as a multiple of the last one's duration: listings take at most one percent of the time. */
const LISTING_REST = 100;

/**
 * Lists the node's gateways at once, so that no ADD has to wait, and when some may have gone. Compares the mirror with
 * the kernel's state from time to time. A difference is a defect: the mirror is safe without this.
 */
function startListing(
  mirror: NodeMirror,
  { log, metrics, nowMs }: Pick<OpenCoordinatorOptions, "log" | "metrics" | "nowMs">,
): PeriodicWorker {
  let [comparedMs, tookMs] = [nowMs(), 0];
  const compare = (): void => {
    const differences = mirror.verify();
    if (differences.length === 0) return;
    metrics.mirrorDrifts.inc();
    const shown = differences.slice(0, MAX_SHOWN_DIFFERENCES);
    log.warn(
      { differences: shown, count: differences.length },
      "The mirror of the node's network differed from the kernel's state, which was read again",
    );
  };
  return new PeriodicWorker({
    failure: "Comparing the mirror of the node's network with the kernel's state failed",
    work: async () => {
      const startMs = nowMs();
      if (startMs >= comparedMs + MIRROR_COMPARISON_INTERVAL_MS) {
        comparedMs = startMs;
        compare();
      }
      await mirror.listGateways();
      tookMs = nowMs() - startMs;
      return comparedMs + MIRROR_COMPARISON_INTERVAL_MS - nowMs();
    },
    restMs: () => Math.max(LISTING_REST_MS, LISTING_REST * tookMs),
    retryMs: () => MIRROR_COMPARISON_INTERVAL_MS,
    log,
  });
}

/**
 * Opens the node's network namespace, the thread that deletes links, and the plugin on top of them.
 * Throws NetlinkError if the kernel refuses a socket.
 */
export function openCoordinator(options: OpenCoordinatorOptions): OpenCoordinator {
  const { log, nowMs, logDirectory: directory } = options;
  const attachments = new CoordinatedAttachments();
  let remover: PairRemover | undefined;
  let repair: NodeRepair | undefined;
  let listing: PeriodicWorker | undefined;
  const host = openNode(OWN_NETNS, {
    onLinkGone: (index, name) => {
      remover?.linkGone(index);
      if (!isPairName(name)) options.onLinkGone();
      // A pair goes with its pod, after a DEL.
      else if (attachments.hasPair(name)) repair?.note({ kind: "unknown" });
    },
    onChange: (change) => repair?.note(change),
    onGatewaysOutdated: () => listing?.wake(),
    onLoss: (error) => {
      log.info({ err: error }, "Notifications about the node's network were lost; reading its state again");
      options.onLinkGone();
    },
  });
  const listings = startListing(host.mirror, options);
  listing = listings;
  const pairs = new PairRemover({ host, links: new LinkRemover(host.entrance), log });
  remover = pairs;
  const isAdministrators = (logFile: string): boolean =>
    options.snapshot().coordinator?.spec.logOptions?.logFile === logFile ||
    options.definitions.isAdministratorsLog?.(logFile) !== false;
  const logs = openPluginLogs({ directory, isAdministrators, log, nowMs });
  const occupied = new NodeAddresses(host.mirror);
  const plugin = createCoordinatorPlugin({ ...options, attachments, host, remover: pairs, logs });
  const known = new KnownAttachments({ ...options, attachments, startMs: nowMs() });
  const repairing = new NodeRepair({
    ...{ host, metrics: options.metrics, nowMs, log },
    known: async () => (options.isReady() ? known.read() : undefined),
    restore: (request) => plugin.restoreNodeSide(request),
    restoreDevices: options.restoreDevices,
    report: (sentence) => options.reportNode("NodeNetworkRestored", sentence),
  });
  repair = repairing;
  const rpFilter = (): number =>
    options.snapshot().coordinator?.spec.hostRPFilter ?? DEFAULT_COORDINATOR_CONF.hostRPFilter;
  const watch = watchNodeChanges(host, { gatherMs: MIRROR_GATHER_MS }, (change) => {
    // Mostly the writes of an ADD.
    if (change.kind !== "setting" || (change.rpFilter !== rpFilter() && change.forwarding !== 1))
      repairing.note(change);
  });
  return {
    plugin,
    attachments,
    compare: (request) => plugin.compare(request),
    nodeRepair: repairing,
    repair: (request, isServed) => plugin.repair(request, isServed),
    observeNode: () => {
      const { coordinator } = options.snapshot();
      return observeNode(host, coordinator?.spec.hostRuleTable ?? DEFAULT_COORDINATOR_CONF.hostRuleTable);
    },
    readOccupied: () => occupied.read(),
    withdraw: (attachment) =>
      plugin.withdraw(attachment, options.definitions.definitionOf({ ...attachment, pod: undefined }).settings),
    close: async () => {
      plugin[Symbol.dispose]();
      watch[Symbol.dispose]();
      await repairing.close();
      await listings.close();
      await pairs.close();
      await logs.close();
      host[Symbol.dispose]();
    },
  };
}
