/**
 * Faults by rule in the proxy in front of an API server: the calls, their frequency, and their effects. Pure but for
 * its counting.
 */

export type Fault =
  /** The call is forwarded after a time in this range. */
  | { readonly kind: "delay"; readonly minMs: number; readonly maxMs: number }
  /** The connection breaks; the API server never gets the call. */
  | { readonly kind: "reset-before" }
  /** The API server carries it out; the connection breaks before the answer. */
  | { readonly kind: "reset-after" }
  /** Not forwarded. `retryAfterS`: the header of that name. */
  | { readonly kind: "answer"; readonly status: number; readonly reason: string; readonly retryAfterS?: number };

/** One request as a rule sees it. */
export interface Passing {
  readonly method: string;
  /** With the query. */
  readonly url: string;
}

/** Verb of a request to the API server: `get`, `list`, `watch`, `post`, `put`, `patch`, `delete`. */
export type Verb = "get" | "list" | "watch" | "post" | "put" | "patch" | "delete";

export interface FaultRule {
  readonly fault: Fault;
  /** Default: all. */
  readonly verbs?: readonly Verb[];
  /** Matches path and query. Default: any. */
  readonly path?: RegExp;
  /** Default: 1. */
  readonly probability?: number;
  /** After so many the rule is spent. Default: no end. */
  readonly times?: number;
}

/** A collection's name at the end of the path: a list or a watch, or a POST. One object: the rest. */
const COLLECTION = /^\/(?:api|apis\/[^/]+)\/[^/]+(?:\/namespaces\/[^/]+)?\/([^/]+)$/;
const OBJECT = /^\/(?:api|apis\/[^/]+)\/[^/]+(?:\/namespaces\/[^/]+)?\/([^/]+)\/([^/]+)(?:\/([^/]+))?$/;
const NAMESPACE = /^\/api\/v1\/namespaces\/[^/]+$/;

/** The verb and the resource (`ipallocations`, `pods/status`); "" for paths that name none, such as /readyz. */
export function classify({ method, url }: Passing): { readonly verb: Verb; readonly resource: string } {
  const [path = "", query = ""] = url.split("?", 2);
  const collection = NAMESPACE.test(path) ? undefined : COLLECTION.exec(path)?.[1];
  const object = NAMESPACE.test(path) ? ["", "namespaces"] : OBJECT.exec(path);
  const part = object?.[3];
  const resource = collection ?? (object === null ? "" : `${object[1]}${part === undefined ? "" : `/${part}`}`);
  if (method !== "GET") return { verb: verbOf(method), resource };
  if (collection === undefined) return { verb: "get", resource };
  return { verb: /(?:^|&)watch=(?:1|true)(?:&|$)/.test(query) ? "watch" : "list", resource };
}

function verbOf(method: string): Verb {
  const verb = method.toLowerCase();
  return verb === "post" || verb === "put" || verb === "patch" || verb === "delete" ? verb : "get";
}

/** The rules in force. The first that fits and whose die falls is applied. */
export class FaultRules {
  readonly #random: () => number;
  readonly #rules: { readonly rule: FaultRule; left: number; hits: number }[] = [];

  /** `random` gives numbers in [0, 1): see {@link seededRandom}. */
  constructor(random: () => number) {
    this.#random = random;
  }

  /** Gives how to take the rule back, and how often it has struck. */
  add(rule: FaultRule): { remove(): void; hits(): number } {
    const entry = { rule, left: rule.times ?? Number.POSITIVE_INFINITY, hits: 0 };
    this.#rules.push(entry);
    const remove = (): void => {
      const index = this.#rules.indexOf(entry);
      if (index >= 0) this.#rules.splice(index, 1);
    };
    return { remove, hits: () => entry.hits };
  }

  clear(): void {
    this.#rules.length = 0;
  }

  choose(passing: Passing): Fault | undefined {
    const { verb } = classify(passing);
    for (const entry of this.#rules) {
      const { verbs, path, probability = 1, fault } = entry.rule;
      if (entry.left <= 0 || verbs?.includes(verb) === false || path?.test(passing.url) === false) continue;
      if (probability < 1 && this.#random() >= probability) continue;
      entry.left -= 1;
      entry.hits += 1;
      return fault;
    }
    return undefined;
  }

  /** A time within a fault's range. */
  delayMs({ minMs, maxMs }: { readonly minMs: number; readonly maxMs: number }): number {
    return minMs + (maxMs - minMs) * this.#random();
  }
}

/** Numbers in [0, 1), the same ones for the same seed (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
