/**
 * What people and tools may ask the agent: GET /v1/health, /v1/pools, /v1/allocations, /v1/explain.
 * Called by the socket server; answers are JSON and change nothing.
 * Effects: reads the registry.
 */
import { formatIp, parseIp } from "../net/ip.ts";
import { formatPrefix } from "../net/prefix.ts";
import type { Allocation, ListCursor, UsageCount } from "../registry/registry.ts";
import { type Answer, answerError, answerJson } from "./answer.ts";
import type { IpamTools } from "./ipam/add.ts";
import { explainPod, type Question } from "./ipam/explain.ts";
import type { Readiness } from "./ipam/plugin.ts";
import { MAX_PAGE } from "./limits.ts";
import type { Spool } from "./spool.ts";

export type Inspector = (method: string, url: string) => Promise<Answer>;

export interface InspectorOptions extends IpamTools {
  readonly spool: Spool;
  readonly readiness: () => Readiness;
  readonly version: string;
}

export function createInspector(options: InspectorOptions): Inspector {
  const pages: Readonly<Record<string, (query: URLSearchParams) => Promise<Answer>>> = {
    "/v1/health": async () => describeHealth(options),
    "/v1/pools": () => describePools(options),
    "/v1/allocations": (query) => describeAllocations(options, query),
    "/v1/explain": async (query) => answerJson({ explanation: await explainPod(options, questionOf(query)) }),
  };
  return async (method, url) => {
    const { pathname, searchParams } = new URL(url, "http://berth");
    const page = pages[pathname];
    if (page === undefined || method !== "GET") {
      const error = `${method} ${pathname} is not served; there are GET ${Object.keys(pages).join(", GET ")}`;
      return { status: 404, body: `${JSON.stringify({ error })}\n` };
    }
    try {
      return await page(searchParams);
    } catch (error) {
      return answerError(error, "");
    }
  };
}

function questionOf(query: URLSearchParams): Question {
  const value = (key: string, absent: string): string => query.get(key) ?? absent;
  return {
    namespace: value("namespace", "default"),
    pod: value("pod", ""),
    ifName: value("interface", "eth0"),
    network: value("network", ""),
  };
}

function describeHealth({ readiness, spool, version }: InspectorOptions): Answer {
  const { ready, problems } = readiness();
  const answer = answerJson({ status: ready ? "ready" : "not-ready", version, problems, spool: spool.count() });
  return ready ? answer : { ...answer, status: 503 };
}

async function describePools({ catalogue, registry }: InspectorOptions): Promise<Answer> {
  const usage = await registry.countUsage();
  const { pools } = await catalogue.settled();
  const known = [...pools.values()].map(({ name, spec }) => {
    const counts = catalogue.book.counts(name);
    const { total, free } = counts ?? { total: 0n, free: 0n };
    return {
      name,
      subnet: formatPrefix(spec.subnet),
      default: spec.default,
      disabled: spec.disable,
      // Text: an IPv6 pool has more addresses than a JSON number can count.
      total: String(total),
      used: String(total - free),
      free: String(free),
      states: statesOf(usage, name),
    };
  });
  const gone = new Set(usage.map(({ pool }) => pool).filter((name) => !pools.has(name)));
  const orphaned = [...gone].map((name) => ({ name, gone: true, states: statesOf(usage, name) }));
  return answerJson([...known, ...orphaned]);
}

/** Of the addresses that were claimed through this pool; overlapping pools count each address once. */
function statesOf(usage: readonly UsageCount[], poolName: string): Record<string, number> {
  const own = usage.filter(({ pool }) => pool === poolName);
  return Object.fromEntries(own.map(({ state, count }) => [state, count]));
}

async function describeAllocations({ registry }: InspectorOptions, query: URLSearchParams): Promise<Answer> {
  const after = parseCursor(query.get("after"));
  const page = await registry.list(after, MAX_PAGE);
  return answerJson(page.map(describeAllocation));
}

/** The `cursor` of the last entry of the page before: `10.0.0.7`, or `10.0.0.7/space`. */
function parseCursor(text: string | null): ListCursor | undefined {
  if (text === null) return undefined;
  const [address = "", space = ""] = text.split("/");
  const ip = parseIp(address);
  return ip && { space, ip };
}

function describeAllocation(allocation: Allocation): Record<string, unknown> {
  const { space, ip, prefixLength, pool, state, owner, ifName, containerId, network, namespace, pod } = allocation;
  const address = formatIp(ip);
  return {
    ...{ address, prefixLength, addressSpace: space, pool, state, namespace, pod, owner },
    ...{ interface: ifName, containerId, network, cursor: space === "" ? address : `${address}/${space}` },
  };
}
