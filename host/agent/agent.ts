/** One agent from start to end: socket lock, backend of its mode, plugins, spool, socket, in this order; and back. */
import { hostname } from "node:os";
import { createFaultCounter, openFaults } from "../lib/fault.ts";
import { invariant } from "../lib/invariant.ts";
import type { Log } from "../lib/log.ts";
import { PeriodicWorker } from "../lib/periodic.ts";
import { readText } from "../lib/regular-file.ts";
import { AGENT_METRICS, type AgentMetricSet } from "../metrics/agent-metrics.ts";
import { collectProcess, measureEventLoop } from "../metrics/common-metrics.ts";
import type { HttpListener, ServerSettings } from "../metrics/listen.ts";
import { MetricSet } from "../metrics/metric.ts";
import { listenForScrapes } from "../metrics/scrape-server.ts";
import type { Registry, RegistryHealth } from "../registry/registry.ts";
import type { Backend, BackendOptions } from "./backend.ts";
import type { ClusterAccess } from "./cluster/connect.ts";
import { openCoordinator } from "./coordinator/plugin.ts";
import { openEmbeddedBackend } from "./embedded/backend.ts";
import { openIfacer } from "./ifacer/plugin.ts";
import { OccupiedAddresses } from "./ipam/occupied-addresses.ts";
import { IpamPlugin } from "./ipam/plugin.ts";
import type { Audit } from "./log/audit.ts";
import { AuditLog } from "./log/audit-log.ts";
import { History } from "./log/history.ts";
import { collectAgent } from "./metrics/collect.ts";
import { RequestMeter } from "./metrics/request-meter.ts";
import { MissingNics } from "./operate/missing-nics.ts";
import { Operations } from "./operate/operations.ts";
import { createStatusApi, type Routes } from "./operate/status-api.ts";
import type { Driver } from "./request/driver.ts";
import { NETNS_FOLDERS } from "./request/live-namespaces.ts";
import type { Plugin } from "./request/plugin.ts";
import { closeToTenants } from "./request/tenant-definitions.ts";
import type { Answer } from "./server/answer.ts";
import { Dispatcher } from "./server/dispatcher.ts";
import { logReadiness } from "./server/readiness-log.ts";
import { lockSocket } from "./server/socket-lock.ts";
import { listenOnSocket } from "./server/socket-server.ts";
import { type SocketWatch, watchSocket } from "./server/socket-watch.ts";
import { Spool } from "./server/spool.ts";

type OfBackend = "cniConfDirectory" | "coreWasm" | "faultPlan" | "lockWaitMs" | "log" | "stateDirectory";

interface AgentOptions extends Pick<BackendOptions, OfBackend> {
  /** The manifests of the embedded mode. Exactly one of this and `cluster` is given. */
  readonly configDirectory?: string | undefined;
  readonly cluster?: ClusterAccess | undefined;
  /** Of runtimes that do not speak CNI. */
  readonly drivers: readonly Driver[];
  /** Directory that stands for `/var/log/vendor/` of network definitions on this machine. */
  readonly logDirectory: string;
  readonly spoolDirectory: string;
  readonly socketPath: string;
  /** Default: metrics are on the socket only. */
  readonly scraping?: ServerSettings | undefined;
  /** Those of packages. */
  readonly servers: readonly Server<AgentParts>[];
  /** Routes of packages for the status API. */
  readonly routes: readonly ((backend: Backend, audit: Audit) => Routes)[];
  readonly nodeName?: string | undefined;
  /** The node's labels in the embedded mode; in a cluster the Node has its own. */
  readonly nodeLabels?: Readonly<Record<string, string>>;
  readonly version: string;
  /** The agent has to end: its registry's thread died, or another agent serves its socket. */
  readonly onDeath: (error: Error) => void;
}

/** A server beside the agent or the controller. The log has its URL under its `name`. */
export interface Server<Parts> {
  readonly name: string;
  listen(parts: Parts): Promise<HttpListener>;
}

/** The parts that a server beside the agent may use. */
export interface AgentParts {
  readonly backend: Backend;
  /** Answers GET of the status API. */
  readonly answer: (url: string, signal: AbortSignal) => Promise<Answer>;
  readonly version: string;
  /** Monotonic: milliseconds. */
  readonly nowMs: () => number;
  readonly log: Log;
}

/** Closed in reverse order. */
type Closers = (() => Promise<void> | void)[];

/** CLOCK_MONOTONIC: the same in all processes of one boot, and unaffected by changes of the wall clock. */
function monotonicMs(): number {
  return Number(process.hrtime.bigint() / 1_000_000n);
}

/**
 * Resolves when the socket answers. Rejects, with everything undone, when a part cannot start. `stop` waits for
 * requests in progress; records stay.
 */
export async function startAgent(options: AgentOptions) {
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
  const bootId = readText("/proc/sys/kernel/random/boot_id").trim();
  const node = options.nodeName ?? hostname();
  const { socketPath, stateDirectory, lockWaitMs } = options;
  const onWaiting = (holder: string): void =>
    log.warn({ state: stateDirectory, holder, waitMs: lockWaitMs }, "Waiting for the other agent to end");
  const audit = new AuditLog({ directory: options.logDirectory, node, log, nowMs: monotonicMs });
  closers.push(() => audit.close());
  const onNotice = (text: string): void => log.warn({ state: stateDirectory }, text);
  const set: AgentMetricSet = new MetricSet(AGENT_METRICS, (text, error) => log.warn({ err: error }, text));
  closers.push(measureEventLoop(set.metrics));
  const base = {
    ...options,
    metrics: set.metrics,
    node,
    bootId,
    nowMs: monotonicMs,
    faultCounter,
    onWaiting,
    witness: `${socketPath}.registry`,
    onNotice,
    audit,
  };
  const lock = await lockSocket({ path: socketPath, lockWaitMs, log });
  closers.push(() => lock.release());
  const backend = await openBackend(options, base);
  closers.push(() => backend.close());
  const { resources, ipam } = backend;
  const { registry } = ipam.inventory;

  const { prober, answered, probeQuarantined } = ipam.detection;
  const missingNics = new MissingNics({ registry, backend, nowMs: monotonicMs, log, audit });
  closers.push(() => missingNics.close());
  let ifacer: Awaited<ReturnType<typeof openIfacer>> | undefined;
  const coordinator = openCoordinator({
    registry,
    identifier: ipam.identifier,
    prober,
    answered,
    nowMs: monotonicMs,
    log,
    snapshot: () => resources.state.snapshot,
    isCluster: backend.mode === "cluster",
    definitions: ipam.networks,
    isReady: () => backend.ready,
    restoreDevices: async (entry) => (await ifacer?.restore(entry)) ?? [],
    reportNode: (reason, sentence) => backend.reportNode?.(reason, sentence),
    onLinkGone: () => missingNics.wake(),
    refused: ipam.inventory.refused,
    isReleased: (attachment) => backend.isReleased?.(attachment) === true,
    faults,
    logDirectory: options.logDirectory,
    metrics: set.metrics,
  });
  closers.push(() => coordinator.close());
  const occupied = new OccupiedAddresses(coordinator.readOccupied, log);
  ipam.inventory.followOccupied(() => occupied.read());
  backend.fenceWith?.((attachment) => coordinator.withdraw(attachment));
  ifacer = await openIfacer({
    stateDirectory,
    bootId,
    faults,
    log,
    permission: () => resources.state.snapshot.vendorConf.ifacer,
  });
  closers.push(() => ifacer[Symbol.dispose]());
  const berth = new IpamPlugin(ipam, backend);
  const closing = {
    synced: (signal: AbortSignal) => backend.synced(signal),
    vendorConf: () => resources.state.snapshot.vendorConf,
    identifier: ipam.identifier,
    nicsOf: ipam.networks.nicsOf,
  };
  const close = (plugin: Plugin, type: string): Plugin =>
    backend.mode === "cluster" ? closeToTenants(plugin, type, closing) : plugin;
  const plugins = {
    berth,
    coordinator: close(coordinator.plugin, "coordinator"),
    ifacer: close(ifacer.plugin, "ifacer"),
  };
  const drivers = new Map(options.drivers.map((driver) => [driver.name, driver.open(plugins)]));
  const dispatcher = new Dispatcher(plugins, audit, log, drivers);
  const spool = new Spool(options.spoolDirectory, dispatcher, faults, log);
  const started = audit
    .started(registry)
    .catch((error: unknown) => log.warn({ err: error }, "Writing the addresses in use to the audit log failed"));
  closers.push(() => started);
  await spool.drain();
  const maintenance = startMaintenance({ registry, spool, probeQuarantined, log });
  closers.push(() => maintenance.close());
  let watch: SocketWatch | undefined;
  const { version } = options;
  set.metrics.buildInfo.set({ version, nodejs: process.versions.node, mode: backend.mode }, 1);
  set.onScrape(() => collectProcess(set.metrics));
  set.onScrape(() => collectAgent(set.metrics, { backend, spool, audit, restores: watch?.restored ?? 0 }));
  set.onScrape(() => set.metrics.cutOff.set(coordinator.nodeRepair.isCutOff ? 1 : 0));
  set.onScrape(() => set.metrics.missingNics.set(missingNics.count));
  set.onScrape(() => backend.collectMetrics(set.metrics));
  const inspect = createStatusApi({
    netnsDirectories: NETNS_FOLDERS,
    operations: new Operations({ backend, audit, nowMs: monotonicMs }),
    backend,
    resources,
    spool,
    version,
    metrics: set,
    socketRestored: () => watch?.restored ?? 0,
    history: new History(options.logDirectory, node),
    coordinator,
    routes: Object.assign({}, ...options.routes.map((open) => open(backend, audit))) as Routes,
  });
  const server = await listenOnSocket({
    path: socketPath,
    dispatcher,
    meter: new RequestMeter(set, drivers.keys()),
    inspect,
    beforeAdd: async (headers) => {
      resources.flush();
      await spool.clear(headers);
    },
    faults,
    log,
  });
  closers.push(() => server.close());
  // Its first look writes to the disk. The start does not wait for that.
  const registryWatch = watchRegistry(backend.health, log);
  closers.push(() => registryWatch.close());
  const opened = watchSocket({ path: socketPath, lock, server, log, onDeath: options.onDeath });
  watch = opened;
  closers.push(() => opened.close());
  const answer = (url: string, signal: AbortSignal) => inspect("GET", url, signal);
  if (options.scraping !== undefined && options.scraping.address.kind !== "off") {
    const { client: api } = backend;
    const scrapes = await listenForScrapes({ ...options.scraping, metrics: set, answer, api, nowMs: monotonicMs, log });
    closers.push(() => scrapes.close());
    log.info({ metrics: scrapes.url }, "Serving metrics");
  }
  for (const { name, listen } of options.servers) {
    const served = await listen({ backend, answer, version, nowMs: monotonicMs, log });
    closers.push(() => served.close());
    log.info({ [name]: served.url }, `Serving the ${name}`);
  }
  closers.push(logReadiness(backend, log));
}

async function openBackend(
  { configDirectory, drivers, cluster, nodeLabels = {} }: AgentOptions,
  base: BackendOptions,
): Promise<Backend> {
  if (configDirectory !== undefined && cluster === undefined) {
    return openEmbeddedBackend({ ...base, configDirectory, drivers, nodeLabels });
  }
  invariant(configDirectory === undefined && cluster !== undefined, "An agent has a directory or a cluster, not both");
  const { connectCluster } = await import("./cluster/connect.ts");
  return connectCluster(cluster, base);
}

/** Interval at which the agent drains the spool: milliseconds. */
export const SPOOL_INTERVAL_MS = 2_000;

/** Interval at which the agent frees cooled addresses, and probes quarantined ones: milliseconds. */
export const EXPIRE_INTERVAL_MS = 1_000;

export interface Maintenance {
  /** Starts no more work; does not wait for work in progress. */
  close(): void;
}

interface MaintenanceDeps {
  readonly registry: Pick<Registry, "expire">;
  readonly spool: Pick<Spool, "drain">;
  /** Probes the quarantined addresses that are due. */
  readonly probeQuarantined: () => Promise<void>;
  readonly log: Log;
}

/** Frees cooled and never attached addresses, probes quarantined ones, and replays spooled DELs. */
export function startMaintenance({ registry, spool, probeQuarantined, log }: MaintenanceDeps): Maintenance {
  const every = (intervalMs: number, failure: string, work: () => Promise<unknown>): PeriodicWorker =>
    new PeriodicWorker({
      failure,
      work: async () => {
        await work();
        return intervalMs;
      },
      firstMs: intervalMs,
      retryMs: () => intervalMs,
      log,
    });
  const workers = [
    every(EXPIRE_INTERVAL_MS, "Freeing cooled addresses failed", () => registry.expire()),
    every(EXPIRE_INTERVAL_MS, "Probing quarantined addresses failed", probeQuarantined),
    every(SPOOL_INTERVAL_MS, "Draining the spool failed", () => spool.drain()),
  ];
  return {
    close: () => {
      for (const worker of workers) void worker.close();
    },
  };
}

/** Interval at which the agent checks whether its registry can record again: milliseconds. */
const REGISTRY_LOOK_MS = 1_000;

/** Keeps `trouble` of the registry current: STATUS and health follow within two seconds. */
export function watchRegistry(registry: Pick<RegistryHealth, "trouble" | "probe">, log: Log) {
  let reported: string | undefined;
  const report = (): void => {
    const { trouble } = registry;
    if (trouble === reported) return;
    if (trouble === undefined) log.info("The registry can record again");
    else log.error({ trouble }, "The registry cannot record; ADDs are refused");
    reported = trouble;
  };
  const look = (): void => void registry.probe().then(report);
  report();
  look();
  const timer = setInterval(look, REGISTRY_LOOK_MS).unref();
  return { close: () => clearInterval(timer) };
}
