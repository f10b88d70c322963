/** The controller without its command line: watches, stands for election, runs the controllers while it leads. */
import { once } from "node:events";
import { EventSender, type Events } from "../kubernetes/events.ts";
import type { KubeApi } from "../kubernetes/kube-api.ts";
import { Election } from "../kubernetes/lease/election.ts";
import type { ElectionClock, Leading } from "../kubernetes/lease/leading.ts";
import type { LeaseTimings } from "../kubernetes/lease/plan-lease.ts";
import type { ReflectorStats } from "../kubernetes/reflector.ts";
import { RefusedWrites } from "../kubernetes/refused-writes.ts";
import type { Log } from "../lib/log.ts";
import type { UnusedObject } from "../lib/object-budget.ts";
import { collectUnused, collectWatches } from "../metrics/common-metrics.ts";
import type { ControllerMetrics } from "../metrics/controller-metrics.ts";
import { setGauge, setTotals } from "../metrics/metric.ts";
import { collectPools } from "../metrics/pool-metrics.ts";
import { collectSubnets } from "../metrics/subnet-metrics.ts";
import { NOTIFIER_ANNOTATION } from "../resources/allocation-notice.ts";
import { type OpenCaches, openCaches } from "./caches.ts";
import {
  type Controllers,
  type Leadership,
  type LeadershipDeps,
  openLeaderApi,
  startLeadership,
} from "./leadership.ts";
import { type OpenAddressOwners, openAddressOwners } from "./owners/address-owners.ts";
import { type OpenPoolOwners, openPoolOwners } from "./owners/pool-owners.ts";
import { PoolWrites } from "./pool-writes.ts";
import type { ControllerDeps, Measurements } from "./types.ts";

/** Longest time for controllers to stop after leadership ends until the process counts as stuck: milliseconds. */
const CLOSE_PATIENCE_MS = 60_000;

interface ControllerOptions {
  /** Closed by the caller. */
  readonly api: KubeApi;
  /** Returns why the connection may not last, such as unreadable credentials: a sentence without a full stop. */
  readonly connectionProblem?: () => string | undefined;
  readonly controllers: Controllers;
  readonly configNamespace: string;
  readonly lease: {
    readonly namespace: string;
    readonly name: string;
    /** Unique to this process. */
    readonly identity: string;
    readonly timings: LeaseTimings;
  };
  readonly clock: ElectionClock;
  readonly now: () => Date;
  readonly random: () => number;
  readonly log: Log;
  /** Default: POOL_EVENTS_PER_SECOND. */
  readonly poolEventsPerSecond?: number;
}

export interface ControllerStatus {
  readonly identity: string;
  readonly isLeading: boolean;
  /** The leader that this process has last seen; "" if there is none. */
  readonly leader: string;
  /** Collections whose first list is incomplete. */
  readonly unread: readonly string[];
  /** Sentences without a full stop. */
  readonly problems: readonly string[];
  readonly parts: readonly string[];
  /** Objects, lists and watches per collection. */
  readonly caches: OpenCaches["stats"];
}

/** Starts to watch at once. The caller refuses timings with which two processes could lead (plan-lease.ts). */
export function openController(options: ControllerOptions): ControllerProcess {
  return new ControllerProcess(options);
}

export class ControllerProcess {
  readonly #options: ControllerOptions;
  readonly caches: OpenCaches;
  readonly #addressOwners: OpenAddressOwners;
  readonly #poolOwners: OpenPoolOwners;
  /** Undefined until every collection is listed: a process that cannot read must not keep others from leading. */
  #election: Election | undefined;
  readonly #refused: RefusedWrites;
  readonly #closing = new AbortController();
  readonly #opening: Promise<void>;
  /** Every process settles epochs, based on versions that it has read: first addresses do not wait for a lease. */
  #everywhere: Leadership | undefined;
  #everywhereEvents: Events | undefined;
  #leadership: Leadership | undefined;
  #events: Events | undefined;
  /** End of leadership, by the monotonic clock; undefined while the controllers run. */
  #endingSinceMs: number | undefined;

  constructor(options: ControllerOptions) {
    this.#options = options;
    const { api, configNamespace, random, log, clock } = options;
    this.#refused = new RefusedWrites({ nowMs: clock.nowMs, random });
    const onUnused = (namespace: string): void => this.#reportUnused(namespace);
    this.caches = openCaches({ api, onUnused, configNamespace, random, log });
    const { budget, vendorConf } = this.caches;
    this.#addressOwners = openAddressOwners({ api, vendorConf, budget, random, log });
    this.#poolOwners = openPoolOwners({ api, budget, random, log });
    this.#opening = this.#open();
  }

  /** Never rejects. */
  async #open(): Promise<void> {
    const { lease, clock, now, random, log } = this.#options;
    const api = this.#refused.apiFor(this.#options.api, { part: "election" });
    const { signal } = this.#closing;
    try {
      await Promise.all([this.caches, this.#addressOwners, this.#poolOwners].map((each) => each.synced(signal)));
    } catch {
      return;
    }
    const always = { signal, require: () => signal.throwIfAborted() };
    const { epoch } = this.#options.controllers;
    this.#everywhereEvents = new EventSender(this.#eventOptions(always));
    const deps = this.#deps(always, this.#everywhereEvents);
    const isLeading = (): boolean => this.#election?.isLeading ?? false;
    this.#everywhere = epoch && startLeadership({ epoch }, { ...deps, isLeading });
    log.info({ identity: lease.identity }, "All collections are listed; taking part in the election");
    const lead = (leading: Leading) => this.#lead(leading);
    const annotations = { [NOTIFIER_ANNOTATION]: lease.identity };
    this.#election = new Election({ ...lease, annotations, api, clock, now, random, log, lead });
  }

  get status(): ControllerStatus {
    const { isLeading = false, holder = "" } = this.#election ?? {};
    const { process, ...parts } = this.#problems;
    return {
      identity: this.#options.lease.identity,
      isLeading,
      leader: holder,
      unread: this.caches.unread,
      problems: [...process, ...Object.values(parts).flat()],
      parts: Object.keys(parts),
      caches: this.caches.stats,
    };
  }

  /** By the controller's name, after those of the process itself. */
  get #problems(): Readonly<Record<string, readonly string[]>> & { readonly process: readonly string[] } {
    const own = [this.#options.connectionProblem?.(), this.#election?.problem, this.stuck];
    const process = [
      ...own.filter((problem) => problem !== undefined),
      ...this.caches.problems,
      ...this.#addressOwners.problems,
      ...this.#poolOwners.problems,
    ];
    return { process, ...this.#everywhere?.problems, ...this.#leadership?.problems };
  }

  /**
   * Set when only a restart of the process helps: a controller has not stopped long after leading ended. An API server
   * that does not answer does not count.
   */
  get stuck(): string | undefined {
    if (this.#endingSinceMs === undefined) return undefined;
    const ms = this.#options.clock.nowMs() - this.#endingSinceMs;
    return ms < CLOSE_PATIENCE_MS
      ? undefined
      : `The controllers have not stopped ${Math.floor(ms / 1000)} s after this process stopped leading`;
  }

  /** Why it does not take part in the election yet. Undefined once every collection has been listed. */
  get waiting(): string | undefined {
    if (this.#election !== undefined) return undefined;
    const { unread } = this.caches;
    return `Not listed yet: ${unread.length > 0 ? unread.join(", ") : "owners of addresses and pools"}`;
  }

  /** Sets the metrics of watches, leadership and controllers. */
  collectMetrics(metrics: ControllerMetrics): void {
    collectController(metrics, {
      isLeading: this.status.isLeading,
      watches: this.caches.stats,
      unused: this.caches.budget.unused,
      problems: this.#problems,
      measurements: this.measurements,
    });
  }

  /** The counts of its running parts. */
  get measurements(): Measurements {
    return { ...this.#everywhere?.measurements, ...this.#leadership?.measurements };
  }

  /** Only the leader writes. */
  #reportUnused(namespace: string): void {
    this.#events?.emit({
      regarding: { kind: "Namespace", apiVersion: "v1", namespace: "", name: namespace, uid: "" },
      reason: "ObjectsNotUsed",
      note: "Objects of this namespace are not used by the controller, to save memory: its problems name them",
      type: "Warning",
      action: "Watch",
    });
  }

  /** Stops the controllers, releases the lease and disconnects from the API server. Never rejects. */
  async close(): Promise<void> {
    this.#closing.abort(new Error("The controller was closed"));
    await this.#opening;
    await this.#election?.close();
    await this.#everywhere?.close();
    await this.#everywhereEvents?.close();
    await this.#poolOwners.close();
    await this.#addressOwners.close();
    await this.caches.close();
  }

  async #lead(leading: Leading): Promise<void> {
    const events = new EventSender(this.#eventOptions(leading));
    this.#events = events;
    for (const namespace of this.caches.budget.namespaces) this.#reportUnused(namespace);
    const { epoch: _, ...controllers } = this.#options.controllers;
    const term = startLeadership(controllers, this.#deps(leading, events));
    this.#leadership = term;
    if (!leading.signal.aborted) await once(leading.signal, "abort");
    this.#endingSinceMs = this.#options.clock.nowMs();
    // The signal has stopped all of them at once; this only waits.
    await term.close();
    await events.close();
    this.#events = undefined;
    this.#leadership = undefined;
    this.#endingSinceMs = undefined;
  }

  #eventOptions(leading: Leading) {
    const { api, lease, clock, log } = this.#options;
    const common = { component: "berth-controller", node: lease.identity, nowMs: clock.nowMs, log };
    return { ...common, api: this.#refused.apiFor(openLeaderApi(api, leading), { part: "events" }) };
  }

  #deps(leading: Leading, events: ControllerDeps["events"]): LeadershipDeps {
    const { api, clock, now, random, log, poolEventsPerSecond: eventsPerSecond } = this.#options;
    const { nowMs } = clock;
    return {
      api: openLeaderApi(api, leading),
      refused: this.#refused,
      caches: this.caches,
      owners: { addresses: this.#addressOwners, pools: this.#poolOwners, pods: this.#poolOwners.pods },
      events,
      log,
      clock: { nowMs, now },
      poolWrites: new PoolWrites({ nodes: () => this.caches.nodes.items.size, nowMs, eventsPerSecond }),
      random,
      leading: leading.signal,
    };
  }
}

interface ControllerState {
  readonly isLeading: boolean;
  /** By the name of the collection. */
  readonly watches: Readonly<Record<string, ReflectorStats & { readonly objects: number }>>;
  readonly unused: readonly UnusedObject[];
  /** By the name of the controller. */
  readonly problems: Readonly<Record<string, readonly string[]>>;
  /** In a process that does not lead, the epoch's alone: otherwise each replica would count pools and Subnets. */
  readonly measurements: Measurements;
}

export function collectController(
  metrics: ControllerMetrics,
  { isLeading, watches, unused, problems, measurements }: ControllerState,
): void {
  metrics.leader.set(isLeading ? 1 : 0);
  setGauge(
    metrics.problems,
    Object.entries(problems).map(([part, { length }]) => [{ part }, length]),
  );
  collectWatches(metrics, watches);
  collectUnused(metrics, unused);
  const { pools, subnets, reservations, collection, epoch } = measurements;
  metrics.epochOpen.set(Number(epoch !== undefined));
  metrics.epochWaitingNodes.set(epoch?.waitingNodes ?? 0);
  if (pools === undefined) for (const gauge of [metrics.pools, metrics.poolSize, metrics.poolAddresses]) gauge.reset();
  else collectPools(metrics, pools());
  collectSubnets(metrics, subnets?.() ?? []);
  setGauge(metrics.reservations, reservations?.() ?? []);
  metrics.gcCandidates.set(collection?.candidates ?? 0);
  setTotals(
    metrics.gcActions,
    [...(collection?.actions ?? [])].map(([action, count]) => [{ action }, count]),
  );
}
