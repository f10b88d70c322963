/**
 * Cost of requests and watches for the simulated API server, from the figures of a real one (calibration.json):
 * processor time by kind of request, a queue for the processors, and the distribution of each event to all watches of
 * its kind.
 */
import type { KubeCall } from "../../../host/kubernetes/kube-api.ts";
import type { Calibration, FanOut, RequestCost } from "./calibration.ts";

type Request = Pick<KubeCall, "method" | "path" | "query">;

/** `ipallocations`, `pods/status` */
export function kindOf({ path }: Pick<KubeCall, "path">): string {
  const [, collection = path] =
    /^(?:\/api\/v1|\/apis\/[^/]+\/[^/]+)(?:\/namespaces\/[^/]+(?=\/))?\/([^/]+)/.exec(path) ?? [];
  return collection;
}

/**
 * Work that waits for processors, as one amount of processor time: what arrives waits until what came before is done.
 */
export class Backlog {
  readonly #processors: number;
  #leftMs = 0;
  #atMs = 0;
  /** Processor time of all work so far: milliseconds. */
  usedMs = 0;

  constructor(processors: number) {
    this.#processors = processors;
  }

  /** Returns the time for which new work waits now: milliseconds. */
  waitMs(nowMs: number): number {
    this.#leftMs = Math.max(0, this.#leftMs - (nowMs - this.#atMs) * this.#processors);
    this.#atMs = nowMs;
    return this.#leftMs / this.#processors;
  }

  /** Adds work; returns how long it waits before it begins. */
  add(cpuMs: number, nowMs: number): number {
    const waitMs = this.waitMs(nowMs);
    this.#leftMs += cpuMs;
    this.usedMs += cpuMs;
    return waitMs;
  }
}

/** The API server's way to find the watches of an event. */
type Matching =
  /** By an index or a name, or no agent watches them: nodes that an event does not concern cost nothing. */
  | "indexed"
  /** Each receives it. */
  | "all";

const MATCHING: Readonly<Record<string, Matching>> = {
  pods: "indexed",
  nodes: "indexed",
  configmaps: "indexed",
  ipallocations: "indexed",
  ippools: "all",
  reservedips: "all",
  coordinators: "all",
  namespaces: "all",
  "network-attachment-definitions": "all",
};

/**
 * Share of an event's distribution that one thread does for each watch, one after the other; the watches' own threads
 * do the rest.
 */
const DISPATCH_SHARE = 0.5;

export interface ServerModelOptions {
  readonly calibration: Calibration;
  readonly processors: number;
}

export class ServerModel {
  readonly processors: Backlog;
  /** One for each kind: its events are distributed one after the other. */
  readonly #dispatchers = new Map<string, Backlog>();
  /** Agents that are connected. */
  agents = 0;
  /** Requests by `POST ipallocations`, and events that were delivered by kind. */
  readonly requests = new Map<string, number>();
  readonly deliveries = new Map<string, number>();
  deliveredBytes = 0;
  readonly #costs: ReadonlyMap<string, RequestCost>;
  readonly #perWatchMs: Readonly<Record<Matching, number>>;
  readonly #bytes: Readonly<Record<string, number>>;

  constructor({ calibration, processors }: ServerModelOptions) {
    this.processors = new Backlog(processors);
    const alone = calibration.requests.filter(({ kind }) => !kind.includes("among"));
    this.#costs = new Map(
      [...new Set(alone.map(({ kind }) => kind))].map((kind) => [
        kind,
        cheapest(alone.filter((each) => each.kind === kind)),
      ]),
    );
    this.#perWatchMs = {
      indexed: 0,
      // An event that is sent costs at least as much as one that is withheld.
      all: Math.max(
        slopeOf(calibration.fanOut, "ippools", ({ cpuMsPerWrite }) => cpuMsPerWrite),
        slopeOf(calibration.fanOut, "ipallocations", ({ cpuMsPerWrite }) => cpuMsPerWrite),
      ),
    };
    this.#bytes = calibration.bytes;
  }

  /** Processor time of one watch for one event of its kind: milliseconds. */
  get perWatchMs(): Readonly<Record<Matching, number>> {
    return this.#perWatchMs;
  }

  /** Counts a request that arrives, and returns after how long it is carried out: milliseconds. `pages`: of a list. */
  request(request: Request, nowMs: number, pages = 1): number {
    const kind = kindOf(request);
    const key = `${request.method} ${kind}`;
    this.requests.set(key, (this.requests.get(key) ?? 0) + pages);
    const { serverCpuMs, p50Ms } = this.#costOf(request, kind);
    return this.processors.add(serverCpuMs * pages, nowMs) + Math.max(0.5, p50Ms) * pages;
  }

  /** An object of the kind was written. Returns after how long the watches have it: milliseconds. */
  written(collection: string, nowMs: number): number {
    const kind = kindOf({ path: collection });
    const matching = MATCHING[kind] ?? "indexed";
    const cpuMs = this.agents * this.#perWatchMs[matching];
    const count = matching === "all" ? this.agents : 1;
    this.deliveries.set(kind, (this.deliveries.get(kind) ?? 0) + count);
    this.deliveredBytes += count * (this.#bytes[kind] ?? 1_000);
    const waitMs = this.processors.add(cpuMs, nowMs);
    const dispatcher = this.#dispatchers.get(kind) ?? new Backlog(1);
    this.#dispatchers.set(kind, dispatcher);
    const dispatchMs = cpuMs * DISPATCH_SHARE;
    return 1 + waitMs + dispatcher.add(dispatchMs, nowMs) + dispatchMs;
  }

  /** Returns the delay of the distribution of events, of the kind that is furthest behind: milliseconds. */
  lagMs(nowMs: number): number {
    return Math.max(0, ...this.#dispatchers.values().map((dispatcher) => dispatcher.waitMs(nowMs)));
  }

  #costOf({ method, path, query }: Request, kind: string): RequestCost {
    const isList = method === "GET" && query?.limit !== undefined;
    const like = kind === "ippools" || kind === "ipallocations" || kind === "ippoolusages" ? "ipallocations" : "pods";
    const name = isList
      ? "list page of 500 ipallocations"
      : method === "POST"
        ? `create ${like}`
        : method === "GET"
          ? `get ${like}`
          : method === "DELETE"
            ? `delete ${like}`
            : "update ipallocations";
    const cost = this.#costs.get(name);
    if (cost === undefined) throw new Error(`The calibration has no "${name}" for ${method} ${path}`);
    return cost;
  }
}

/**
 * Returns the least costs of several concurrencies: the processor time is least where the server has most to do at
 * once, the latency where it has least.
 */
function cheapest(costs: readonly RequestCost[]): RequestCost {
  const [first] = costs.toSorted((a, b) => a.serverCpuMs - b.serverCpuMs);
  return { ...(first as RequestCost), p50Ms: Math.min(...costs.map(({ p50Ms }) => p50Ms)) };
}

/** Least squares through the measured numbers of watches: milliseconds for one more watch. */
function slopeOf(fanOut: readonly FanOut[], kind: string, value: (each: FanOut) => number): number {
  const points = fanOut.filter((each) => each.kind.startsWith(kind));
  const n = points.length;
  const [meanX, meanY] = [
    points.reduce((sum, { watchers }) => sum + watchers, 0) / n,
    points.reduce((sum, each) => sum + value(each), 0) / n,
  ];
  const covariance = points.reduce((sum, each) => sum + (each.watchers - meanX) * (value(each) - meanY), 0);
  const variance = points.reduce((sum, { watchers }) => sum + (watchers - meanX) ** 2, 0);
  return Math.max(0, covariance / variance);
}
