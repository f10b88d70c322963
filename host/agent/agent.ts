/**
 * One agent, from its start to its end: the socket's lock, what its mode rests on, plugins, spool, socket, in this order; and back.
 * Effects: those of its parts.
 */
import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { createFaultCounter, type FaultPlan, openFaults } from "../lib/fault.ts";
import { invariant } from "../lib/invariant.ts";
import type { Log } from "../lib/log.ts";
import type { Backend, BackendOptions } from "./backend.ts";
import type { ClusterAccess } from "./cluster/connect.ts";
import { openCoordinator } from "./coordinator/plugin.ts";
import { openEmbeddedBackend } from "./embedded/backend.ts";
import { openIfacer } from "./ifacer/plugin.ts";
import { createIpamPlugin, type Readiness } from "./ipam/plugin.ts";
import { startMaintenance } from "./maintenance.ts";
import { watchRegistry } from "./registry-watch.ts";
import { createDispatcher } from "./server/dispatcher.ts";
import { logReadiness } from "./server/readiness-log.ts";
import { lockSocket } from "./server/socket-lock.ts";
import { listenOnSocket } from "./server/socket-server.ts";
import { type SocketWatch, watchSocket } from "./server/socket-watch.ts";
import { Spool } from "./server/spool.ts";
import { createStatusApi } from "./server/status-api.ts";

export interface AgentOptions {
  /** Of the embedded mode: the manifests. Exactly one of this and `cluster` is given. */
  readonly configDirectory?: string | undefined;
  readonly cluster?: ClusterAccess | undefined;
  /** Where the runtimes read network definitions; need not be there. */
  readonly cniConfDirectory: string;
  /** Where `/var/log/vendor/` of network definitions is on this machine. */
  readonly logDirectory: string;
  readonly stateDirectory: string;
  readonly spoolDirectory: string;
  readonly socketPath: string;
  readonly nodeName?: string | undefined;
  /** Of the embedded mode; a cluster's node has its own. */
  readonly nodeLabels?: Readonly<Record<string, string>>;
  readonly lockWaitMs: number;
  /** The built core, berth-core.wasm. */
  readonly coreWasm: Uint8Array;
  readonly version: string;
  readonly faultPlan?: FaultPlan | undefined;
  readonly log: Log;
  /** The agent cannot go on: its registry's thread died, or another agent serves its socket. */
  readonly onDeath: (error: Error) => void;
}

export interface Agent {
  /** Requests under way finish; what is recorded stays. */
  stop(): Promise<void>;
}

/** What has to be closed, the last opened first. */
type Closers = (() => Promise<void> | void)[];

/** CLOCK_MONOTONIC: the same in all processes of one boot, untouched by whoever sets the time. */
function monotonicMs(): number {
  return Number(process.hrtime.bigint() / 1_000_000n);
}

function readBootId(): string {
  return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
}

/** Resolves when the socket answers. Rejects, with everything undone, when a part cannot start. */
export async function startAgent(options: AgentOptions): Promise<Agent> {
  const { log } = options;
  const closers: Closers = [];
  const stop = async (): Promise<void> => {
    for (const close of closers.splice(0).reverse()) await close();
  };
  try {
    await assemble(options, closers);
  } catch (error) {
    await stop();
    throw error;
  }
  log.info({ socket: options.socketPath, state: options.stateDirectory, config: options.configDirectory }, "Serving");
  return { stop };
}

async function assemble(options: AgentOptions, closers: Closers): Promise<void> {
  const { log } = options;
  const faultCounter = createFaultCounter();
  const faults = openFaults(options.faultPlan, faultCounter);
  const bootId = readBootId();
  const node = options.nodeName ?? hostname();
  const { socketPath, stateDirectory, lockWaitMs } = options;
  const onWaiting = (holder: string): void =>
    log.warn({ state: stateDirectory, holder, waitMs: lockWaitMs }, "Waiting for the other agent to end");
  const onNotice = (text: string): void => log.warn({ state: stateDirectory }, text);
  const base = {
    ...options,
    node,
    bootId,
    nowMs: monotonicMs,
    faultCounter,
    onWaiting,
    witness: `${socketPath}.registry`,
    onNotice,
  };
  const lock = await lockSocket({ path: socketPath, lockWaitMs, log });
  closers.push(() => lock.release());
  const foundation = await openFoundation(options, base);
  closers.push(() => foundation.close());
  const { resources, tools } = foundation;

  const coordinator = openCoordinator({
    ...tools,
    prober: tools.prober,
    snapshot: () => resources.state.snapshot,
    isCluster: foundation.mode === "cluster",
    faults,
    logDirectory: options.logDirectory,
  });
  closers.push(() => coordinator.close());
  foundation.fenceWith?.((attachment) => coordinator.withdraw(attachment));
  const ifacer = await openIfacer({
    ...{ stateDirectory: options.stateDirectory, bootId, faults, log },
    permission: () => resources.state.snapshot.vendorConf.ifacer,
  });
  closers.push(() => ifacer[Symbol.dispose]());
  const registryWatch = watchRegistry(tools.registry, log);
  closers.push(() => registryWatch.close());
  const readiness = (): Readiness => readinessOf(foundation);
  const plugins = {
    berth: createIpamPlugin({ ...tools, readiness, synced: foundation.synced }),
    coordinator: coordinator.plugin,
    ifacer: ifacer.plugin,
  };
  const dispatch = createDispatcher(plugins, log);
  const spool = new Spool(options.spoolDirectory, dispatch, faults, log);
  await spool.drain();
  const janitor = startMaintenance({ ...tools, spool });
  closers.push(() => janitor.close());
  let watch: SocketWatch | undefined;
  const server = await listenOnSocket({
    path: socketPath,
    dispatch,
    inspect: createStatusApi({
      ...tools,
      mode: foundation.mode,
      live: foundation.live,
      recover: foundation.recover?.bind(foundation),
      stats: () => foundation.stats(),
      readiness,
      spool,
      version: options.version,
      socketRestored: () => watch?.restored ?? 0,
      explainCoordinator: (namespace, pod) => coordinator.attachments.describe(namespace, pod),
    }),
    beforeAdd: async () => {
      resources.flush();
      await spool.drain();
    },
    faults,
    log,
  });
  closers.push(() => server.close());
  const seen = watchSocket({ path: socketPath, lock, server, log, onDeath: options.onDeath });
  watch = seen;
  closers.push(() => seen.close());
  closers.push(logReadiness(readiness, log));
}

async function openFoundation(
  { configDirectory, cluster, nodeLabels = {} }: AgentOptions,
  base: BackendOptions,
): Promise<Backend> {
  if (configDirectory !== undefined && cluster === undefined) {
    return openEmbeddedBackend({ ...base, configDirectory, nodeLabels });
  }
  invariant(configDirectory === undefined && cluster !== undefined, "An agent has a directory or a cluster, not both");
  const { connectCluster } = await import("./cluster/connect.ts");
  return connectCluster(cluster, base);
}

/** Not ready while something that never was read rightly may hold what must not be handed out. */
function readinessOf(foundation: Backend): Readiness {
  const { problems, snapshot } = foundation.resources.state;
  const { trouble } = foundation.tools.registry;
  return {
    ready: foundation.isReady(),
    trouble,
    get problems() {
      return [...(trouble === undefined ? [] : [trouble]), ...problems, ...snapshot.problems, ...foundation.problems()];
    },
  };
}
