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
import { API_PATH } from "../../resources/fields/metadata.ts";
import { decodeIpAllocation, type Holder, type IpAllocation } from "../../resources/ip-allocation.ts";
import { settingsOf } from "../settings.ts";
import type { ControllerDeps, RunningController, StartController } from "../types.ts";
import {
  COLLECTION_PATIENCE_MS,
  COLLECTION_RETRY_MS,
  type Collected,
  Look,
  type LookTools,
  lostNode,
  type Sources,
} from "./look.ts";
import { NodeNews } from "./node-news.ts";
import { Observations } from "./observations.ts";
import { Probers } from "./probers.ts";
import { Findings, tell } from "./report.ts";
import { listPods, readNode, readPod, sightNode, sightPod } from "./sightings.ts";

/** How often the collection looks whether something is due: milliseconds. Settings of `garbageCollection` hold from the next look on. @limit */
export const COLLECTION_TICK_MS = 1_000;

/** Allocations that are looked at at once. @limit */
export const COLLECTIONS_AT_ONCE = 4;

/** Allocations on one page of a sweep: half a kilobyte each. @limit */
export const COLLECTION_PAGE = 500;

export interface GarbageCollector extends RunningController {
  /** Goes through all allocations now. Rejects when the API server cannot be asked. */
  sweep(): Promise<readonly Collected[]>;
  /** What is due now, and nodes and workloads of which something was heard. */
  look(): Promise<readonly Collected[]>;
}

const ALLOCATIONS = `${API_PATH}/ipallocations`;

export const startGarbage: StartController = (tools) => startGarbageCollector(tools);

export function startGarbageCollector(tools: ControllerDeps): GarbageCollector {
  return new Collector(tools);
}

class Collector implements GarbageCollector {
  readonly #tools: LookTools;
  readonly #observations = new Observations();
  readonly #told = new Map<string, Set<string>>();
  readonly #news: NodeNews;
  readonly #closing = new AbortController();
  readonly #timer: NodeJS.Timeout;
  readonly #leave: (() => void)[];
  #turn: Promise<unknown> = Promise.resolve();
  #isTicking = false;
  #sweepDueMs: number;
  #retryMs = Number.NEGATIVE_INFINITY;
  #findings = new Findings();
  #unasked: readonly string[] = [];
  #said = "";

  constructor(tools: ControllerDeps) {
    const signal = AbortSignal.any([tools.leading, this.#closing.signal]);
    this.#tools = { ...tools, signal, observations: this.#observations };
    this.#news = new NodeNews(tools);
    // Who has just begun to lead begins with a sweep.
    this.#sweepDueMs = tools.nowMs();
    this.#leave = [
      tools.caches.nodes.subscribe((change) => {
        const node = change.kind === "set" ? change.value : undefined;
        if (this.#news.take(change.key, sightNode(node)) === "back") this.#observations.forgetNode(change.key);
      }),
      tools.workloads.subscribe((uid) => this.#lookAtWorkload(uid)),
    ];
    this.#timer = setInterval(() => void this.#tick(), COLLECTION_TICK_MS).unref();
  }

  get problems(): readonly string[] {
    const unasked = this.#unasked.map(
      (name) => `No node that is ready can ask for address ${name}, whose node is lost`,
    );
    return [...this.#findings.sentences, ...unasked, ...(this.#said === "" ? [] : [this.#said])];
  }

  sweep(): Promise<readonly Collected[]> {
    return this.#inTurn(() => this.#sweep());
  }

  look(): Promise<readonly Collected[]> {
    return this.#inTurn(() => this.#look());
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    for (const leave of this.#leave) leave();
    this.#closing.abort(new Error("The collection is closed"));
    await this.#turn;
  }

  async #tick(): Promise<void> {
    const { nowMs, signal } = this.#tools;
    if (this.#isTicking || signal.aborted || nowMs() < this.#retryMs) return;
    this.#isTicking = true;
    try {
      await this.look();
      if (nowMs() >= this.#sweepDueMs) await this.sweep();
      this.#said = "";
    } catch (error) {
      this.#retryMs = nowMs() + COLLECTION_RETRY_MS;
      this.#complain(error);
    } finally {
      this.#isTicking = false;
    }
  }

  async #sweep(): Promise<readonly Collected[]> {
    const { caches, nowMs, random, signal } = this.#tools;
    signal.throwIfAborted();
    const names = new Set<string>();
    const findings = new Findings();
    const collected: Collected[] = [];
    const looked = this.#news.chooseReady(caches.nodes.items);
    const sources = this.#listed();
    const look = this.#openLook();
    for await (const page of this.#pages()) {
      for (const object of page) {
        names.add(object.name);
        findings.add(object, caches.pools.items.has(object.spec.pool));
      }
      const wanted = page.filter((object) => this.#isWanted(object, looked));
      collected.push(...(await this.#eachOf(wanted, (object) => look.examine(object, sources))));
    }
    this.#observations.keepOnly(names);
    for (const name of this.#told.keys()) if (!names.has(name)) this.#told.delete(name);
    this.#findings = findings;
    this.#finish(look);
    this.#sweepDueMs = nowMs() + settingsOf(this.#tools.caches).garbageCollection.intervalMs * (0.9 + 0.2 * random());
    return collected;
  }

  async #look(): Promise<readonly Collected[]> {
    const { nowMs, signal } = this.#tools;
    signal.throwIfAborted();
    const look = this.#openLook();
    const collected: Collected[] = [];
    for (const node of this.#news.due(nowMs())) {
      collected.push(...(await this.#lookAtNode(node, look)));
      this.#news.looked(node, nowMs());
    }
    const due = this.#observations.due(nowMs());
    for (const name of due) this.#observations.postpone(name, nowMs() + COLLECTION_RETRY_MS);
    collected.push(...(await this.#eachOf(due, (name) => look.again(name))));
    if (due.length > 0) this.#finish(look);
    return collected;
  }

  /** Its allocations as the API server has them, and those that another node was told to ask for. */
  async #lookAtNode(node: string, look: Look): Promise<readonly Collected[]> {
    const { caches } = this.#tools;
    const sources = this.#listed((name) => readNode(this.#tools, name));
    const collected: Collected[] = [];
    for await (const page of this.#pages(`spec.node=${node}`)) {
      collected.push(...(await this.#eachOf(page, (object) => look.examine(object, sources))));
    }
    const elsewhere = [...caches.allocations.items.values()].filter(
      (object) => object.spec.node !== node && lostNode(object) === node,
    );
    collected.push(...(await this.#eachOf(elsewhere, ({ name }) => look.again(name))));
    return collected;
  }

  /** What is kept for it is due now: the cache is where to look, not what is believed. */
  #lookAtWorkload(uid: string): void {
    const { caches, nowMs } = this.#tools;
    for (const object of caches.allocations.items.values()) {
      if (object.spec.workload?.uid !== uid || object.spec.state === "Bound") continue;
      this.#observations.hasten(object.name, { node: lostNode(object), nowMs: nowMs() });
    }
  }

  #isWanted({ spec }: IpAllocation, looked: ReadonlySet<string>): boolean {
    if (spec.state !== "Bound") return true;
    const { nodes } = this.#tools.caches;
    return spec.holders.every(({ node }) => looked.has(node) || sightNode(nodes.items.get(node)) !== "ready");
  }

  /** For first looks: nodes as the caches have them, pods in one list for each node. */
  #listed(node: Sources["node"] = async (name) => sightNode(this.#tools.caches.nodes.items.get(name))): Sources {
    const lists = new Map<string, Promise<readonly PodFacts[]>>();
    const nodes = new Map<string, ReturnType<Sources["node"]>>();
    const podsOf = (name: string): Promise<readonly PodFacts[]> => {
      const list = lists.get(name) ?? listPods(this.#tools, name);
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
        const found = pods.map((pod) => sightPod(holder, pod, sighting)).find((each) => each === "alive" || each === "finished"); // biome-ignore format: one thought
        // Not in the list: it may be another's name now, or one that cannot be understood.
        return found ?? readPod(this.#tools, holder, sighting);
      },
    };
  }

  #openLook(): Look {
    return new Look(this.#tools, new Probers(this.#tools.caches), this.#told);
  }

  #finish({ unasked }: Look): void {
    this.#unasked = unasked;
  }

  /** As the API server has them now. */
  async *#pages(fieldSelector?: string): AsyncGenerator<readonly IpAllocation[]> {
    const { api, signal } = this.#tools;
    const query = { limit: COLLECTION_PAGE, fieldSelector };
    const call = { path: ALLOCATIONS, query, patienceMs: COLLECTION_PATIENCE_MS, signal };
    for await (const { items } of listPages(api, call)) yield items.flatMap((item) => this.#decode(item));
  }

  #decode(item: object): readonly IpAllocation[] {
    try {
      return [decodeIpAllocation(item, "API server")];
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      this.#tools.log.warn({ err: error }, "An allocation cannot be understood; it stays as it is");
      return [];
    }
  }

  /** A few at a time. One that the API server refuses keeps the others from nothing; when it does not answer, all wait. */
  async #eachOf<T>(
    all: readonly T[],
    examine: (one: T) => Promise<Collected | undefined>,
  ): Promise<readonly Collected[]> {
    const { signal, log } = this.#tools;
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
    tell(this.#tools, collected);
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
    const { signal, log } = this.#tools;
    if (signal.aborted) return;
    const text = `Allocations cannot be collected: ${error instanceof Error ? error.message : String(error)}`;
    if (text !== this.#said) log.warn({ err: error }, "Collecting allocations failed; it is tried again");
    this.#said = text;
  }
}
