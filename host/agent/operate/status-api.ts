/**
 * The agent's status API: GET /v1/health, /v1/pools, /v1/allocations, /v1/reservations, /v1/address, /v1/check,
 * /v1/explain, /v1/history, /v1/stats, /metrics. In a cluster these pages show this node's knowledge: its own
 * allocations, and pools as far as its pool cache is loaded. GET changes nothing; POST /v1/recover runs
 * embedded/recovery/recover.ts, POST /v1/release and /v1/quarantine operations.ts, POST /v1/repair read-drift.ts;
 * packages add more.
 */
import { describeValue } from "../../lib/describe.ts";
import { SerialQueue } from "../../lib/serial.ts";
import type { AgentMetricSet } from "../../metrics/agent-metrics.ts";
import { METRICS_TYPE } from "../../metrics/metric.ts";
import { formatIp, parseIp } from "../../net/ip.ts";
import type { AddressRecord } from "../../records/address-record.ts";
import { type AllocationRecord, formatAddressName } from "../../records/allocation-record.ts";
import type { ExplanationRecord } from "../../records/explanation-record.ts";
import type { HealthRecord } from "../../records/health-record.ts";
import type { PoolRecord } from "../../records/pool-record.ts";
import type { Allocation, ListCursor, UsageCount } from "../../registry/registry.ts";
import { describePool } from "../../resources/describe-pool.ts";
import { describeReservations } from "../../resources/describe-reservation.ts";
import { locateAddress } from "../../resources/locate-address.ts";
import type { Backend } from "../backend.ts";
import type { OpenCoordinator } from "../coordinator/plugin.ts";
import type { AddDeps } from "../ipam/add.ts";
import type { ReadinessSource } from "../ipam/plugin.ts";
import type { History } from "../log/history.ts";
import type { Resources } from "../request/resources.ts";
import { type Answer, answerError, answerJson, answerRefusal, type StatusApi, toCniError } from "../server/answer.ts";
import type { Spool } from "../server/spool.ts";
import { checkNode, findClusterId, repairNode } from "./check-node.ts";
import { explainPod, type Question, UnreadError } from "./explain-pod.ts";
import { explainPool } from "./explain-pool.ts";
import type { Operations, ReportedRecord } from "./operations.ts";
import type { CoordinatorState } from "./read-drift.ts";

/** Most allocations on one page of GET /v1/allocations. */
export const MAX_PAGE = 1_000;

interface StatusApiOptions {
  readonly backend: Omit<ReadinessSource, "synced"> &
    Pick<Backend, "mode" | "ipam" | "live" | "recover" | "stats" | "readPodsOf" | "readObjects" | "client">;
  /** An answer is about all changes that were complete before the question. */
  readonly resources: Pick<Resources, "flush">;
  /** Directories in which runtimes keep the network namespaces of pods. */
  readonly netnsDirectories: readonly string[];
  readonly spool: Pick<Spool, "count">;
  readonly version: string;
  /** Returns the number of times that the agent restored its socket. */
  readonly socketRestored: () => number;
  readonly metrics: Pick<AgentMetricSet, "render">;
  readonly coordinator: CoordinatorState & Pick<OpenCoordinator, "nodeRepair">;
  readonly history: Pick<History, "find">;
  readonly operations: Operations;
  /** Those of packages, by POST. */
  readonly routes: Routes;
}

/** By path. */
export type Routes = Readonly<Record<string, (query: URLSearchParams, signal?: AbortSignal) => Promise<Answer>>>;

export function createStatusApi(options: StatusApiOptions): StatusApi {
  // However many callers ask, one page of rows at a time is on its way from the registry's thread.
  const listings = new SerialQueue();
  // Each reads or copies the whole registry.
  const inspections = new SerialQueue();
  const pages: Routes = {
    "/v1/health": async () => describeHealth(options),
    "/v1/pools": () => listings.run(() => describePools(options.backend.ipam)),
    "/v1/reservations": () => describeReserved(options.backend.ipam),
    "/v1/address": (query) => describeAddress(options.backend, query),
    "/v1/allocations": (query) => listings.run(() => describeAllocations(options.backend, query)),
    "/v1/stats": async () => answerJson(options.backend.stats()),
    "/metrics": async () => ({ status: 200, body: await options.metrics.render(), contentType: METRICS_TYPE }),
    "/v1/history": (query, signal) => describeHistory(options.history, query, signal),
    "/v1/check": (query) => inspections.run(async () => answerJson(await checkNode(options, query.has("used")))),
    "/v1/explain": (query) => inspections.run(async () => answerJson(await explain(options, query))),
  };
  const actions: Routes = {
    "/v1/recover": (query) => answerRecovery(options.backend, query),
    "/v1/release": async (query) => {
      const refused = await refusePlace(options.backend, query);
      if (refused !== undefined) return answerRefusal(409, refused);
      return answerOperation(options.operations, "/v1/release", query);
    },
    "/v1/repair": (query) => inspections.run(async () => answerJson(await repairNode(options, query.has("used")))),
    "/v1/quarantine": (query) => answerOperation(options.operations, "/v1/quarantine", query),
    ...options.routes,
  };
  return async (method, url, signal) => {
    const { pathname = url, searchParams = new URLSearchParams() } = URL.parse(url, "http://berth") ?? {};
    const served = method === "GET" ? pages : method === "POST" ? actions : {};
    const answer = Object.hasOwn(served, pathname) ? served[pathname] : undefined;
    if (answer === undefined) {
      const paths = Object.keys(pages).join(", GET ");
      return answerRefusal(404, `${method} ${describeValue(pathname)} is not served; served are GET ${paths}`);
    }
    try {
      options.resources.flush();
      return await answer(searchParams, signal);
    } catch (error) {
      if (error instanceof QueryError) return answerRefusal(400, error.message);
      return error instanceof UnreadError ? answerRefusal(503, error.message) : answerError(error, "");
    }
  };
}

/** A value of the query cannot be used: the text says which, and what is wanted. */
class QueryError extends Error {}

/** Reads a text; the phrase says what is wanted. */
type Reading<T> = readonly [parse: (text: string) => T | undefined, wanted: string];

/** Returns undefined if the query has no such key. Throws QueryError. */
function find<T>(query: URLSearchParams, key: string, [parse, wanted]: Reading<T>): T | undefined {
  const text = query.get(key);
  const value = text === null ? undefined : parse(text);
  if (text !== null && value === undefined)
    throw new QueryError(`${key}: found ${describeValue(text)}, want ${wanted}`);
  return value;
}

/** Takes whole numbers from 0 to `most`. */
const parseUpTo = (most: number) => (text: string) => {
  const number = Number(text);
  return Number.isInteger(number) && number >= 0 && number <= most ? number : undefined;
};

async function answerRecovery(backend: StatusApiOptions["backend"], query: URLSearchParams): Promise<Answer> {
  if (backend.recover === undefined) {
    return answerRefusal(409, "In a cluster the agent recovers its registry from the API server by itself");
  }
  const [results, netns, isDryRun] = [query.getAll("results"), query.getAll("netns"), query.has("dryRun")];
  return answerJson({ report: await backend.recover({ results, netns, isDryRun }) });
}

/** Longest time until a quarantine that an administrator orders is first probed: seconds. @limit */
const MAX_QUARANTINE_S = 604_800;

async function answerOperation(operations: Operations, path: string, query: URLSearchParams): Promise<Answer> {
  const options = { isDryRun: query.has("dryRun"), isForced: query.has("force") };
  const pod = parsePod(query.get("pod") ?? "");
  const address = parseCursor(query.get("address") ?? "");
  const seconds = find(query, "seconds", [parseUpTo(MAX_QUARANTINE_S), `up to ${MAX_QUARANTINE_S}`]) ?? 0;
  const target = address ?? (pod && { namespace: pod.namespace, pod: pod.name });
  if (target === undefined)
    return answerRefusal(400, "found neither address nor pod, want ADDRESS, ADDRESS/SPACE or NAMESPACE/NAME");
  if (path === "/v1/release") return answerJson(await operations.release(target, options, reportedRecord(query)));
  if (address === undefined) return answerRefusal(400, "address: found nothing, want an address");
  const done = query.has("remove")
    ? operations.endQuarantine(address, options)
    : operations.quarantine(address, seconds * 1000, options);
  return answerJson(await done);
}

/** Returns the report's facts about the address that is to be released; undefined for an order without a report. */
function reportedRecord(query: URLSearchParams): ReportedRecord | undefined {
  const [owner, containerId] = [query.get("owner"), query.get("container")];
  return owner === null || containerId === null ? undefined : { owner, containerId };
}

/** Returns why the agent is not of the report's node and cluster: a sentence. */
async function refusePlace(
  { ipam, client }: Pick<Backend, "ipam" | "client">,
  query: URLSearchParams,
): Promise<string | undefined> {
  const node = query.get("node");
  if (node === null) return undefined;
  if (node !== ipam.node.name) return `The report is of node ${describeValue(node)}, this is ${ipam.node.name}`;
  const cluster = query.get("cluster");
  if (client === undefined)
    return cluster === null ? undefined : "The report is of a cluster, and this node is in none";
  const own = await findClusterId({ client });
  if (own === undefined) return "The API server does not say which cluster this is";
  return own === cluster ? undefined : "The report is of another cluster";
}

async function explain({ backend, coordinator }: StatusApiOptions, query: URLSearchParams): Promise<ExplanationRecord> {
  const { ipam, live } = backend;
  const pool = query.get("pool");
  if (pool !== null) {
    const lines = await explainPool({ inventory: ipam.inventory, live }, pool);
    return { succeeds: true, lines, nics: [] };
  }
  const question = questionOf(query);
  const explained = await explainPod({ ipam, backend, toCniError }, question);
  return {
    ...explained,
    lines: [...explained.lines, ...coordinator.attachments.describe(question.namespace, question.pod)],
  };
}

function questionOf(query: URLSearchParams): Question {
  return {
    namespace: query.get("namespace") ?? "default",
    pod: query.get("pod") ?? "",
    ifName: query.get("interface") || undefined,
    network: query.get("network") || undefined,
  };
}

function describeHealth(options: StatusApiOptions): Answer {
  const { backend, spool, version, socketRestored, coordinator } = options;
  const { mode, ipam, health: registry } = backend;
  // ADDs are served all the same: a runtime that is told otherwise takes the whole node out of service.
  const { isCutOff } = coordinator.nodeRepair;
  const problems = [...coordinator.nodeRepair.problems, ...backend.problems];
  const ready = backend.ready && registry.trouble === undefined && !isCutOff;
  const status = ready ? "ready" : "not-ready";
  const about = { status, version, mode, node: ipam.node.name, problems };
  const health: HealthRecord = { ...about, spool: spool.count(), socketRestored: socketRestored() };
  const answer = answerJson(health);
  return ready ? answer : { ...answer, status: 503 };
}

async function describePools({ inventory }: AddDeps): Promise<Answer> {
  const usage = Map.groupBy(await inventory.registry.countUsage(), ({ pool }) => pool);
  const { pools, reserved } = await inventory.loaded();
  const known = [...pools.values()].map((pool): PoolRecord => {
    const { total, free } = inventory.poolCache.counts(pool.name) ?? { total: 0n, free: 0n };
    // Text: an IPv6 pool has more addresses than a JSON number can count.
    const counts = { total: String(total), used: String(total - free), free: String(free) };
    return { ...describePool(pool, reserved), ...counts, states: statesOf(usage.get(pool.name)) };
  });
  const gone = [...usage].filter(([name]) => !pools.has(name));
  const orphaned = gone.map(([name, counts]): PoolRecord => ({ name, gone: true, states: statesOf(counts) }));
  return answerJson([...known, ...orphaned]);
}

/** Counts of the addresses claimed through this pool; overlapping pools count each address once. */
function statesOf(counts: readonly UsageCount[] = []): PoolRecord["states"] {
  return Object.fromEntries(counts.map(({ state, count }) => [state, count]));
}

async function describeAllocations(backend: StatusApiOptions["backend"], query: URLSearchParams): Promise<Answer> {
  const { inventory } = backend.ipam;
  const after = find(query, "after", [parseCursor, 'the "cursor" of an allocation']);
  const page = await inventory.registry.list(after, MAX_PAGE);
  return answerJson(page.map((allocation) => describeAllocation(allocation, backend)));
}

const MAX_SKIP = 1_000_000;

/** Which lines of the audit log concern an address or a pod. */
async function describeHistory(
  history: StatusApiOptions["history"],
  query: URLSearchParams,
  signal?: AbortSignal,
): Promise<Answer> {
  if (query.has("address") === query.has("pod"))
    throw new QueryError("history: found none or both of address and pod, want exactly one");
  const ip = find(query, "address", [parseIp, "an IP address"]);
  const about = { address: ip && formatIp(ip), pod: find(query, "pod", [parsePod, "NAMESPACE/NAME"]) };
  const [since, until] = ["since", "until"].map((key) => find(query, key, TIME));
  const skip = find(query, "skip", [parseUpTo(MAX_SKIP), "a whole number"]) ?? 0;
  const found = await history.find({ ...about, since, until, skip, isNewest: query.has("newest") }, signal);
  return found === "busy" ? answerRefusal(429, "Too many searches wait; try again") : answerJson(found);
}

const isTime = (text: string): boolean => /^\d{4}-\d\d-\d\dT/.test(text) && !Number.isNaN(Date.parse(text));

const TIME: Reading<string> = [
  (text) => (isTime(text) ? new Date(text).toISOString() : undefined),
  "a time such as 2026-01-31T14:02:00Z",
];

async function describeReserved({ inventory }: AddDeps): Promise<Answer> {
  const { pools, reserved, ended } = await inventory.loaded();
  return answerJson(describeReservations([...reserved, ...ended], [...pools.values()], Date.now()));
}

async function describeAddress(backend: StatusApiOptions["backend"], query: URLSearchParams): Promise<Answer> {
  const { inventory } = backend.ipam;
  const text = query.get("address") ?? "";
  const ip = parseIp(text);
  if (ip === undefined) throw new QueryError(`address: found ${describeValue(text)}, want an address`);
  const { pools, reserved } = await inventory.loaded();
  const places = locateAddress(ip, pools.values(), reserved, inventory.poolCache.occupied);
  const spaces = new Set(["", ...places.map(({ addressSpace }) => addressSpace)]);
  const rows = await Promise.all([...spaces].map((space) => inventory.registry.findAddress(space, ip)));
  const allocations = rows.filter((row) => row !== undefined).map((row) => describeAllocation(row, backend));
  const answer: AddressRecord = { address: formatIp(ip), places, allocations };
  return answerJson(answer);
}

/** Takes `namespace/name`. */
function parsePod(text: string): { readonly namespace: string; readonly name: string } | undefined {
  const [, namespace, name] = /^([^/]+)\/([^/]+)$/.exec(text) ?? [];
  return namespace === undefined || name === undefined ? undefined : { namespace, name };
}

/** The `cursor` of the last entry of the page before: `10.0.0.7`, or `10.0.0.7/space`. */
function parseCursor(text: string): ListCursor | undefined {
  const [address = "", space = ""] = text.split("/");
  const ip = parseIp(address);
  return ip && { space, ip };
}

/** In a cluster the record names this node. */
function describeAllocation(
  allocation: Allocation,
  { mode, ipam }: Pick<StatusApiOptions["backend"], "mode" | "ipam">,
): AllocationRecord {
  const { space, ip, prefixLength, pool, state, owner, ifName } = allocation;
  const { containerId, network, namespace, pod, mac, quarantine } = allocation;
  const address = formatIp(ip);
  return {
    ...{ address, prefixLength, addressSpace: space, pool, state, namespace, pod, owner, interface: ifName },
    ...{ containerId, mac, network, cursor: formatAddressName(address, space) },
    // Without the time of the next probe, which is of the machine's own clock.
    quarantine: quarantine && { reason: quarantine.reason, mac: quarantine.mac, parent: quarantine.parent },
    ...(mode === "cluster" ? { node: ipam.node.name } : {}),
  };
}
