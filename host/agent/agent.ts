/**
 * One agent, from its start to its end: configuration, registry, address book, spool, socket, in this order; and back.
 * Called by bin/berth-agent.ts, and by tests, which may run several in one process.
 * Effects: those of its parts.
 */
import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { setTimeout } from "node:timers/promises";
import type { CoordinatorConf } from "../config/coordinator-settings.ts";
import { PoolSpace } from "../core/pool-space.ts";
import { AddressBook } from "../ipam/address-book.ts";
import type { PoolsByName } from "../ipam/selection.ts";
import { createFaultCounter, type FaultPlan, openFaults } from "../lib/fault.ts";
import type { Log } from "../lib/log.ts";
import type { Registry } from "../registry/registry.ts";
import { openSqliteRegistry } from "../registry/sqlite-registry.ts";
import { openCoordinator } from "./coordinator/open.ts";
import { Definitions, effectiveSettings } from "./definitions.ts";
import { type Detection, openDetection } from "./detection/open-detection.ts";
import { createDispatcher } from "./dispatcher.ts";
import { openIfacer } from "./ifacer/open.ts";
import { createInspector } from "./inspector.ts";
import { Catalogue, cooldownsOf } from "./ipam/catalogue.ts";
import { createIpamPlugin, type Readiness } from "./ipam/plugin.ts";
import { startJanitor } from "./janitor.ts";
import { ManifestDirectory } from "./manifest-directory.ts";
import { listenOnSocket } from "./socket-server.ts";
import { Spool } from "./spool.ts";

export interface AgentOptions {
  readonly configDirectory: string;
  /** Where the runtimes read network definitions; need not be there. */
  readonly cniConfDirectory: string;
  /** Where `/var/log/vendor/` of network definitions is on this machine. */
  readonly logDirectory: string;
  readonly stateDirectory: string;
  readonly spoolDirectory: string;
  readonly socketPath: string;
  readonly nodeName?: string | undefined;
  readonly nodeLabels?: Readonly<Record<string, string>>;
  readonly lockWaitMs: number;
  /** The built core, berth-core.wasm. */
  readonly coreWasm: Uint8Array;
  readonly version: string;
  readonly faultPlan?: FaultPlan | undefined;
  readonly log: Log;
  /** The agent cannot go on: its registry's thread died. */
  readonly onDeath: (error: Error) => void;
}

export interface Agent {
  /** Requests under way finish; what is recorded stays. */
  stop(): Promise<void>;
}

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
  const closers: (() => Promise<void> | void)[] = [];
  const stop = async (): Promise<void> => {
    for (const close of closers.splice(0).reverse()) await close();
  };
  try {
    await assemble(options, closers);
  } catch (error) {
    await stop();
    throw error;
  }
  log.info({ socket: options.socketPath, state: options.stateDirectory, config: options.configDirectory }, "Ready");
  return { stop };
}

async function assemble(options: AgentOptions, closers: (() => Promise<void> | void)[]): Promise<void> {
  const { log } = options;
  const faultCounter = createFaultCounter();
  const faults = openFaults(options.faultPlan, faultCounter);
  let catalogue: Catalogue | undefined;
  const directory = new ManifestDirectory(options.configDirectory, log, ({ snapshot }) => catalogue?.follow(snapshot));
  closers.push(() => directory.close());

  const book = new AddressBook(PoolSpace.open(options.coreWasm));
  const registry = await openRegistry(options, faultCounter, directory, book);
  closers.push(() => registry.close());
  catalogue = new Catalogue(book, registry, directory.state.snapshot);
  catalogue.follow(directory.state.snapshot);
  await catalogue.settled();

  const definitions = new Definitions(options.cniConfDirectory, log);
  const settingsFor = (network: string): CoordinatorConf =>
    effectiveSettings(definitions.settingsOf(network), directory.state.snapshot);
  const isCoordinated = (network: string): boolean => definitions.settingsOf(network) !== undefined;
  const pools = (): PoolsByName => directory.state.snapshot.pools;
  const detection = openDetection({ registry, pools, nowMs: monotonicMs, log });
  closers.push(() => detection.keeper.close());
  const readiness = (): Readiness => readinessOf(directory, definitions, detection);
  const node = nodeOf(options);
  const sleep = (milliseconds: number, signal: AbortSignal): Promise<void> =>
    setTimeout(milliseconds, undefined, { signal });
  const tools = {
    catalogue,
    registry,
    node,
    nowMs: monotonicMs,
    sleep,
    log,
    readiness,
    settingsFor,
    isCoordinated,
    ...detection,
  };
  const snapshot = () => directory.state.snapshot;
  const coordinator = openCoordinator({ ...tools, snapshot, faults, logDirectory: options.logDirectory });
  closers.push(() => coordinator.close());
  const ifacer = await openIfacer({ stateDirectory: options.stateDirectory, bootId: readBootId(), faults, log });
  closers.push(() => ifacer[Symbol.dispose]());
  const plugins = {
    berth: createIpamPlugin(tools),
    coordinator: coordinator.plugin,
    ifacer: ifacer.plugin,
  };
  const dispatch = createDispatcher(plugins, log);
  const spool = new Spool(options.spoolDirectory, dispatch, faults, log);
  await spool.drain();
  const janitor = startJanitor({ ...tools, spool });
  closers.push(() => janitor.close());
  const server = await listenOnSocket({
    path: options.socketPath,
    dispatch,
    inspect: createInspector({
      ...tools,
      spool,
      version: options.version,
      explainCoordinator: (namespace, pod) => coordinator.attachments.describe(namespace, pod),
    }),
    beforeAdd: async () => {
      directory.settle();
      await spool.drain();
    },
    faults,
    log,
  });
  closers.push(() => server.close());
}

function openRegistry(
  options: AgentOptions,
  faultCounter: SharedArrayBuffer,
  directory: ManifestDirectory,
  book: AddressBook,
): Promise<Registry> {
  return openSqliteRegistry({
    directory: options.stateDirectory,
    bootId: readBootId(),
    nowMs: monotonicMs,
    lockWaitMs: options.lockWaitMs,
    cooldowns: cooldownsOf(directory.state.snapshot),
    onFreed: (space, ip) => book.unmark(space, ip),
    onDeath: options.onDeath,
    faultPlan: options.faultPlan,
    faultCounter,
  });
}

function nodeOf({ nodeName = hostname(), nodeLabels = {} }: AgentOptions): {
  name: string;
  labels: Readonly<Record<string, string>>;
} {
  return { name: nodeName, labels: { "kubernetes.io/hostname": nodeName, ...nodeLabels } };
}

/** Not ready while a file that never was right may hold what must not be handed out. */
function readinessOf({ state }: ManifestDirectory, definitions: Definitions, { keeper }: Detection): Readiness {
  return {
    ready: state.complete,
    get problems() {
      return [...state.problems, ...state.snapshot.problems, ...definitions.problems, ...keeper.problems];
    },
  };
}
