/** Metrics that agent and controller have in common: the build, the process, calls and watches of the API server. */
import { readdirSync } from "node:fs";
import type { ApiRequestCount, KubeStats } from "../kubernetes/client.ts";
import type { ReflectorStats } from "../kubernetes/reflector.ts";
import type { UnusedObject } from "../lib/object-budget.ts";
import { counter, foldLabel, gauge, histogram, type OpenedMetrics, setGauge, setTotal } from "./metric.ts";

/** Interval at which the delay of the event loop is measured: milliseconds. */
const EVENT_LOOP_PROBE_MS = 500;

export const COMMON_METRICS = {
  buildInfo: gauge("berth_build_info", "The running build; always 1.", ["version", "nodejs", "mode"]),
  processCpu: counter("process_cpu_seconds_total", "CPU time of the process."),
  processMemory: gauge("process_resident_memory_bytes", "Resident memory of the process."),
  processStart: gauge("process_start_time_seconds", "When the process started."),
  processFiles: gauge("process_open_fds", "Open file descriptors of the process."),
  heapUsed: gauge("nodejs_heap_size_used_bytes", "Used JavaScript heap of the main thread."),
  eventLoopDelay: histogram(
    "berth_event_loop_delay_seconds",
    "How late a timer of the main thread fired: what each answer waits for.",
    { buckets: [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5] },
  ),
  apiRequests: counter(
    "berth_api_requests_total",
    "Requests to the API server, each attempt, by method and status; `error`: no answer.",
    ["verb", "code"],
  ),
  apiUnavailable: counter("berth_api_calls_unavailable_total", "Calls of the API server that were given up."),
  apiCalling: gauge("berth_api_calls", "Calls of the API server: `running`, or `queued`.", ["state"]),
  apiConnections: counter("berth_api_connections_total", "Connections opened to the API server."),
  watchEvents: counter("berth_watch_events_total", "Events and bookmarks that a watch has received.", ["collection"]),
  watchLists: counter("berth_watch_lists_total", "Complete lists of a watched collection.", ["collection"]),
  watchObjects: gauge("berth_watch_objects", "Objects of a watched collection in memory.", ["collection"]),
  watchUnused: gauge(
    "berth_watch_unused_objects",
    "Objects that are not used, because they are too long or take too much memory; 1,000 of all collections: or more.",
    ["collection"],
  ),
  watchLastEvent: gauge(
    "berth_watch_last_event_timestamp_seconds",
    "When a watch last received anything; a bookmark comes every minute.",
    ["collection"],
  ),
  epochOpen: gauge(
    "berth_registry_epoch_open",
    "Whether an epoch of the registry is open: 1 or 0. New addresses are then probed first, or wait.",
  ),
} as const;

type CommonMetrics = OpenedMetrics<typeof COMMON_METRICS>;

/**
 * Statuses of Kubernetes' API server and of proxies before it. All others are counted together: a broken proxy cannot
 * create new series.
 */
const STATUSES = new Set(
  "200 201 202 204 301 302 307 308 400 401 403 404 405 406 409 410 413 415 422 429 500 501 502 503 504 error".split(
    " ",
  ),
);

/** Sets the metrics of the process itself. */
export function collectProcess(metrics: CommonMetrics): void {
  const { user, system } = process.cpuUsage();
  setTotal(metrics.processCpu, (user + system) / 1e6);
  const { rss, heapUsed } = process.memoryUsage();
  metrics.processMemory.set(rss);
  metrics.heapUsed.set(heapUsed);
  metrics.processStart.set(performance.timeOrigin / 1000);
  metrics.processFiles.set(readdirSync("/proc/self/fd").length);
}

/** Returns a function that ends the measurement. */
export function measureEventLoop({ eventLoopDelay }: Pick<CommonMetrics, "eventLoopDelay">): () => void {
  let dueMs = performance.now() + EVENT_LOOP_PROBE_MS;
  const timer = setInterval(() => {
    const nowMs = performance.now();
    eventLoopDelay.observe(Math.max(0, nowMs - dueMs) / 1000);
    dueMs = nowMs + EVENT_LOOP_PROBE_MS;
  }, EVENT_LOOP_PROBE_MS).unref();
  return () => clearInterval(timer);
}

export function collectApi(metrics: CommonMetrics, stats: KubeStats, requests: Iterable<ApiRequestCount>): void {
  metrics.apiRequests.reset();
  for (const { verb, code, count } of requests) {
    metrics.apiRequests.inc({ verb, code: foldLabel(String(code), STATUSES) }, count);
  }
  setTotal(metrics.apiUnavailable, stats.unavailable);
  setTotal(metrics.apiConnections, stats.connections);
  metrics.apiCalling.set({ state: "running" }, stats.calling);
  metrics.apiCalling.set({ state: "queued" }, stats.waiting);
}

export function collectUnused(metrics: CommonMetrics, unused: readonly UnusedObject[]): void {
  const byCollection = Map.groupBy(unused, ({ collection }) => collection);
  setGauge(
    metrics.watchUnused,
    [...byCollection].map(([collection, objects]) => [{ collection }, objects.length] as const),
  );
}

/** `stats` by the name of the collection. */
export function collectWatches(
  metrics: CommonMetrics,
  stats: Readonly<Record<string, ReflectorStats & { readonly objects: number }>>,
): void {
  const { watchEvents, watchLists, watchObjects, watchLastEvent } = metrics;
  for (const metric of [watchEvents, watchLists, watchObjects, watchLastEvent]) metric.reset();
  for (const [collection, { events, lists, objects, lastEventMs }] of Object.entries(stats)) {
    watchEvents.inc({ collection }, events);
    watchLists.inc({ collection }, lists);
    watchObjects.set({ collection }, objects);
    if (lastEventMs !== undefined) watchLastEvent.set({ collection }, lastEventMs / 1000);
  }
}
