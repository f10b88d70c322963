/**
 * Lets writes rest that the API server refuses: the same write of the same object is sent again after a pause that
 * grows to a minute, or as soon as the object has changed. In between it is answered with the refusal, so a loop may
 * repeat it as often as it likes. An internal error counts: it is that of a webhook for one object. Of a call of one
 * attempt it is no refusal, nor is a missing answer or another 5xx: the client, or the caller of one attempt, retries.
 */
import { ApiError, type KubeApi, type KubeCall, type KubeObject } from "./kube-api.ts";

/**
 * Most refused writes within one second, of all loops of a process, beside those that are under way when a collection
 * is refused first. Conflicts do not count: they are part of work.
 */
export const REFUSALS_PER_SECOND = 10;

/** Most of them that are repetitions: an object that was never refused does not wait for thousands that are. */
const REPEATED_PER_SECOND = 5;

/**
 * The first pause after a refusal: milliseconds. Each next one is as long as all so far, so that they double. It is
 * short, since many a refusal passes by itself: of a right that was just given, or a policy that was just changed.
 */
const REST_FIRST_MS = 250;

/** Time after which a refusal is reported: milliseconds. */
const LASTING_MS = 2_000;

/** The longest pause between two refusals of one write: milliseconds. */
export const REST_MAX_MS = 60_000;

/** Share of a pause by which it is longer at random: many nodes are refused at once. */
const REST_SPREAD = 0.1;

/** Time after which a write that is not repeated is forgotten, beyond its rest: milliseconds. */
const FORGET_MS = 2 * REST_MAX_MS;

/** Most versions of one object that are known to be this process's own. */
const MAX_OWN_VERSIONS = 64;

/** A write that was refused: now, or earlier, and rests. */
export class RefusedWrite extends ApiError {
  /** Time after which it may be sent: milliseconds, more than 0. Read by PeriodicWorker. */
  readonly restMs: number;
  /** It has been refused for so long that it is reported. */
  readonly isLasting: boolean;

  constructor(refusal: ApiError, restMs: number, isLasting = false) {
    super(refusal);
    // A timer of a broken millisecond is early.
    this.restMs = Math.ceil(restMs);
    this.isLasting = isLasting;
  }
}

/** One write of one object by one part, as it was refused last. */
interface Rest {
  /** The wanted content of the object. */
  readonly content: string;
  /** The version that it was for, and those that own writes of other parts have made of that. */
  readonly versions: Set<string>;
  /** When it was refused first. */
  readonly sinceMs: number;
  readonly dueMs: number;
  readonly refusal: ApiError;
  readonly isLasting: boolean;
}

interface RefusedWritesOptions {
  /** Monotonic: milliseconds. */
  readonly nowMs: () => number;
  /** Returns a number in [0, 1). */
  readonly random: () => number;
}

export interface RestTerms {
  /** Name of the part. The writes of one part to one object rest together, those of another by themselves. */
  readonly part: string;
  /** Told once of a write whose refusal lasts, and again when the server says something else. */
  readonly onRefused?: (call: KubeCall, refusal: ApiError) => void;
}

export class RefusedWrites {
  readonly #options: RefusedWritesOptions;
  /** By the object's path, then by part and call. */
  readonly #rests = new Map<string, Map<string, Rest>>();
  /** By collection and method: until when a write is expected to be refused. */
  readonly #suspect = new Map<string, number>();
  /** When writes were refused, or sent that may be, within the last second. */
  readonly #recent: number[] = [];
  #latest: ApiError | undefined;
  readonly #listeners = new Set<() => void>();
  #sweptMs = 0;

  constructor(options: RefusedWritesOptions) {
    this.#options = options;
  }

  /** Returns the client for one part. Reads, watches, and writes that were asked for pass unchanged. */
  apiFor(api: KubeApi, terms: RestTerms): KubeApi {
    return {
      call: (call) => (call.method === "GET" || call.isAsked === true ? api.call(call) : this.#write(api, call, terms)),
      watch: (watch) => api.watch(watch),
    };
  }

  /** Returns the lasting refusal of a write by the part to the object, such as `/apis/…/ippools/blue`. */
  find(part: string, path: string): ApiError | undefined {
    for (const [key, { refusal, isLasting }] of this.#rests.get(path) ?? [])
      if (isLasting && key.startsWith(`${part} `)) return refusal;
    return undefined;
  }

  /** Calls the listener when {@link RefusedWrites.find} has another one. Returns the function that ends it. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async #write(api: Pick<KubeApi, "call">, call: KubeCall, terms: RestTerms): Promise<KubeObject> {
    const target = targetOf(call, terms.part);
    const before = this.#restOf(target);
    const restMs = before === undefined ? 0 : before.dueMs - this.#options.nowMs();
    if (before !== undefined && restMs > 0) throw new RefusedWrite(before.refusal, restMs, before.isLasting);
    const reserved = this.#reserve(target, before);
    try {
      const answer = await api.call({ ...call, isFinal: isInternal });
      this.#release(reserved);
      this.#succeed(target, answer);
      return answer;
    } catch (error) {
      if (isRefusal(error, call)) throw this.#refuse({ target, before, reserved, call, terms }, error);
      this.#release(reserved);
      throw error;
    }
  }

  /** Returns how the write was refused; undefined if it was not, or the object or the write is another one by now. */
  #restOf({ path, key, version, content }: Target): Rest | undefined {
    const rest = this.#rests.get(path)?.get(key);
    return rest?.content === content && rest.versions.has(version) ? rest : undefined;
  }

  /** Takes a place among the refused writes of this second, if it is to be expected that this is one. */
  #reserve({ group }: Target, before: Rest | undefined): number | undefined {
    const nowMs = this.#options.nowMs();
    while ((this.#recent[0] ?? nowMs) <= nowMs - 1_000) this.#recent.shift();
    const nth = this.#recent.at(before === undefined ? -REFUSALS_PER_SECOND : -REPEATED_PER_SECOND);
    const refusal = before?.refusal ?? this.#latest;
    if (nth !== undefined && refusal !== undefined)
      throw new RefusedWrite(refusal, nth + 1_000 - nowMs, before?.isLasting);
    if ((this.#suspect.get(group) ?? 0) <= nowMs) return undefined;
    this.#recent.push(nowMs);
    return nowMs;
  }

  #release(reserved: number | undefined): void {
    const at = reserved === undefined ? -1 : this.#recent.indexOf(reserved);
    if (at >= 0) this.#recent.splice(at, 1);
  }

  /**
   * An own write is no change of the object for the other parts: their refused writes still rest. It ends their
   * conflicts, of which it may be the cause: the answers come in any order.
   */
  #succeed({ path, key, version }: Target, answer: KubeObject): void {
    const rests = this.#rests.get(path);
    if (rests === undefined) return;
    rests.delete(key);
    if (rests.size === 0) this.#rests.delete(path);
    const { resourceVersion: now } = partOf(answer, "metadata");
    for (const { versions, refusal } of rests.values()) {
      if (version === "" || typeof now !== "string" || refusal.status === 409 || !versions.has(version)) continue;
      versions.add(now);
      for (const oldest of versions) if (versions.size > MAX_OWN_VERSIONS) versions.delete(oldest);
    }
  }

  #refuse({ target, before, reserved, call, terms }: Attempt, refusal: ApiError): RefusedWrite {
    const { path, key, version, content, group } = target;
    const nowMs = this.#options.nowMs();
    const isConflict = refusal.status === 409;
    if (isConflict) this.#release(reserved);
    else {
      if (reserved === undefined) this.#recent.push(nowMs);
      this.#suspect.set(group, nowMs + FORGET_MS);
      this.#latest = refusal;
    }
    const { sinceMs = nowMs, versions = new Set([version]) } = before ?? {};
    const spread = isConflict ? 0 : REST_SPREAD * this.#options.random();
    const restMs = Math.min(Math.max(REST_FIRST_MS, nowMs - sinceMs), REST_MAX_MS) * (1 + spread);
    const rests = this.#rests.getOrInsertComputed(path, () => new Map());
    // After a change of the object it is no news that the write is still refused.
    const reported = rests.get(key)?.isLasting === true ? rests.get(key)?.refusal.message : undefined;
    const isLasting = !isConflict && (reported !== undefined || nowMs - sinceMs >= LASTING_MS);
    rests.set(key, { content, versions, sinceMs, dueMs: nowMs + restMs, refusal, isLasting });
    this.#sweep(nowMs);
    if (isLasting && reported !== refusal.message) {
      for (const listener of this.#listeners) listener();
      terms.onRefused?.(call, refusal);
    }
    return new RefusedWrite(refusal, restMs, isLasting);
  }

  #sweep(nowMs: number): void {
    if (nowMs - this.#sweptMs < REST_MAX_MS) return;
    this.#sweptMs = nowMs;
    for (const [path, rests] of this.#rests) {
      for (const [key, { dueMs }] of rests) if (dueMs + FORGET_MS < nowMs) rests.delete(key);
      if (rests.size === 0) this.#rests.delete(path);
    }
    for (const [group, untilMs] of this.#suspect) if (untilMs <= nowMs) this.#suspect.delete(group);
  }
}

/** A write as it is told from others. */
interface Target {
  /** Of the object, without a subresource. */
  readonly path: string;
  readonly key: string;
  readonly group: string;
  /** The version that the write is for; "": any, or there is no object. */
  readonly version: string;
  readonly content: string;
}

interface Attempt {
  readonly target: Target;
  readonly before: Rest | undefined;
  readonly reserved: number | undefined;
  readonly call: KubeCall;
  readonly terms: RestTerms;
}

/** A time in a written object says when it was written. */
const TIMES = /"\d{4}-\d\d-\d\dT[0-9:.]+Z"/g;

function targetOf({ method, path, body = {} }: KubeCall, part: string): Target {
  const metadata = partOf(body, "metadata");
  const isCreated = method === "POST";
  const isStatus = !isCreated && path.endsWith("/status");
  const object = isCreated ? `${path}/${metadata.name}` : isStatus ? path.slice(0, -"/status".length) : path;
  const collection = object.slice(0, object.lastIndexOf("/"));
  const { resourceVersion = "" } = method === "DELETE" ? partOf(body, "preconditions") : metadata;
  const content = JSON.stringify([metadata.labels, metadata.finalizers, partOf(body, "spec")]).replace(TIMES, "");
  return {
    path: object,
    key: `${part} ${method} ${path}`,
    group: `${method} ${collection}${isStatus ? "/status" : ""}`,
    version: String(resourceVersion),
    content,
  };
}

function partOf(object: object, name: string): Readonly<Record<string, unknown>> {
  const value: unknown = (object as Readonly<Record<string, unknown>>)[name];
  return typeof value === "object" && value !== null ? { ...value } : {};
}

/** As where an admission webhook fails for the object. */
const isInternal = ({ status, reason }: ApiError): boolean => status === 500 && reason === "InternalError";

/**
 * An absent object is no refusal: the kind may come back with all of its objects. Nor is a taken name. 408 and 429 are
 * the server's load.
 */
function isRefusal(error: unknown, { method, patienceMs }: KubeCall): error is ApiError {
  if (!(error instanceof ApiError) || error instanceof RefusedWrite) return false;
  const { status } = error;
  if (isInternal(error)) return patienceMs !== 0;
  return status >= 400 && status < 500 && ![404, 408, 410, 429, ...(method === "POST" ? [409] : [])].includes(status);
}

/** Writes that do not wait for each other: a refusal for one object does not stop those of the others. */
export class RefusalsOf {
  #soonest: RefusedWrite | undefined;

  /** Returns `otherwise` if it was refused. */
  async attempt<T>(write: () => Promise<T>, otherwise?: T): Promise<T | undefined> {
    try {
      return await write();
    } catch (error) {
      if (!(error instanceof RefusedWrite)) throw error;
      if (this.#soonest === undefined || error.restMs < this.#soonest.restMs) this.#soonest = error;
      return otherwise;
    }
  }

  /** Throws the refusal that ends first, if there is one. `nextMs`: when other work is due. Returns it otherwise. */
  require(nextMs?: number): number | undefined {
    const soonest = this.#soonest;
    if (soonest === undefined) return nextMs;
    throw new RefusedWrite(soonest, Math.min(soonest.restMs, nextMs ?? soonest.restMs));
  }
}
