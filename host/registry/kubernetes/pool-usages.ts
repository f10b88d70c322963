/**
 * What the controller says about the usage of a pool, read on demand: one question at a time for each pool, and only what is new (allocation rule 11).
 * A hint: nothing depends on there being an answer, on its age, or on its being right.
 * Effects: reads of the API server.
 */
import { describeFailure } from "../../kubernetes/http/retry.ts";
import { isNotFound, type KubeApi } from "../../kubernetes/kube-api.ts";
import type { Log } from "../../lib/log.ts";
import { API_PATH } from "../../resources/fields/metadata.ts";
import { decodeIpPoolUsage, type IpPoolUsage, type PoolUsage } from "../../resources/usage/ip-pool-usage.ts";

/** How long a pool's usage object is not asked for again: milliseconds. It is written about as often. @limit */
export const USAGE_FRESH_MS = 2_000;

/** How long that question may take: milliseconds. An ADD waits for it, and does as well without an answer. @limit */
export const USAGE_PATIENCE_MS = 1_000;

/** How long after a list of a pool's names its usage object has nothing to add: milliseconds. As long as it may be old. @limit */
export const SURVEYED_MS = 10_000;

const USAGES = `${API_PATH}/ippoolusages`;

export interface PoolUsagesOptions {
  readonly api: KubeApi;
  readonly nowMs: () => number;
  readonly log: Log;
}

/** What is known of one pool's object. */
interface Seen {
  /** When it was asked for, and when the pool itself was surveyed. */
  askedMs: number;
  surveyedMs: number;
  /** Of the object that was given away last: UID and version. */
  version: string;
  flight: Promise<PoolUsage | undefined> | undefined;
}

export class PoolUsages {
  readonly #options: PoolUsagesOptions;
  readonly #seen = new Map<string, Seen>();

  constructor(options: PoolUsagesOptions) {
    this.#options = options;
  }

  /** Never rejects. Undefined: there is nothing that was not told before, or nothing newer than a survey. Who asks meanwhile gets the same answer. */
  news(pool: string): Promise<PoolUsage | undefined> {
    const seen = this.#of(pool);
    if (seen.flight !== undefined) return seen.flight;
    const nowMs = this.#options.nowMs();
    if (nowMs - seen.askedMs < USAGE_FRESH_MS || isSurveyed(seen, nowMs)) return Promise.resolve(undefined);
    seen.askedMs = nowMs;
    seen.flight = this.#ask(pool, seen).finally(() => {
      seen.flight = undefined;
    });
    return seen.flight;
  }

  /** The API server itself is being asked what is in use: for a while a usage object has nothing to add, also one that is on its way. */
  surveyed(pool: string): void {
    this.#of(pool).surveyedMs = this.#options.nowMs();
  }

  #of(pool: string): Seen {
    const never = Number.NEGATIVE_INFINITY;
    const seen = this.#seen.get(pool) ?? { askedMs: never, surveyedMs: never, version: "", flight: undefined };
    this.#seen.set(pool, seen);
    return seen;
  }

  async #ask(pool: string, seen: Seen): Promise<PoolUsage | undefined> {
    const { log, nowMs } = this.#options;
    try {
      const { uid, resourceVersion, usage } = await this.#read(pool);
      const version = `${uid}/${resourceVersion}`;
      if (version === seen.version || isSurveyed(seen, nowMs())) return undefined;
      seen.version = version;
      return usage;
    } catch (error) {
      if (!isNotFound(error)) log.debug({ pool, reason: describeFailure(error) }, "The usage of a pool is not known");
      return undefined;
    }
  }

  async #read(pool: string): Promise<IpPoolUsage> {
    const path = `${USAGES}/${pool}`;
    const object = await this.#options.api.call({ method: "GET", path, lane: "pod", patienceMs: USAGE_PATIENCE_MS });
    return decodeIpPoolUsage(object, "API server");
  }
}

function isSurveyed({ surveyedMs }: Seen, nowMs: number): boolean {
  return nowMs - surveyedMs < SURVEYED_MS;
}
