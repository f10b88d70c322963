/**
 * The network between the product's clients and the simulated API server: latency, and the faults of requests and
 * watches. The product's own client (lanes, deadlines, retries, decoding) stands before it, as bytes before a socket.
 */
import type { Answer, Send } from "../../host/kubernetes/http/request.ts";
import { BACKGROUND_ATTEMPT_MS } from "../../host/kubernetes/http/retry.ts";
import { ApiError, type KubeCall, type WatchEvent } from "../../host/kubernetes/kube-api.ts";
import type { Writer } from "../fakes/admission/admission.ts";
import { ALLOCATIONS, type MemoryApiServer } from "../fakes/memory-api-server.ts";
import type { Seeded } from "../world/seeded.ts";
import type { Process, SimulatedTime } from "./simulated-time.ts";
import type { Timeline } from "./timeline.ts";

/**
 * A late request is carried out at most so long after its caller gave up or ended: milliseconds. The simulation's own
 * figure, whatever the product relies on.
 */
export const LATE_MS = 5_000;
/** A write that is very late is carried out at most so long after it was sent: milliseconds. */
export const VERY_LATE_MS = 600_000;
/** Greatest age of a stale list: milliseconds. */
const STALE_MS = 30_000;
const WRITES: ReadonlySet<string> = new Set(["POST", "PUT", "DELETE"]);

/** Shares of requests and events that meet a fault, each from 0 to 1. */
export interface NetworkFaults {
  /** Latencies of seconds. */
  slow: number;
  /** The request never reaches the server. */
  lostRequest: number;
  /** It was carried out, and its answer is lost. */
  lostAnswer: number;
  /** It is carried out twice: the second answer arrives. */
  duplicated: number;
  /** 429 with Retry-After. */
  tooMany: number;
  /** 500 or 503. */
  failing: number;
  /** The request is carried out after its caller gave up, within LATE_MS. */
  late: number;
  /** The write is carried out within VERY_LATE_MS, whether its caller is still there or not. */
  veryLate: number;
  /** A list of a watched collection is answered with a state up to STALE_MS ago. */
  staleList: number;
  /** The connection of a watch breaks before the event. */
  brokenWatch: number;
  /** The event comes seconds later; those behind it wait. */
  laggingWatch: number;
}

export const NO_FAULTS: NetworkFaults = {
  slow: 0,
  lostRequest: 0,
  lostAnswer: 0,
  duplicated: 0,
  tooMany: 0,
  failing: 0,
  late: 0,
  veryLate: 0,
  staleList: 0,
  brokenWatch: 0,
  laggingWatch: 0,
};

/** Stands for all collections in a lag. */
const EVERY_PATH = "";
/** Longest time for which the server keeps a watch. */
const BOOKMARK_MS = 60_000;
/** A later answer counts as bad: milliseconds. */
const PROMPT_MS = 500;
/** Objects, the list of a node's, the same of pods, the Node, and the controllers' Lease. */
const RECONCILED = /\/(?:ipallocations|pods|nodes)(?:\/|$)|\/leases\/./;

const OWN_KINDS = "/apis/ipam.vendor.io/";

export type Request = Pick<KubeCall, "method" | "path" | "query" | "body" | "accept">;

interface OpenCall {
  readonly sentMs: number;
  readonly isReconciling: boolean;
}

export interface NetworkOptions {
  readonly time: SimulatedTime;
  readonly server: MemoryApiServer;
  readonly timeline: Timeline;
  /** Carries messages under way when their sender ends. */
  readonly wire: Process;
}

export class Network {
  faults: NetworkFaults = NO_FAULTS;
  /** Called before a write is carried out so many milliseconds after it was sent. */
  onVeryLate: (request: Pick<KubeCall, "method" | "path" | "body">, lateMs: number) => void = () => {};
  /** Names of machines without a connection to the API server. */
  readonly cutOff = new Set<string>();
  /** Paths of collections that the server does not serve now: their kind was deleted. */
  readonly unserved = new Set<string>();
  /** Time for which an admission webhook keeps each write of Berth's kinds; undefined without one: milliseconds. */
  webhookMs: number | undefined;
  /** The process whose request the server carries out: "" for none. */
  writer = "";
  /** Time that a loaded server needs to send the events of the write that it carries out: milliseconds. */
  deliveryMs = 0;
  /** Told of a request for a write that was carried out, and not answered yet. */
  onWrite: (process: Process) => void = () => {};
  /** Told of a write that its kind or a policy refuses. */
  onRefused: (text: string) => void = () => {};
  /** Requests that were carried out, by method and collection. */
  readonly requests = new Map<string, number>();
  readonly #options: NetworkOptions;
  readonly #watches = new Set<Stream>();
  /** Calls of a process's reconciliation to the API server: how many failed, or took long, and those under way. */
  readonly #calls = new Map<Process, { failed: number; readonly open: Set<OpenCall> }>();
  /** The last whole answer to each list, and when it was true. */
  readonly lists = new Map<string, { readonly head: Head; readonly atMs: number }>();
  /** By machine and path: the last time that events waited, on the simulation's clock: milliseconds. */
  readonly #lags = new Map<string, { readonly sinceMs: number; untilMs: number }>();

  constructor(options: NetworkOptions) {
    this.#options = options;
  }

  /** An event for the machine's process waits until then, and those behind it do. */
  noteLag(machine: string, path: string, untilMs: number): void {
    const key = `${machine} ${path}`;
    const { nowMs } = this.#options.time;
    const lag = this.#lags.get(key);
    if (lag !== undefined && lag.untilMs >= nowMs) lag.untilMs = Math.max(lag.untilMs, untilMs);
    else this.#lags.set(key, { sinceMs: nowMs, untilMs });
  }

  /**
   * The machine's process lists the collection, because its watch is broken: nothing newer reaches it before an
   * answer does.
   */
  noteListing(machine: string, path: string, listing: Promise<Answer>): void {
    this.noteLag(machine, path, Number.POSITIVE_INFINITY);
    listing.then(
      ({ status }) => {
        if (status === 200) this.#endLag(machine, path);
      },
      // It asks again.
      () => {},
    );
  }

  /** Ends a lag: events that waited for an answer, or for another watch, have come or come at once. */
  #endLag(machine: string, path: string): void {
    const lag = this.#lags.get(`${machine} ${path}`);
    if (lag?.untilMs === Number.POSITIVE_INFINITY) lag.untilMs = this.#options.time.nowMs;
  }

  /** Returns when the machine's process learned of a write at `atMs`: milliseconds, `atMs` if nothing was late. */
  toldMs(machine: string, path: string, atMs: number): number {
    return this.#endOfLag(machine, path, this.#endOfLag(machine, EVERY_PATH, atMs));
  }

  #endOfLag(machine: string, path: string, atMs: number): number {
    const { sinceMs = atMs, untilMs = atMs } = this.#lags.get(`${machine} ${path}`) ?? {};
    return sinceMs <= atMs ? Math.max(atMs, untilMs) : atMs;
  }

  /** The machine's processes are told nothing until then, or until {@link hears}. */
  noteSilence(machine: string, untilMs = Number.POSITIVE_INFINITY): void {
    this.noteLag(machine, EVERY_PATH, untilMs);
  }

  hears(machine: string): void {
    this.#endLag(machine, EVERY_PATH);
  }

  /** Whether a call of the process has had no answer for longer than its first attempt may take. */
  isStalled(process: Process): boolean {
    const sinceMs = this.#options.time.nowMs - BACKGROUND_ATTEMPT_MS;
    return [...(this.#calls.get(process)?.open ?? [])].some(({ sentMs }) => sentMs < sinceMs);
  }

  /**
   * The process calls the API server. `isReconciling`: its reconciliation waits for the call, which reads or writes an
   * object, or reads the list of its node or a pod.
   */
  noteCall(process: Process, answering: Promise<Answer>, isReconciling: boolean): void {
    const { time } = this.#options;
    const calls = this.#calls.getOrInsertComputed(process, () => ({ failed: 0, open: new Set() }));
    const call = { sentMs: time.nowMs, isReconciling };
    calls.open.add(call);
    const settle = (isGood: boolean): void => {
      calls.open.delete(call);
      if (isReconciling && (!isGood || time.nowMs - call.sentMs > PROMPT_MS)) calls.failed++;
    };
    answering.then(
      ({ status }) => settle(status < 429),
      () => settle(false),
    );
  }

  /** Returns the number of reconciling calls that had no answer, a refusal, or a late answer. */
  badCalls(process: Process): number {
    const { failed, open } = this.#calls.get(process) ?? { failed: 0, open: [] };
    const lateMs = this.#options.time.nowMs - PROMPT_MS;
    return failed + [...open].filter(({ sentMs, isReconciling }) => isReconciling && sentMs < lateMs).length;
  }

  /** The connections of one process on a machine, with its account's token. */
  connect(process: Process, machine: string, writer: Writer): Send {
    const connection = new Connection(this, this.#options, { process, machine, writer });
    return (request, signal) => connection.send(request, signal);
  }

  open(stream: Stream): void {
    this.#endLag(stream.machine, stream.path);
    this.#watches.add(stream);
  }

  /** Its process may ask several times before it has another watch, or a list: until then it is told nothing. */
  close(stream: Stream): void {
    const { machine, path } = stream;
    this.#watches.delete(stream);
    const isWatched = [...this.#watches].some((other) => other.machine === machine && other.path === path);
    if (!isWatched) this.noteLag(machine, path, Number.POSITIVE_INFINITY);
  }

  /** All watches of the machine's processes break now; undefined: of all machines. */
  breakWatches(machine?: string): void {
    for (const stream of [...this.#watches]) if (machine === undefined || stream.machine === machine) stream.break();
  }

  isServed(path: string): boolean {
    return ![...this.unserved].some((collection) => path === collection || path.startsWith(`${collection}/`));
  }

  /** Throws ApiError 404, as for a kind that does not exist. */
  requireServed(path: string): void {
    if (!this.isServed(path)) throw notServed(path);
  }

  /** Returns how long a webhook keeps the request: milliseconds. */
  keepMs({ method, path }: Request): number {
    return method === "GET" || !path.startsWith(OWN_KINDS) ? 0 : (this.webhookMs ?? 0);
  }

  /** Returns how long a loaded server keeps the request waiting: milliseconds. */
  loadMs(_request: Request): number {
    return 0;
  }

  count(request: Request): void {
    const [, collection = request.path] =
      /^(?:\/api\/v1|\/apis\/[^/]+\/[^/]+)(?:\/namespaces\/[^/]+)?\/([^/]+)/.exec(request.path) ?? [];
    const key = `${request.method} ${collection}`;
    this.requests.set(key, (this.requests.get(key) ?? 0) + 1);
  }
}

function notServed(path: string): ApiError {
  const message = "the server could not find the requested resource";
  return new ApiError({ status: 404, reason: "NotFound", operation: path, message });
}

/** An answer as bytes. */
interface Head {
  readonly status: number;
  readonly text: string;
  readonly retryAfter?: string;
}

/** The body of an answer that refuses. */
export function failure({
  status,
  reason,
  message,
  causes = [],
}: Pick<ApiError, "status" | "reason" | "message"> & Partial<Pick<ApiError, "causes">>): string {
  const details = { causes };
  return JSON.stringify({
    kind: "Status",
    apiVersion: "v1",
    status: "Failure",
    reason,
    message,
    details,
    code: status,
  });
}

interface Client {
  readonly process: Process;
  readonly machine: string;
  readonly writer: Writer;
}

class Connection {
  readonly #network: Network;
  readonly #options: NetworkOptions;
  readonly #process: Process;
  readonly #machine: string;
  readonly #writer: Writer;
  readonly #random: Seeded;
  /** Decides about very late writes. */
  readonly #fate: Seeded;

  constructor(network: Network, options: NetworkOptions, { process, machine, writer }: Client) {
    this.#network = network;
    this.#options = options;
    this.#process = process;
    this.#machine = machine;
    this.#writer = writer;
    this.#random = options.time.process(`network of ${process.name}`).random;
    this.#fate = options.time.process(`late writes of ${process.name}`).random;
  }

  send(request: Request, signal: AbortSignal): Promise<Answer> {
    return request.query?.watch === true ? this.#watch(request, signal) : this.#call(request, signal);
  }

  get #isCutOff(): boolean {
    return this.#network.cutOff.has(this.#machine);
  }

  #latencyMs(): number {
    const random = this.#random;
    return random.chance(this.#network.faults.slow) ? random.below(4_000) : 1 + random.below(4);
  }

  #call(request: Request, signal: AbortSignal): Promise<Answer> {
    const { faults } = this.#network;
    const random = this.#random;
    const { time, wire } = this.#options;
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    if (signal.aborted) return Promise.reject(signal.reason);
    const giveUp = (): void => reject(signal.reason);
    signal.addEventListener("abort", giveUp, { once: true });
    promise.then(
      () => signal.removeEventListener("abort", giveUp),
      () => signal.removeEventListener("abort", giveUp),
    );
    if (request.method === "GET" && isWholeList(request))
      this.#network.noteListing(this.#machine, request.path, promise);
    this.#network.noteCall(this.#process, promise, RECONCILED.test(request.path));
    const text = `${this.#process.name} ${request.method} ${request.path}`;
    const reply = (head: Head): void => {
      if (this.#isCutOff) return;
      time.schedule(this.#latencyMs(), `answer ${head.status} to ${text}`, this.#process, () =>
        resolve({ status: head.status, retryAfter: head.retryAfter, body: bodyOf(head.text) }),
      );
    };
    /** Nothing comes any more, or at once that the connection broke. */
    const lose = (): void => {
      if (random.chance(0.5)) return;
      time.schedule(this.#latencyMs(), `broken connection of ${text}`, this.#process, () =>
        reject(Object.assign(new Error("other side closed"), { code: "ECONNRESET" })),
      );
    };
    const isLate = random.chance(faults.late);
    const isLost = random.chance(faults.lostRequest);
    const refusal = random.chance(faults.tooMany) ? 429 : random.chance(faults.failing) ? random.pick([500, 503]) : 0;
    const isAnswerLost = random.chance(faults.lostAnswer);
    const isDuplicated = random.chance(faults.duplicated);
    if (isLost) {
      lose();
      return promise;
    }
    const webhookMs = this.#network.keepMs(request);
    if (WRITES.has(request.method) && faults.veryLate > 0 && this.#fate.chance(faults.veryLate)) {
      this.#carryOutVeryLate(request, text);
      lose();
      return promise;
    }
    let isCarriedOut = false;
    const carryOut = (): void => {
      // A process that ended has given up, too.
      const isTooLate = time.nowMs > this.#process.endedMs + LATE_MS;
      // The server stops a request whose caller has gone while a webhook keeps it.
      if (this.#isCutOff || isCarriedOut || isTooLate || (webhookMs > 0 && signal.aborted)) return;
      isCarriedOut = true;
      if (refusal > 0) {
        const text = refusal === 429 ? "later" : "etcd is slow";
        const reason = refusal === 429 ? "TooManyRequests" : "InternalError";
        reply({
          status: refusal,
          text: failure({ status: refusal, reason, message: text }),
          ...(refusal === 429 ? { retryAfter: "1" } : {}),
        });
        return;
      }
      void this.#commit(request).then((head) => {
        if (isAnswerLost || isLate) return lose();
        if (!isDuplicated) return reply(head);
        time.schedule(
          this.#latencyMs(),
          `server gets ${text} again`,
          wire,
          () => void this.#commit(request).then(reply),
        );
      });
    };
    const arrivesMs =
      (isLate ? 2_000 + random.below(20_000) : this.#latencyMs()) + webhookMs + this.#network.loadMs(request);
    time.schedule(arrivesMs, `server gets ${text}`, wire, carryOut);
    const lateMs = random.below(LATE_MS);
    if (isLate)
      signal.addEventListener("abort", () => time.schedule(lateMs, `server gets ${text} late`, wire, carryOut), {
        once: true,
      });
    return promise;
  }

  #carryOutVeryLate(request: Request, text: string): void {
    const { time, timeline, wire } = this.#options;
    const lateMs = this.#fate.below(VERY_LATE_MS);
    time.schedule(lateMs, `server gets ${text} very late`, wire, () => {
      timeline.note(`${text} is carried out very late`);
      this.#network.onVeryLate(request, lateMs);
      void this.#commit(request);
    });
  }

  async #commit(request: Request): Promise<Head> {
    this.#network.count(request);
    try {
      this.#network.requireServed(request.path);
      this.#network.writer = this.#process.name;
      const answering = this.#options.server.client(undefined, undefined, this.#writer).call(request);
      this.#network.writer = "";
      const object = await answering;
      if (request.method !== "GET") this.#network.onWrite(this.#process);
      const head = { status: request.method === "POST" ? 201 : 200, text: JSON.stringify(object) };
      return this.#network.faults.staleList > 0 && isWatchedList(request) ? this.#staleOr(request, head) : head;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      const { status, causes, message } = error;
      if (status === 403 || status === 400 || causes.length > 0)
        this.#network.onRefused(`${this.#process.name} ${request.method} ${request.path} was refused: ${message}`);
      return { status: error.status, text: failure(error) };
    }
  }

  /** Returns an earlier answer to the same list at times: the API server that answers is behind. */
  #staleOr({ path, query }: Request, head: Head): Head {
    const { lists, faults } = this.#network;
    const { nowMs } = this.#options.time;
    const key = `${path} ${JSON.stringify(query)}`;
    const before = lists.get(key);
    if (before !== undefined && nowMs - before.atMs < STALE_MS && this.#fate.chance(faults.staleList)) {
      this.#options.timeline.note(`${this.#process.name} gets a list of ${path} of ${nowMs - before.atMs} ms ago`);
      return before.head;
    }
    if (!("continue" in JSON.parse(head.text).metadata)) lists.set(key, { head, atMs: nowMs });
    return head;
  }

  #watch(request: Request, signal: AbortSignal): Promise<Answer> {
    const { time, server, wire } = this.#options;
    const random = this.#random;
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    if (signal.aborted) return Promise.reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    if (this.#isCutOff) {
      if (random.chance(0.5))
        time.schedule(1, "no route for a watch", this.#process, () => reject(new Error("no route")));
      return promise;
    }
    const { watch: _, ...query } = request.query ?? {};
    const sentMs = this.#latencyMs() + this.#network.loadMs(request);
    time.schedule(sentMs, `server gets ${this.#process.name} WATCH ${request.path}`, wire, () => {
      if (this.#isCutOff || signal.aborted) return;
      const stream = new Stream(this.#process, this.#machine, request.path, time);
      const ending = new AbortController();
      stream.onEnd = (): void => {
        this.#network.close(stream);
        if (!ending.signal.aborted) ending.abort(new Error("The watch ended"));
      };
      this.#network.open(stream);
      let lastMs = 0;
      const deliver = (give: () => void): void => {
        const { faults, deliveryMs } = this.#network;
        if (random.chance(faults.brokenWatch)) {
          stream.break();
          return;
        }
        const isLagging = random.chance(faults.laggingWatch);
        const lateMs = deliveryMs + (isLagging ? 200 + random.below(8_000) : 1 + random.below(8));
        lastMs = Math.max(lastMs, time.nowMs + lateMs);
        if (isLagging) this.#network.noteLag(this.#machine, request.path, lastMs);
        time.schedule(lastMs - time.nowMs, `event for ${this.#process.name} of ${request.path}`, this.#process, give);
      };
      let version = String(query.resourceVersion ?? "0");
      const onEvent = (event: WatchEvent): void => {
        version = String((event.object as { metadata: { resourceVersion: string } }).metadata.resourceVersion);
        if (!this.#isCutOff) stream.push(event);
      };
      const { path } = request;
      const client = server.client(undefined, (_path, give) => deliver(give));
      let isRefused = false;
      const watching = this.#network.isServed(path)
        ? client.watch({ path, query, onEvent, signal: ending.signal })
        : Promise.reject(notServed(path));
      watching.catch((error: unknown) => {
        if (ending.signal.aborted || !(error instanceof ApiError)) return;
        isRefused = true;
        time.schedule(1, "watch refused", this.#process, () =>
          resolve({ status: error.status, retryAfter: undefined, body: bodyOf(failure(error)) }),
        );
      });
      signal.addEventListener("abort", () => stream.abort(signal.reason), { once: true });
      const lifeMs = Number(query.timeoutSeconds ?? 300) * 1_000;
      time.schedule(lifeMs, "end of a watch", wire, () => stream.finish());
      const bookmark = (): void => {
        if (stream.isOver) return;
        const object = { kind: "", apiVersion: "", metadata: { resourceVersion: version } };
        if (query.allowWatchBookmarks === true && Number(version) > 0 && !this.#isCutOff)
          deliver(() => stream.push({ type: "BOOKMARK", object }));
        time.schedule(BOOKMARK_MS, "bookmark", wire, bookmark);
      };
      time.schedule(BOOKMARK_MS, "bookmark", wire, bookmark);
      time.schedule(this.#latencyMs(), "watch open", this.#process, () => {
        if (!isRefused) resolve({ status: 200, retryAfter: undefined, body: stream as unknown as Answer["body"] });
      });
    });
    return promise;
  }
}

function isWholeList({ query }: Request): boolean {
  return query?.limit !== undefined && query.fieldSelector === undefined;
}

/** Not of allocations: the product lists those for their present state, which only a consistent list has. */
function isWatchedList(request: Request): boolean {
  return request.method === "GET" && isWholeList(request) && !request.path.startsWith(ALLOCATIONS);
}

/** An answer's body, as the product's client reads it. */
export function bodyOf(text: string): Answer["body"] {
  return {
    text: async () => text,
    arrayBuffer: async () => Buffer.from(text),
    dump: async () => {},
    [Symbol.asyncIterator]: async function* () {
      yield Buffer.from(text);
    },
  } as unknown as Answer["body"];
}

/** The bytes of a watch, as they arrive. */
class Stream implements AsyncIterable<Buffer> {
  readonly machine: string;
  /** Path of the collection. */
  readonly path: string;
  onEnd: () => void = () => {};
  isOver = false;
  readonly #process: Process;
  readonly #time: SimulatedTime;
  readonly #waiting: Buffer[] = [];
  #end: { readonly error?: unknown } | undefined;
  #wake: () => void = () => {};

  constructor(process: Process, machine: string, path: string, time: SimulatedTime) {
    this.#process = process;
    this.machine = machine;
    this.path = path;
    this.#time = time;
  }

  push(event: WatchEvent): void {
    if (this.isOver) return;
    this.#waiting.push(Buffer.from(`${JSON.stringify(event)}\n`));
    this.#wake();
  }

  /** The server ends it as it should. */
  finish(): void {
    this.#over({});
  }

  /** The connection breaks. */
  break(): void {
    this.#over({ error: Object.assign(new Error("other side closed"), { code: "UND_ERR_SOCKET" }) });
  }

  /** The client ends it. */
  abort(reason: unknown): void {
    if (this.isOver) return;
    this.isOver = true;
    this.#end = { error: reason };
    this.onEnd();
    this.#wake();
  }

  #over(end: { readonly error?: unknown }): void {
    if (this.isOver) return;
    this.isOver = true;
    this.onEnd();
    this.#time.schedule(1, "end of a stream", this.#process, () => {
      this.#end = end;
      this.#wake();
    });
  }

  async text(): Promise<string> {
    return "";
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer> {
    try {
      for (;;) {
        const piece = this.#waiting.shift();
        if (piece !== undefined) {
          yield piece;
          continue;
        }
        if (this.#end !== undefined) {
          if ("error" in this.#end) throw this.#end.error;
          return;
        }
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    } finally {
      this.isOver = true;
      this.onEnd();
    }
  }
}
