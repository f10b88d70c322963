/**
 * The collection of allocations that no agent looks after: of nodes that are gone, of workloads that are gone, of agents that do not act
 * (allocation rules 2, 12 and 16; docs/garbage-collection.md).
 *
 * A sweep reads all allocations, page by page, every `garbageCollection.interval`. What it sees for the first time is only remembered; when its
 * time has come it is read again by itself. A node that goes, or is said to be out of service, and a workload that goes, are looked at at once.
 * Effects: a timer; reads of the API server; writes of allocations with preconditions; events.
 */

import { ConfigError } from "../../config/config-error.ts";
import type { PodFacts } from "../../ipam/leaks.ts";
import { ApiError } from "../../kubernetes/kube-api.ts";
import { listPages } from "../../kubernetes/list.ts";
import { collectionPath } from "../../kubernetes/paths.ts";
import { IP_ALLOCATIONS } from "../../resources/collections.ts";
import { decodeIpAllocation, type Holder, type IpAllocation } from "../../resources/ip-allocation.ts";
import { settingsOf } from "../caches.ts";
import type { Controller, ControllerDeps, StartController } from "../types.ts";
import {
  AllocationChecker,
  type CheckerDeps,
  COLLECTION_PATIENCE_MS,
  COLLECTION_RETRY_MS,
  type Collected,
  lostNode,
  type StatusReader,
} from "./check-allocation.ts";
import { NodeChanges } from "./node-changes.ts";
import { Observations } from "./observations.ts";
import { Probers } from "./probers.ts";
import { listPods, nodeStatus, podStatus, readNode, readPod } from "./read-status.ts";
import { SweepProblems, sendEvents } from "./report.ts";

/** How often the collection looks whether something is due: milliseconds. Settings of `garbageCollection` hold from the next look on. @limit */
export const COLLECTION_TICK_MS = 1_000;

/** Allocations that are looked at at once. @limit */
export const COLLECTIONS_AT_ONCE = 4;

/** Allocations on one page of a sweep: half a kilobyte each. @limit */
export const COLLECTION_PAGE = 500;

export interface GarbageCollector extends Controller {
  /** Goes through all allocations now. Rejects when the API server cannot be asked. */
  sweep(): Promise<readonly Collected[]>;
  /** What is due now, and nodes and workloads of which something was heard. */
  checkDue(): Promise<readonly Collected[]>;
}

export const startGarbage: StartController = (deps) => startGarbageCollector(deps);

export function startGarbageCollector(deps: ControllerDeps): GarbageCollector {
  return new Collector(deps);
}

class Collector implements GarbageCollector {
  readonly #deps: CheckerDeps;
  readonly #observations = new Observations();
  readonly #asked = new Map<string, Set<string>>();
  readonly #nodeChanges: NodeChanges;
  readonly #closing = new AbortController();
  readonly #timer: NodeJS.Timeout;
  readonly #unsubscribe: (() => void)[];
  #turn: Promise<unknown> = Promise.resolve();
  #isTicking = false;
  #sweepDueMs: number;
  #retryMs = Number.NEGATIVE_INFINITY;
  #problems = new SweepProblems();
  #withoutProber: readonly string[] = [];
  #said = "";

  constructor(deps: ControllerDeps) {
    const signal = AbortSignal.any([deps.leading, this.#closing.signal]);
    this.#deps = { ...deps, signal, observations: this.#observations };
    this.#nodeChanges = new NodeChanges(deps);
    // Who has just begun to lead begins with a sweep.
    this.#sweepDueMs = deps.clock.nowMs();
    this.#unsubscribe = [
      deps.caches.nodes.subscribe((change) => {
        const node = change.kind === "set" ? change.value : undefined;
        if (this.#nodeChanges.update(change.key, nodeStatus(node)) === "back")
          this.#observations.forgetNode(change.key);
      }),
      deps.owners.addresses.subscribe((uid) => this.#hastenOwned(uid)),
    ];
    this.#timer = setInterval(() => void this.#tick(), COLLECTION_TICK_MS).unref();
  }

  get problems(): readonly string[] {
    const unasked = this.#withoutProber.map(
      (name) => `No node that is ready can ask for address ${name}, whose node is lost`,
    );
    return [...this.#problems.sentences, ...unasked, ...(this.#said === "" ? [] : [this.#said])];
  }

  sweep(): Promise<readonly Collected[]> {
    return this.#inTurn(() => this.#sweep());
  }

  checkDue(): Promise<readonly Collected[]> {
    return this.#inTurn(() => this.#checkDue());
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    for (const leave of this.#unsubscribe) leave();
    this.#closing.abort(new Error("The collection is closed"));
    await this.#turn;
  }

  async #tick(): Promise<void> {
    const { clock, signal } = this.#deps;
    if (this.#isTicking || signal.aborted || clock.nowMs() < this.#retryMs) return;
    this.#isTicking = true;
    try {
      await this.checkDue();
      if (clock.nowMs() >= this.#sweepDueMs) await this.sweep();
      this.#said = "";
    } catch (error) {
      this.#retryMs = clock.nowMs() + COLLECTION_RETRY_MS;
      this.#complain(error);
    } finally {
      this.#isTicking = false;
    }
  }

  async #sweep(): Promise<readonly Collected[]> {
    const { caches, clock, random, signal } = this.#deps;
    signal.throwIfAborted();
    const names = new Set<string>();
    const findings = new SweepProblems();
    const collected: Collected[] = [];
    const looked = this.#nodeChanges.chooseReady(caches.nodes.items);
    const sources = this.#listReader();
    const look = this.#openChecker();
    for await (const page of this.#pages()) {
      for (const object of page) {
        names.add(object.name);
        findings.add(object, caches.pools.items.has(object.spec.pool));
      }
      const wanted = page.filter((object) => this.#needsCheck(object, looked));
      collected.push(...(await this.#eachOf(wanted, (object) => look.check(object, sources))));
    }
    this.#observations.keepOnly(names);
    for (const name of this.#asked.keys()) if (!names.has(name)) this.#asked.delete(name);
    this.#problems = findings;
    this.#finish(look);
    this.#sweepDueMs =
      clock.nowMs() + settingsOf(this.#deps.caches).garbageCollection.intervalMs * (0.9 + 0.2 * random());
    return collected;
  }

  async #checkDue(): Promise<readonly Collected[]> {
    const { clock, signal } = this.#deps;
    signal.throwIfAborted();
    const look = this.#openChecker();
    const collected: Collected[] = [];
    for (const node of this.#nodeChanges.due(clock.nowMs())) {
      collected.push(...(await this.#checkNode(node, look)));
      this.#nodeChanges.checked(node, clock.nowMs());
    }
    const due = this.#observations.due(clock.nowMs());
    for (const name of due) this.#observations.postpone(name, clock.nowMs() + COLLECTION_RETRY_MS);
    collected.push(...(await this.#eachOf(due, (name) => look.recheck(name))));
    if (due.length > 0) this.#finish(look);
    return collected;
  }

  /** Its allocations as the API server has them, and those that another node was told to ask for. */
  async #checkNode(node: string, look: AllocationChecker): Promise<readonly Collected[]> {
    const { caches } = this.#deps;
    const sources = this.#listReader((name) => readNode(this.#deps, name));
    const collected: Collected[] = [];
    for await (const page of this.#pages(`spec.node=${node}`)) {
      collected.push(...(await this.#eachOf(page, (object) => look.check(object, sources))));
    }
    const elsewhere = [...caches.allocations.items.values()].filter(
      (object) => object.spec.node !== node && lostNode(object) === node,
    );
    collected.push(...(await this.#eachOf(elsewhere, ({ name }) => look.recheck(name))));
    return collected;
  }

  /** What is kept for it is due now: the cache is where to look, not what is believed. */
  #hastenOwned(uid: string): void {
    const { caches, clock } = this.#deps;
    for (const object of caches.allocations.items.values()) {
      if (object.spec.workload?.uid !== uid || object.spec.state === "Bound") continue;
      this.#observations.hasten(object.name, { node: lostNode(object), nowMs: clock.nowMs() });
    }
  }

  #needsCheck({ spec }: IpAllocation, looked: ReadonlySet<string>): boolean {
    if (spec.state !== "Bound") return true;
    const { nodes } = this.#deps.caches;
    return spec.holders.every(({ node }) => looked.has(node) || nodeStatus(nodes.items.get(node)) !== "ready");
  }

  /** For first looks: nodes as the caches have them, pods in one list for each node. */
  #listReader(
    node: StatusReader["node"] = async (name) => nodeStatus(this.#deps.caches.nodes.items.get(name)),
  ): StatusReader {
    const lists = new Map<string, Promise<readonly PodFacts[]>>();
    const nodes = new Map<string, ReturnType<StatusReader["node"]>>();
    const podsOf = (name: string): Promise<readonly PodFacts[]> => {
      const list = lists.get(name) ?? listPods(this.#deps, name);
      lists.set(name, list);
      return list;
    };
    return {
      node: (name) => {
        const found = nodes.get(name) ?? node(name);
        nodes.set(name, found);
        return found;
      },
      pod: async (holder: Holder, sighting) => {
        const pods = await podsOf(holder.node);
        const found = pods
          .map((pod) => podStatus(holder, pod, sighting))
          .find((each) => each === "alive" || each === "finished");
        // Not in the list: it may be another's name now, or one that cannot be understood.
        return found ?? readPod(this.#deps, holder, sighting);
      },
    };
  }

  #openChecker(): AllocationChecker {
    return new AllocationChecker(this.#deps, new Probers(this.#deps.caches), this.#asked);
  }

  #finish({ withoutProber }: AllocationChecker): void {
    this.#withoutProber = withoutProber;
  }

  /** As the API server has them now. */
  async *#pages(fieldSelector?: string): AsyncGenerator<readonly IpAllocation[]> {
    const { api, signal } = this.#deps;
    const query = { limit: COLLECTION_PAGE, fieldSelector };
    const call = { path: collectionPath(IP_ALLOCATIONS), query, patienceMs: COLLECTION_PATIENCE_MS, signal };
    for await (const { items } of listPages(api, call)) yield items.flatMap((item) => this.#decode(item));
  }

  #decode(item: object): readonly IpAllocation[] {
    try {
      return [decodeIpAllocation(item, "API server")];
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      this.#deps.log.warn({ err: error }, "An allocation cannot be understood; it stays as it is");
      return [];
    }
  }

  /** A few at a time. One that the API server refuses keeps the others from nothing; when it does not answer, all wait. */
  async #eachOf<T>(
    all: readonly T[],
    examine: (one: T) => Promise<Collected | undefined>,
  ): Promise<readonly Collected[]> {
    const { signal, log } = this.#deps;
    const waiting = [...all].reverse();
    const collected: Collected[] = [];
    const work = async (): Promise<void> => {
      for (let one = waiting.pop(); one !== undefined; one = waiting.pop()) {
        signal.throwIfAborted();
        try {
          const done = await examine(one);
          if (done !== undefined) collected.push(done);
        } catch (error) {
          if (!(error instanceof ApiError || error instanceof ConfigError)) throw error;
          log.warn({ err: error }, "An allocation could not be collected; it is looked at again");
        }
      }
    };
    const ends = await Promise.allSettled(Array.from({ length: COLLECTIONS_AT_ONCE }, work));
    sendEvents(this.#deps, collected);
    for (const end of ends) if (end.status === "rejected") throw end.reason;
    return collected;
  }

  /** One at a time: two looks at once would be one. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work);
    this.#turn = done.catch(() => {});
    return done;
  }

  /** Trouble lasts: it is told once. */
  #complain(error: unknown): void {
    const { signal, log } = this.#deps;
    if (signal.aborted) return;
    const text = `Allocations cannot be collected: ${error instanceof Error ? error.message : String(error)}`;
    if (text !== this.#said) log.warn({ err: error }, "Collecting allocations failed; it is tried again");
    this.#said = text;
  }
}
