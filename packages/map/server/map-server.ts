/**
 * The address map's HTTP server: the page, and the API that it reads. Only GET and HEAD. On loopback every client sees
 * all; other machines need a bearer token of the cluster, which the API server reviews.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { KubeApi } from "../../../host/kubernetes/kube-api.ts";
import type { Log } from "../../../host/lib/log.ts";
import { PeriodicWorker } from "../../../host/lib/periodic.ts";
import { RateLimit } from "../../../host/lib/rate-limit.ts";
import { type Caller, CallerAccess, callerOf, type Right } from "../../../host/metrics/caller-access.ts";
import {
  type HttpAnswer,
  type HttpListener,
  type Incoming,
  isForLoopback,
  isOpen,
  listenHttp,
  type ServerSettings,
} from "../../../host/metrics/listen.ts";
import { IP_ALLOCATIONS } from "../../../host/resources/collections.ts";
import { countUsed, createMapApi, type MapApi, refuse } from "./map-api.ts";
import type { MapSource } from "./map-source.ts";
import { SAMPLE_MS, UsageSamples } from "./usage-samples.ts";
import type { Viewer } from "./viewer.ts";

/** Most namespaces that a viewer may name in one request. */
const MAX_VIEWED_NAMESPACES = 16;

/** Audience of the viewers' tokens: the API server rejects it, so that no other program can use such a token. */
export const MAP_AUDIENCE = "berth-map";

/**
 * One user's burst of questions, and their rate. A question costs 1, and 1 for each namespace that it names; those that
 * agents answer cost more.
 */
const QUESTIONS = { burst: 240, perSecond: 4, maxKeys: 1_024 };

/** Many agents read their audit logs for a history. */
const COSTS: Readonly<Record<string, number>> = { "/api/v1/history": 20, "/api/v1/explain": 10 };

interface MapServerOptions extends ServerSettings {
  /** Of this process's build; the page shows it. */
  readonly version: string;
  readonly source: MapSource;
  /** Default: none are known yet. */
  readonly samples?: UsageSamples;
  /** Reviews tokens; undefined without a cluster. */
  readonly api: Pick<KubeApi, "call"> | undefined;
  /** Monotonic: milliseconds. */
  readonly nowMs: () => number;
  readonly log: Log;
}

/** The rights of an answer in a browser: run the server's own script and styles, and send requests to no other host. */
const HEADERS: Readonly<Record<string, string>> = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "cache-control": "no-store",
};

const PAGE_FILES = [
  { path: "/", file: "index.html", type: "text/html; charset=utf-8" },
  { path: "/map.js", file: "map.js", type: "text/javascript; charset=utf-8" },
  { path: "/map.css", file: "map.css", type: "text/css; charset=utf-8" },
];

const PAGE = import.meta.url.endsWith(".ts") ? "../../../dist/map/" : "map/";

/** Throws if the page is not built. */
function readPage(): ReadonlyMap<string, HttpAnswer> {
  const read = (file: string) => readFileSync(fileURLToPath(new URL(`${PAGE}${file}`, import.meta.url)));
  return new Map(PAGE_FILES.map(({ path, file, type }) => [path, { status: 200, type, body: read(file) }]));
}

/** Rejects if the address is in use, or a certificate that is there cannot be used. */
export async function listenForViewers(options: MapServerOptions): Promise<HttpListener> {
  const { address, tls, source, log } = options;
  const page = readPage();
  const { samples = new UsageSamples() } = options;
  const api = createMapApi({ source, samples, version: options.version });
  const sampler = new PeriodicWorker({
    failure: "Sampling the usage of pools for the address map failed",
    work: async () => {
      await source.refresh();
      samples.take(countUsed(source), Date.now());
      return SAMPLE_MS;
    },
    retryMs: () => SAMPLE_MS,
    log,
  });
  const answer = answererOf(options, page, api);
  const listener = await listenHttp({
    address,
    tls,
    log: options.log,
    answer: async (path, incoming) => {
      const { headers, ...rest } = await answer(path, incoming);
      return { ...rest, headers: { ...HEADERS, ...headers } };
    },
  }).catch(async (error: unknown) => {
    await sampler.close();
    throw error;
  });
  return {
    url: listener.url,
    close: async () => {
      await sampler.close();
      await listener.close();
    },
  };
}

type Answerer = (path: string, incoming: Incoming) => Promise<HttpAnswer>;

function answererOf(options: MapServerOptions, page: ReadonlyMap<string, HttpAnswer>, api: MapApi): Answerer {
  const { address, log, nowMs } = options;
  const access = new CallerAccess({ ...options, audience: MAP_AUDIENCE });
  const rate = new RateLimit(QUESTIONS, nowMs);
  return async (path, { request, signal }) => {
    const { url = "/", headers } = request;
    // A port on loopback may lead to it.
    if (address.kind === "unix" && !isForLoopback(request)) {
      return refuse(421, "The address map is served on loopback: open it as http://localhost or http://127.0.0.1");
    }
    const file = page.get(path);
    if (file !== undefined) return file;
    if (!path.startsWith("/api/")) return refuse(404, "There is the page at /, and /api/v1/");
    if (isForeign(headers["sec-fetch-site"])) return refuse(403, "The address map answers no other site's page");
    const query = URL.parse(url, "http://berth")?.searchParams ?? new URLSearchParams();
    try {
      const namespaces = query.getAll("namespace");
      const mayAsk = (user: string) => rate.take(user, (COSTS[path] ?? 1) + namespaces.length);
      const visit = isOpen(options)
        ? { viewer: "all" as const, user: "" }
        : await viewerOf({ access, caller: callerOf(request), mayAsk }, namespaces);
      return "status" in visit ? visit : await api(path, { query, ...visit, signal });
    } catch (error) {
      if (signal.aborted) return refuse(503, "The caller has left");
      log.warn({ err: error, path: path.slice(0, 80) }, "Answering the address map failed");
      return refuse(500, "Internal error");
    }
  };
}

/** A page of another site can make a browser send requests to loopback under the name of that site (DNS rebinding). */
function isForeign(site: string | string[] | undefined): boolean {
  return site === "cross-site" || site === "same-site";
}

const GROUP = IP_ALLOCATIONS.apiVersion.replace(/\/.*$/, "");

const MAY_SEE_ALL: Right = {
  resourceAttributes: { group: GROUP, resource: IP_ALLOCATIONS.plural, verb: "list" },
};

function mayListPods(namespace: string): Right {
  return { resourceAttributes: { group: "", resource: "pods", verb: "list", namespace } };
}

const FORBIDDEN =
  'The user may neither "list" ipallocations.ipam.vendor.io, nor pods of a namespace that the request names';

interface Visit {
  readonly access: CallerAccess;
  readonly caller: Caller;
  readonly mayAsk: (user: string) => boolean;
}

/** Returns the token's user, and the user's view; else the answer that tells why there is none. */
async function viewerOf(
  { access, caller, mayAsk }: Visit,
  namespaces: readonly string[],
): Promise<{ readonly viewer: Viewer; readonly user: string } | HttpAnswer> {
  if (namespaces.length > MAX_VIEWED_NAMESPACES) return refuse(400, `At most ${MAX_VIEWED_NAMESPACES} namespaces`);
  const { user, refusal } = await access.admit(caller, MAY_SEE_ALL, FORBIDDEN);
  if (refusal !== undefined && refusal.status !== 403) return refusal;
  if (!mayAsk(user)) return refuse(429, "Too many questions by this user; wait some seconds");
  if (refusal === undefined) return { viewer: "all", user };
  const seen = new Set<string>();
  for (const namespace of new Set(namespaces)) {
    const one = await access.refusal(caller, mayListPods(namespace), FORBIDDEN);
    if (one?.status === 503) return one;
    if (one === undefined) seen.add(namespace);
  }
  return seen.size > 0 ? { viewer: seen, user } : refusal;
}
