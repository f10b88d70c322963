/**
 * Collects allocations that no agent releases: of lost nodes, of deleted address owners, of agents that do not act
 * (node-lost, conflict, leak; docs/develop/garbage-collection.md).
 *
 * A sweep reads all allocations page by page every `garbageCollection.interval`. A state observed for the first time
 * is only noted; when its time has come, that allocation is read again. Nodes that disappear or are tainted as out of
 * service, and owners that disappear, are checked at once.
 */
import { ConfigError } from "../../config/config-error.ts";
import type { PodFacts } from "../../ipam/leak.ts";
import { ApiError } from "../../kubernetes/kube-api.ts";
import { listPages } from "../../kubernetes/list.ts";
import { type Change, valueAfter } from "../../kubernetes/mirror.ts";
import { collectionPath } from "../../kubernetes/paths.ts";
import { RefusedWrite } from "../../kubernetes/refused-writes.ts";
import { inParallel } from "../../lib/in-parallel.ts";
import { PeriodicWorker } from "../../lib/periodic.ts";
import { SerialQueue } from "../../lib/serial.ts";
import { IP_ALLOCATIONS } from "../../resources/collections.ts";
import { decodeIpAllocation, type Holder, type IpAllocation } from "../../resources/ip-allocation.ts";
import type { Node } from "../../resources/node.ts";
import { settingsOf } from "../caches.ts";
import { haveOtherAddresses } from "../claimants.ts";
import { ifDecodable } from "../if-decodable.ts";
import { NamespaceShares } from "../namespace-shares.ts";
import type { Claimant, Controller, ControllerDeps, Measurements, StartController } from "../types.ts";
import {
  AllocationChecker,
  COLLECTION_RETRY_MS,
  type Collected,
  lostNode,
  type StatusReader,
} from "./check-allocation.ts";
import { CheckHistory } from "./check-history.ts";
import { NodeChanges } from "./node-changes.ts";
import { Observations } from "./observations.ts";
import type { NodeStatus } from "./plan-collection.ts";
import { Probers } from "./probers.ts";
import { COLLECTION_PATIENCE_MS, listPods, nodeStatus, podStatus, readNode, readPod } from "./read-status.ts";
import { RecreatedOwners } from "./recreated-owners.ts";
import { SweepProblems, sendEvents } from "./report.ts";
import { SharedMachines } from "./shared-machines.ts";
import { UnseenHolders } from "./unseen-holders.ts";

/** Interval of checks for due work, and so the delay of a change of `garbageCollection`: milliseconds. */
const COLLECTION_TICK_MS = 1_000;

/** Allocations that are checked at once. */
const COLLECTIONS_AT_ONCE = 4;

/** Allocations on one page of a sweep: half a kilobyte each. */
export const COLLECTION_PAGE = 500;

export const startGarbage: StartController = (deps) => new GarbageCollector(deps);

export class GarbageCollector implements Controller {
  readonly #deps: ControllerDeps;
  readonly #signal: AbortSignal;
  readonly #observations = new Observations();
  readonly #unseen: UnseenHolders;
  readonly #shares: NamespaceShares;
  readonly #recreated: RecreatedOwners;
  readonly #shared: SharedMachines;
  readonly #history = new CheckHistory();
  readonly #nodeChanges: NodeChanges;
  /** UIDs of owners that may retain fewer addresses. All are looked for in one walk: thousands may go at once. */
  readonly #changedOwners = new Set<string>();
  readonly #closing = new AbortController();
  readonly #worker: PeriodicWorker;
  readonly #queue = new SerialQueue();
  readonly #unsubscribe: (() => void)[];
  #sweepDueMs: number;
  #sweepProblems = new SweepProblems();
  /** Number of times that each action was taken. */
  readonly #actions = new Map<string, number>();

  constructor(deps: ControllerDeps) {
    this.#deps = deps;
    this.#signal = AbortSignal.any([deps.leading, this.#closing.signal]);
    this.#nodeChanges = new NodeChanges(deps);
    this.#unseen = new UnseenHolders(deps.owners.pods);
    this.#recreated = new RecreatedOwners({ ...deps, signal: this.#signal });
    this.#shared = new SharedMachines(deps.events);
    this.#shares = new NamespaceShares(deps.caches.allocations.items.values());
    // A new leader starts with a sweep.
    this.#sweepDueMs = deps.clock.nowMs();
    this.#unsubscribe = [
      deps.caches.nodes.subscribe((change) => {
        const node = valueAfter(change);
        if (this.#nodeChanges.update(change.key, nodeStatus(node), node?.machine) === "back")
          this.#observations.forgetNode(change.key);
        this.#hastenClaimed(change);
      }),
      deps.caches.services.subscribe((change) => this.#hastenClaimed(change)),
      deps.caches.allocations.subscribe((change) => {
        const excess = this.#shares.apply(change);
        if (excess !== undefined) this.#observations.hasten(excess, { node: "", nowMs: deps.clock.nowMs() });
      }),
      deps.owners.addresses.subscribe((uid) => {
        this.#changedOwners.add(uid);
        this.#recreated.ownerChanged();
      }),
    ];
    this.#worker = new PeriodicWorker({
      failure: "Collecting allocations failed",
      work: () => this.#work(),
      retryMs: () => COLLECTION_RETRY_MS,
      firstMs: COLLECTION_TICK_MS,
      signal: this.#signal,
      log: deps.log,
    });
  }

  get problems(): readonly string[] {
    const own = [...this.#sweepProblems.sentences, ...this.#history.problems];
    return [...own, ...this.#shared.problems, ...this.#worker.problems];
  }

  get measurements(): Measurements {
    return { collection: { candidates: this.#observations.size, actions: this.#actions } };
  }

  sweep(): Promise<void> {
    return this.#queue.run(() => this.#sweep());
  }

  checkDue(): Promise<void> {
    return this.#queue.run(() => this.#checkDue());
  }

  async close(): Promise<void> {
    for (const unsubscribe of this.#unsubscribe) unsubscribe();
    this.#closing.abort(new Error("The collection is closed"));
    await this.#worker.close();
    await this.#queue.idle();
  }

  async #work(): Promise<number> {
    await this.checkDue();
    if (this.#deps.clock.nowMs() >= this.#sweepDueMs) await this.sweep();
    return COLLECTION_TICK_MS;
  }

  async #sweep(): Promise<void> {
    const { caches, clock, random } = this.#deps;
    this.#signal.throwIfAborted();
    const names = new Set<string>();
    const problems = new SweepProblems();
    this.#shared.update(caches.nodes.items.values());
    const readyNodes = this.#nodeChanges.chooseReady(caches.nodes.items);
    const reader = this.#listReader();
    const checker = this.#openChecker();
    const holders = this.#unseen.beginSweep();
    for await (const page of this.#pages()) {
      const wanted: IpAllocation[] = [];
      for (const object of page) {
        names.add(object.name);
        holders.add(object);
        problems.add(object, caches);
        if (this.#needsCheck(object, readyNodes)) wanted.push(object);
        else this.#history.forgetObstacles(object.name);
      }
      await this.#checkAll(wanted, (object) => checker.check(object, reader));
    }
    holders.end();
    await this.#followAll(this.#recreated.find());
    this.#observations.keepOnly(names);
    this.#history.keepOnly(names);
    this.#sweepProblems = problems;
    this.#sweepDueMs =
      clock.nowMs() + settingsOf(this.#deps.caches).garbageCollection.intervalMs * (0.9 + 0.2 * random());
  }

  async #checkDue(): Promise<void> {
    const { clock } = this.#deps;
    this.#signal.throwIfAborted();
    this.#hastenOwned(clock.nowMs());
    const checker = this.#openChecker();
    const nodes = this.#nodeChanges.due(clock.nowMs());
    // Finds the addresses that other nodes were asked to probe for them: one search, as a zone of nodes may go at once.
    const all = nodes.length > 0 ? this.#deps.caches.allocations.items.values() : [];
    const moved = [...all].filter((object) => lostNode(object) !== object.spec.node);
    const elsewhere = Map.groupBy(moved, lostNode);
    for (const node of nodes) {
      await this.#checkNode(node, checker);
      await this.#checkAll(elsewhere.get(node) ?? [], ({ name }) => checker.recheck(name));
      this.#nodeChanges.checked(node, clock.nowMs());
    }
    await this.#followAll(this.#recreated.due());
    const due = this.#observations.due(clock.nowMs());
    for (const name of due) this.#observations.postpone(name, clock.nowMs() + COLLECTION_RETRY_MS);
    await this.#checkAll(due, (name) => checker.recheck(name));
  }

  async #checkNode(node: string, checker: AllocationChecker): Promise<void> {
    const reader = this.#listReader((name, machine) => readNode(this.#reading, name, machine));
    for await (const page of this.#pages(`spec.node=${node}`))
      await this.#checkAll(page, (object) => checker.check(object, reader));
  }

  /** A Node or a Service may have given up an address. */
  #hastenClaimed(change: Change<Node | Claimant>): void {
    if (change.before !== undefined && haveOtherAddresses(change)) this.#changedOwners.add(change.before.uid);
  }

  /** Makes the checks of changed owners' retained addresses due. The cache only tells which ones they are. */
  #hastenOwned(nowMs: number): void {
    const all = this.#changedOwners.size === 0 ? [] : this.#deps.caches.allocations.items.values();
    for (const object of all) {
      const { state, workload } = object.spec;
      if (state === "Bound" || workload === undefined || !this.#changedOwners.has(workload.uid)) continue;
      this.#observations.hasten(object.name, { node: lostNode(object), nowMs });
    }
    this.#changedOwners.clear();
  }

  #needsCheck({ spec }: IpAllocation, readyNodes: ReadonlySet<string>): boolean {
    if (spec.state !== "Bound" || spec.holders.length > 1) return true;
    const { nodes } = this.#deps.caches;
    const isAway = (status: NodeStatus): boolean => status !== "ready";
    return spec.holders.every(
      ({ node, machine }) => readyNodes.has(node) || isAway(nodeStatus(nodes.items.get(node), machine)),
    );
  }

  /** Reads for first observations: nodes from the caches, pods with one list per node. */
  #listReader(
    node: StatusReader["node"] = async (name, machine) => nodeStatus(this.#deps.caches.nodes.items.get(name), machine),
  ): StatusReader {
    const lists = new Map<string, Promise<readonly PodFacts[]>>();
    const nodes = new Map<string, ReturnType<StatusReader["node"]>>();
    return {
      node: (name, machine) => nodes.getOrInsertComputed(`${name}/${machine ?? ""}`, () => node(name, machine)),
      pod: async (holder: Holder, node) => {
        const pods = await lists.getOrInsertComputed(holder.node, () => listPods(this.#reading, holder.node));
        const found = pods
          .map((pod) => podStatus(holder, pod, node))
          .find((each) => each === "alive" || each === "finished");
        // A pod missing from the list may have been replaced, or cannot be decoded.
        return found ?? readPod(this.#reading, holder, node);
      },
    };
  }

  get #reading() {
    return { api: this.#deps.api, signal: this.#signal };
  }

  #followAll(names: readonly string[]): Promise<void> {
    return this.#checkAll(names, (name) => this.#recreated.follow(name).then(() => undefined));
  }

  #openChecker(): AllocationChecker {
    const { api, caches, owners, promised, clock, log } = this.#deps;
    const own = { observations: this.#observations, unseen: this.#unseen, shares: this.#shares, signal: this.#signal };
    const deps = { api, caches, owners, promised, clock, log, ...own };
    return new AllocationChecker(deps, new Probers(caches), this.#history);
  }

  async *#pages(fieldSelector?: string): AsyncGenerator<readonly IpAllocation[]> {
    const { api } = this.#deps;
    const signal = this.#signal;
    const query = { limit: COLLECTION_PAGE, fieldSelector };
    const call = { path: collectionPath(IP_ALLOCATIONS), query, patienceMs: COLLECTION_PATIENCE_MS, signal };
    // The cache reports those that cannot be decoded; they stay.
    for await (const { items } of listPages(api, call))
      yield items.flatMap((item) => ifDecodable(() => decodeIpAllocation(item, "API server")) ?? []);
  }

  /**
   * Checks a few at a time. An allocation that the API server refuses to change does not stop the others; a server that
   * does not answer does.
   */
  async #checkAll<T extends string | Pick<IpAllocation, "name">>(
    items: readonly T[],
    check: (item: T) => Promise<Collected | undefined>,
  ): Promise<void> {
    const { failed } = this.#history;
    const collected: Collected[] = [];
    try {
      await inParallel(items, COLLECTIONS_AT_ONCE, async (item) => {
        this.#signal.throwIfAborted();
        const name = typeof item === "string" ? item : item.name;
        try {
          const result = await check(item);
          failed.delete(name);
          if (result !== undefined) collected.push(result);
        } catch (error) {
          if (!(error instanceof ApiError || error instanceof ConfigError)) throw error;
          const level = error instanceof RefusedWrite || failed.get(name) === error.message ? "debug" : "warn";
          this.#deps.log[level]({ err: error }, "Collecting an allocation failed; it will be checked again");
          failed.set(name, error.message);
        }
      });
    } finally {
      for (const { action } of collected) this.#actions.set(action, (this.#actions.get(action) ?? 0) + 1);
      sendEvents(this.#deps, collected);
    }
  }
}
