/**
 * The address map's answers to GET /api/v1/…: records of map-records.ts, the bytes of a map, and streams of
 * changes.
 */

import type { ServerResponse } from "node:http";
import type * as z from "zod";
import { readCoreWasm } from "../../../host/core/instance.ts";
import { PoolSpace } from "../../../host/core/pool-space.ts";
import { rangesContain, rangesOf, sizeOf, spansOf, withoutSpans } from "../../../host/core/spans.ts";
import { describeValue } from "../../../host/lib/describe.ts";
import { byName } from "../../../host/lib/order.ts";
import { answerJson, type HttpAnswer } from "../../../host/metrics/listen.ts";
import { formatIp, type Ip, parseIp } from "../../../host/net/ip.ts";
import { formatPrefix } from "../../../host/net/prefix.ts";
import type { Range } from "../../../host/net/range.ts";
import {
  describeOutcome,
  type ExplanationRecord,
  explanationRecord,
} from "../../../host/records/explanation-record.ts";
import { encodeMap, isIn } from "./encode-map.ts";
import { listAddresses, MAX_SEARCH_TEXT, searchAddresses } from "./find-addresses.ts";
import {
  addressesAnswer,
  type ChangesEvent,
  historyAnswer,
  type PoolAlert,
  type PoolsAnswer,
  poolsAnswer,
  searchAnswer,
  usageAnswer,
} from "./map-records.ts";
import type { MapPool, MapReservation, MapSource } from "./map-source.ts";
import type { UsageSamples } from "./usage-samples.ts";
import { seesPool, stateFor, stateNumber, type Viewer } from "./viewer.ts";

/** Most pages that follow changes of the address map at once. */
const MAX_FEEDS = 16;

/** Most of them of one user. */
const MAX_FEEDS_OF_USER = 4;

/** Time after which the stream of changes ends, and the page has its rights reviewed again: milliseconds. */
const FEED_LIFE_MS = 300_000;

/** Media type of the bytes of encode-map.ts. */
const MAP_TYPE = "application/octet-stream";

interface MapApiOptions {
  readonly source: MapSource;
  readonly samples: UsageSamples;
  readonly version: string;
}

interface Question {
  readonly query: URLSearchParams;
  readonly viewer: Viewer;
  /** "" where every client that can connect sees all. */
  readonly user: string;
  /** Aborted when the viewer has left. */
  readonly signal: AbortSignal;
}

/** Answers for a viewer whose rights were checked. */
export type MapApi = (path: string, question: Question) => Promise<HttpAnswer>;

export function createMapApi({ source, samples, version }: MapApiOptions): MapApi {
  const space = PoolSpace.open(readCoreWasm());
  /** The users of those that are open. */
  const feeds: string[] = [];

  /** The pool that the query names, if the viewer may know of it. */
  const poolOf = ({ query, viewer }: Question): MapPool | undefined => {
    const name = query.get("pool");
    return source.pools().find((pool) => pool.name === name && seesPool(viewer, pool));
  };
  const withPool = (question: Question, answer: (pool: MapPool) => HttpAnswer): HttpAnswer => {
    const pool = poolOf(question);
    return pool === undefined
      ? refuse(404, `There is no pool ${describeValue(question.query.get("pool"))}`)
      : answer(pool);
  };

  const pages: Readonly<Record<string, (question: Question) => HttpAnswer | Promise<HttpAnswer>>> = {
    "/api/v1/pools": ({ viewer }) => encode(poolsAnswer, { version, ...describePools(source, viewer) }),
    "/api/v1/map": (question) =>
      withPool(question, (pool) => {
        const { viewer } = question;
        const [allocations, reserved] = [source.allocations(), source.reserved()];
        return { status: 200, type: MAP_TYPE, body: encodeMap(space, { pool, allocations, reserved, viewer }) };
      }),
    "/api/v1/addresses": (question) =>
      withPool(question, (pool) => {
        const { query, viewer } = question;
        const [first, last] = [parseIp(query.get("first") ?? ""), parseIp(query.get("last") ?? "")];
        if (!isSpan(first, last)) return refuse(400, "first, last: found no span, want two addresses of one family");
        const span = { pool, first, last: last ?? first, allocations: source.allocations(), viewer };
        return encode(addressesAnswer, listAddresses(span));
      }),
    "/api/v1/search": ({ query, viewer }) => {
      const text = query.get("q") ?? "";
      if (text.trim() === "" || text.length > MAX_SEARCH_TEXT) {
        return refuse(400, `q: found ${text.length} characters, want 1 to ${MAX_SEARCH_TEXT}`);
      }
      const pools = source.pools().filter((pool) => seesPool(viewer, pool));
      return encode(searchAnswer, searchAddresses({ text, pools, allocations: source.allocations(), viewer }));
    },
    "/api/v1/usage": (question) => withPool(question, ({ name }) => encode(usageAnswer, samples.read(name))),
    "/api/v1/changes": (question) =>
      withPool(question, (pool) => {
        const { user, viewer } = question;
        const own = user === "" ? 0 : feeds.filter((each) => each === user).length;
        if (feeds.length >= MAX_FEEDS || own >= MAX_FEEDS_OF_USER)
          return refuse(503, "Too many pages follow changes; close one of them");
        const body: HttpAnswer["body"] = (response) => {
          feeds.push(user);
          const onEnd = (): void => void feeds.splice(feeds.indexOf(user), 1);
          feedChanges(response, { pool, viewer, source, onEnd });
        };
        return { status: 200, type: "text/event-stream", body };
      }),
    "/api/v1/explain": (question) => explain(source, question),
    "/api/v1/history": (question) => tellHistory(source, question, poolOf(question)),
  };

  return async (path, question) => {
    const answer = Object.hasOwn(pages, path) ? pages[path] : undefined;
    if (answer === undefined) return refuse(404, `${describeValue(path)} is not served`);
    await source.refresh();
    return answer(question);
  };
}

function isSpan(first: Ip | undefined, last: Ip | undefined): first is Ip {
  return first !== undefined && last !== undefined && first.family === last.family;
}

const ONLY_AGENTS_KNOW = refuse(404, "Only agents know, and this server cannot ask them; use kubectl berth");

async function explain({ questions }: MapSource, { query, viewer, signal }: Question): Promise<HttpAnswer> {
  if (questions === undefined) return ONLY_AGENTS_KNOW;
  const [namespace, name] = [query.get("in") ?? "", query.get("pod") ?? ""];
  if (namespace === "" || name === "") return refuse(400, "in, pod: found nothing, want the namespace and the name");
  if (viewer !== "all" && !viewer.has(namespace)) return refuse(403, "The pod is in none of the namespaces shown");
  const explanation = await questions.explain({ namespace, name }, signal);
  return encode(explanationRecord, viewer === "all" ? explanation : forOwner(explanation));
}

/**
 * Returns the part for the pod's owner: the outcome of each NIC in the runtime's words, without the names of pools that
 * serve others.
 */
function forOwner({ succeeds, lines, nics }: ExplanationRecord): ExplanationRecord {
  const told = nics.flatMap((nic) => [describeOutcome(nic), ...(nic.details ?? "").split("\n")]);
  // Without a NIC the lines are the runtime's error.
  return { succeeds, lines: nics.length === 0 ? lines : told.filter((line) => line !== ""), nics: [] };
}

/** `pool`: lines about the same address of another address space are left out. */
async function tellHistory(
  source: MapSource,
  { query, viewer, signal }: Question,
  pool: MapPool | undefined,
): Promise<HttpAnswer> {
  const { questions } = source;
  if (questions === undefined) return ONLY_AGENTS_KNOW;
  const ip = parseIp(query.get("address") ?? "");
  if (ip === undefined) return refuse(400, "address: found none, want an IP address");
  const { lines, problems } = await questions.history(ip, signal);
  const isOfThis = (namespace: string, time: string): boolean => {
    const since = source.namespaceSince?.(namespace);
    return since !== undefined && Date.parse(time) >= Date.parse(since);
  };
  const others = source.pools().filter(({ addressSpace }) => pool !== undefined && addressSpace !== pool.addressSpace);
  const elsewhere = new Set(others.map(({ name }) => name));
  const seen = lines.filter(
    ({ namespace, time, addresses, pools }) =>
      !elsewhere.has(pools[addresses.indexOf(formatIp(ip))] ?? "") &&
      (viewer === "all" || (viewer.has(namespace) && isOfThis(namespace, time))),
  );
  // Problems name nodes.
  const why = viewer === "all" || problems.length === 0 ? [...problems] : ["Lines may be missing."];
  return encode(historyAnswer, { lines: seen, problems: why });
}

function describePools(source: MapSource, viewer: Viewer): Omit<PoolsAnswer, "version"> {
  const shown = source.pools().filter((pool) => seesPool(viewer, pool));
  const reserved = source.reserved();
  const offers = new Map(shown.map((pool) => [pool.name, offerOf(pool, reserved)]));
  const { counts, taken } = countStates(source, viewer, offers);
  const pools = shown.map((pool): PoolsAnswer["pools"][number] => {
    const { name, subnet, addressSpace, ranges, isDefault, isDisabled, generated, conditions } = pool;
    const states = counts.get(name) ?? {};
    const size = sizeOf(spansOf(offers.get(name) ?? []));
    const free = size - BigInt(taken.get(name) ?? 0);
    return {
      name,
      subnet: formatPrefix(subnet),
      family: subnet.ip.family,
      addressSpace,
      size: String(sizeOf(spansOf(ranges))),
      free: String(free),
      states,
      isDefault,
      isDisabled,
      ...(generated === undefined ? {} : { generated: `Subnet ${generated.subnet}, for ${generated.owner}` }),
      conditions: conditions.map((each) => (viewer === "all" ? { ...each } : { ...each, message: "" })),
      alerts: findAlerts({ size, free, quarantined: states.Quarantined, isGenerated: generated !== undefined }),
    };
  });
  pools.sort(byName);
  const { mode } = source;
  const canExplain = source.questions !== undefined;
  return { mode, canExplain, problems: viewer === "all" ? [...source.problems()] : [], pools };
}

/** Returns the addresses that the pool may hand out. */
function offerOf(pool: MapPool, reserved: readonly MapReservation[]): readonly Range[] {
  const { subnet, addressSpace, ranges, excluded } = pool;
  const { family } = subnet.ip;
  const held = reserved.filter((each) => each.addressSpace === addressSpace).flatMap((each) => each.ranges);
  const left = [...excluded, ...held.filter(({ first }) => first.family === family)];
  return rangesOf(withoutSpans(spansOf(ranges), spansOf(left)), family);
}

type States = PoolsAnswer["pools"][number]["states"];

/** Counts the allocations by pool, wherever their addresses are, and those `taken` from what the pool offers. */
function countStates(source: MapSource, viewer: Viewer, offers: ReadonlyMap<string, readonly Range[]> = new Map()) {
  const counts = new Map<string, States>();
  const taken = new Map<string, number>();
  for (const allocation of source.allocations()) {
    const { pool, ip } = allocation;
    const states = counts.getOrInsertComputed(pool, () => ({}));
    const state = stateFor(viewer, allocation);
    states[state] = (states[state] ?? 0) + 1;
    if (rangesContain(offers.get(pool) ?? [], ip)) taken.set(pool, (taken.get(pool) ?? 0) + 1);
  }
  return { counts, taken };
}

/** Checks the server's own answer: keys that the schema does not describe are a bug. */
function encode<S extends z.ZodType>(schema: S, value: z.input<S>): HttpAnswer {
  return answerJson(200, schema.parse(value) as object);
}

export function refuse(status: number, error: string): HttpAnswer {
  return answerJson(status, { error });
}

/** Returns how many addresses were claimed from each pool and are not free. */
export function countUsed(source: MapSource): ReadonlyMap<string, number> {
  const { counts } = countStates(source, "all");
  return new Map(source.pools().map(({ name }) => [name, sumOf(counts.get(name) ?? {})]));
}

function sumOf(states: States): number {
  return Object.values(states).reduce((total, count) => total + count, 0);
}

/** Below this share of free addresses a pool is nearly full. */
const NEARLY_FULL = 0.1;

interface PoolCounts {
  /** Addresses that the pool may hand out. */
  readonly size: bigint;
  readonly free: bigint;
  readonly quarantined: number | undefined;
  /** Such a pool is as large as its workload needs. */
  readonly isGenerated: boolean;
}

/** Returns the worst first. */
export function findAlerts({ size, free, quarantined = 0, isGenerated }: PoolCounts): PoolAlert[] {
  const alerts: PoolAlert[] = [];
  if (!isGenerated && size > 0n && free === 0n) {
    alerts.push({ kind: "Full", text: "The pool has no free address: new pods that need it do not start." });
  } else if (!isGenerated && Number(free) < NEARLY_FULL * Number(size)) {
    alerts.push({ kind: "NearlyFull", text: `The pool is nearly full: ${free} of ${size} addresses are free.` });
  }
  if (quarantined > 0) {
    const what = quarantined === 1 ? "1 address is" : `${quarantined} addresses are`;
    const text = `${what} in quarantine: another machine answered for it, its node was lost, or its block goes back.`;
    alerts.push({ kind: "Quarantined", text: quarantined === 1 ? text : text.replace("for it", "for each") });
  }
  return alerts;
}

/** Time for which changes of a map are gathered before they are sent: milliseconds. */
const GATHER_MS = 100;

/** Interval of a stream's signs of life while nothing changes: milliseconds. */
const KEEP_ALIVE_MS = 15_000;

/** Most changes that are gathered; with more the stream ends, and the page reads the map again. */
const MAX_GATHERED = 20_000;

/** Bytes that a slow reader may leave unread before its stream is closed. */
const MAX_UNREAD_BYTES = 4_194_304;

interface FeedOptions {
  readonly pool: MapPool;
  readonly viewer: Viewer;
  readonly source: MapSource;
  readonly onEnd: () => void;
}

/** Writes events until the reader, or time, ends the stream. The first, `open`, says that all later ones come. */
function feedChanges(response: ServerResponse, { pool, viewer, source, onEnd }: FeedOptions): void {
  const waiting = new Map<string, number>();
  let timer: NodeJS.Timeout | undefined;
  const write = (text: string): void => {
    if (response.writableLength > MAX_UNREAD_BYTES) response.destroy();
    // Whoever reads slowly may not have the end yet.
    else if (!response.writableEnded) response.write(text);
  };
  const flush = (): void => {
    timer = undefined;
    const changes: ChangesEvent = [...waiting];
    write(`event: changes\ndata: ${JSON.stringify(changes)}\n\n`);
    waiting.clear();
  };
  const unsubscribe = source.subscribe((change) => {
    if (response.writableEnded || !isIn(pool, change)) return;
    waiting.set(formatIp(change.ip), stateNumber(change.allocation && stateFor(viewer, change.allocation)));
    if (waiting.size > MAX_GATHERED) response.end();
    timer ??= setTimeout(flush, GATHER_MS);
  });
  const beat = setInterval(() => write(": alive\n\n"), KEEP_ALIVE_MS);
  const life = setTimeout(() => response.end(), FEED_LIFE_MS);
  write("event: open\ndata: {}\n\n");
  response.once("close", () => {
    for (const each of [timer, life]) clearTimeout(each);
    clearInterval(beat);
    unsubscribe();
    onEnd();
  });
}
