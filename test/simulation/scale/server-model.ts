/**
 * The load of the simulated API server: processor time by kind of request, a queue for the processors, and the
 * distribution of each event to all watches of its kind. The figures are of a real Kubernetes 1.34 with etcd
 * (docs/develop/scale.md#what-it-costs).
 */
import type { KubeCall } from "../../../host/kubernetes/kube-api.ts";

type Request = Pick<KubeCall, "method" | "path" | "query">;

/** Processor time of API server and etcd, and the time until the answer when nothing else waits: milliseconds. */
type Cost = readonly [cpuMs: number, tookMs: number];

type Verb = "create" | "get" | "update" | "delete";

const COSTS: Readonly<Record<Verb, Cost>> = {
  create: [3.764, 10.97],
  get: [0.6546, 4.322],
  update: [3.589, 11.26],
  delete: [2.44, 5.115],
};
/** Objects of Kubernetes itself, as nothing of them is a custom resource. */
const NATIVE_COSTS: Readonly<Record<Verb, Cost>> = {
  ...COSTS,
  create: [1.332, 3.112],
  get: [0.5807, 1.991],
  delete: [1.596, 3.401],
};
/** A page of 500 allocations. */
const PAGE_COST: Cost = [3.725, 13.57];
/** Processor time of one watch for one event that it receives: milliseconds. */
export const WATCH_MS = 0.00377;
/** Objects whose events go to all agents; those of others are found by an index or a name, or no agent watches them. */
const WATCHED_BY_ALL: ReadonlySet<string> = new Set(["ippools", "reservedips", "coordinators", "namespaces"]);
const OWN_KINDS: ReadonlySet<string> = new Set(["ippools", "ipallocations", "ippoolusages"]);
const VERBS: Readonly<Record<string, Verb>> = { POST: "create", GET: "get", DELETE: "delete" };
/**
 * Share of an event's distribution that one thread does for each watch, one after the other; the watches' own threads
 * do the rest.
 */
const DISPATCH_SHARE = 0.5;

/** `ipallocations`, `pods` */
export function kindOf({ path }: Pick<KubeCall, "path">): string {
  const [, collection = path] =
    /^(?:\/api\/v1|\/apis\/[^/]+\/[^/]+)(?:\/namespaces\/[^/]+(?=\/))?\/([^/]+)/.exec(path) ?? [];
  return collection;
}

function costOf({ method, query }: Request, kind: string): Cost {
  if (method === "GET" && query?.limit !== undefined) return PAGE_COST;
  return (OWN_KINDS.has(kind) ? COSTS : NATIVE_COSTS)[VERBS[method] ?? "update"];
}

/** Work that waits for processors, as one amount of processor time: new work waits for all earlier work. */
export class Backlog {
  readonly #processors: number;
  #leftMs = 0;
  #atMs = 0;
  /** Processor time of all work so far: milliseconds. */
  usedMs = 0;

  constructor(processors: number) {
    this.#processors = processors;
  }

  /** Adds work; returns how long it waits before it begins: milliseconds. */
  add(cpuMs: number, nowMs: number): number {
    const leftMs = Math.max(0, this.#leftMs - (nowMs - this.#atMs) * this.#processors);
    this.#atMs = nowMs;
    this.#leftMs = leftMs + cpuMs;
    this.usedMs += cpuMs;
    return leftMs / this.#processors;
  }
}

export class ServerModel {
  readonly processors: Backlog;
  /** One for each kind: its events are distributed one after the other. */
  readonly #dispatchers = new Map<string, Backlog>();
  /** Agents that are connected. */
  agents = 0;
  requests = 0;
  /** Events that were delivered to watches. */
  deliveries = 0;
  /** Longest time that a request waited for a processor, and that an event was late, since they were set to 0. */
  worstWaitMs = 0;
  worstLagMs = 0;

  constructor(processors: number) {
    this.processors = new Backlog(processors);
  }

  /** Counts a request that arrives, and returns after how long it is carried out: milliseconds. `pages`: of a list. */
  request(request: Request, nowMs: number, pages = 1): number {
    const [cpuMs, tookMs] = costOf(request, kindOf(request));
    this.requests += pages;
    const waitMs = this.processors.add(cpuMs * pages, nowMs);
    this.worstWaitMs = Math.max(this.worstWaitMs, waitMs);
    return waitMs + tookMs * pages;
  }

  /** An object of the kind was written. Returns after how long the watches have it: milliseconds. */
  written(collection: string, nowMs: number): number {
    const kind = kindOf({ path: collection });
    const isForAll = WATCHED_BY_ALL.has(kind);
    const cpuMs = isForAll ? this.agents * WATCH_MS : 0;
    this.deliveries += isForAll ? this.agents : 1;
    const waitMs = this.processors.add(cpuMs, nowMs);
    const dispatcher = this.#dispatchers.getOrInsertComputed(kind, () => new Backlog(1));
    const dispatchMs = cpuMs * DISPATCH_SHARE;
    const lagMs = waitMs + dispatcher.add(dispatchMs, nowMs) + dispatchMs;
    this.worstLagMs = Math.max(this.worstLagMs, lagMs);
    return 1 + lagMs;
  }
}
