/**
 * A breadth-first search over the states of a system: it visits each state once, and the path to a violation is the
 * shortest one. It knows nothing of addresses.
 */
import { hash } from "node:crypto";

export interface Step<S> {
  readonly label: string;
  readonly next: S;
  /** Whether it happens by itself, sooner or later: no fault, and no user's wish. */
  readonly isCalm: boolean;
}

export interface System<S> {
  readonly initial: S;
  readonly steps: (state: S) => Promise<readonly Step<S>[]>;
  /** Returns the same text for states that differ in names alone. */
  readonly key: (state: S) => string;
  /** By name: returns the fault of the state; undefined if there is none. */
  readonly invariants: Readonly<Record<string, (state: S) => string | undefined>>;
  /** Every state must be able to become one of these by calm steps alone; otherwise {@link STUCK} is violated. */
  readonly isAtRest: (state: S) => boolean;
}

/** The invariant that calm steps can bring every state to rest. */
export const STUCK = "comes to rest";

export interface Violation {
  readonly invariant: string;
  readonly problem: string;
  /** The labels of the steps from the initial state. */
  readonly path: readonly string[];
}

export interface SearchResult {
  readonly states: number;
  readonly steps: number;
  /** False if the search ended at its limit, or at a violation. */
  readonly isComplete: boolean;
  /** The first of each invariant. */
  readonly violations: readonly Violation[];
}

interface SearchLimits {
  readonly maxStates: number;
  /** End at the first violation. Default: go on, but not beyond a state that violates. */
  readonly isFirstEnough?: boolean;
}

export async function search<S>(system: System<S>, { maxStates, isFirstEnough }: SearchLimits): Promise<SearchResult> {
  const graph = new Graph<S>(system);
  const violations = new Map<string, Violation>();
  let steps = 0;
  let at = 0;
  for (; at < graph.size && graph.size < maxStates; at++) {
    const state = graph.take(at);
    const wrong = findWrong(system, state);
    if (wrong !== undefined) {
      if (!violations.has(wrong.invariant)) violations.set(wrong.invariant, { ...wrong, path: graph.pathTo(at) });
      if (isFirstEnough === true) break;
      graph.noteRest(at);
      continue;
    }
    if (system.isAtRest(state)) graph.noteRest(at);
    for (const step of await system.steps(state)) {
      graph.add(at, step);
      steps++;
    }
  }
  const isComplete = at === graph.size;
  const stuck = isFirstEnough === true && violations.size > 0 ? undefined : graph.findStuck(at);
  if (stuck !== undefined)
    violations.set(STUCK, { invariant: STUCK, problem: "no calm step leads on", path: graph.pathTo(stuck) });
  return { states: graph.size, steps, isComplete, violations: [...violations.values()] };
}

function findWrong<S>({ invariants }: System<S>, state: S): Omit<Violation, "path"> | undefined {
  for (const [invariant, check] of Object.entries(invariants)) {
    const problem = check(state);
    if (problem !== undefined) return { invariant, problem };
  }
  return undefined;
}

class Graph<S> {
  readonly #system: System<S>;
  readonly #numbers = new Map<string, number>();
  /** Not yet expanded. */
  readonly #states: (S | undefined)[] = [];
  readonly #parents: number[] = [];
  readonly #labels: string[] = [];
  /** Pairs of numbers: a calm step leads from the first state to the second. */
  readonly #calm: number[] = [];
  readonly #atRest = new Set<number>();

  constructor(system: System<S>) {
    this.#system = system;
    this.#put(system.initial, -1, "");
  }

  get size(): number {
    return this.#labels.length;
  }

  /** Returns the state, and forgets it. */
  take(at: number): S {
    const state = this.#states[at];
    if (state === undefined) throw new Error(`State ${at} was expanded before`);
    this.#states[at] = undefined;
    return state;
  }

  add(from: number, { label, next, isCalm }: Step<S>): void {
    const to = this.#put(next, from, label);
    if (isCalm && to !== from) this.#calm.push(from, to);
  }

  noteRest(at: number): void {
    this.#atRest.add(at);
  }

  pathTo(at: number): readonly string[] {
    const path: string[] = [];
    for (let each = at; each > 0; each = this.#parents[each] ?? 0) path.unshift(this.#labels[each] ?? "");
    return path;
  }

  /** Returns the first of the `expanded` states that calm steps never bring to rest. The others count as at rest. */
  findStuck(expanded: number): number | undefined {
    const sources = new Map<number, number[]>();
    for (let index = 0; index < this.#calm.length; index += 2) {
      const [from = 0, to = 0] = this.#calm.slice(index, index + 2);
      const found = sources.get(to);
      if (found === undefined) sources.set(to, [from]);
      else found.push(from);
    }
    const good = new Set(this.#atRest);
    for (let at = expanded; at < this.size; at++) good.add(at);
    // A set can be walked while it grows.
    for (const at of good) for (const from of sources.get(at) ?? []) good.add(from);
    for (let at = 0; at < expanded; at++) if (!good.has(at)) return at;
    return undefined;
  }

  #put(state: S, parent: number, label: string): number {
    const key = hash("sha1", this.#system.key(state), "latin1");
    const known = this.#numbers.get(key);
    if (known !== undefined) return known;
    this.#numbers.set(key, this.size);
    this.#states.push(state);
    this.#parents.push(parent);
    this.#labels.push(label);
    return this.size - 1;
  }
}
