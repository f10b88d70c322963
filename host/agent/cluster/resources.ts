/**
 * The resources of the cluster backend: the state of the watches as one snapshot. Settings are composed anew when
 * they change, and of the pools those that have changed, because a large cluster has ten thousand; pods and
 * namespaces are the watches' own maps.
 */
import { CniError, ErrorCode } from "../../cni/error.ts";
import type { VendorConf } from "../../config/vendor-conf.ts";
import { isNotFound, type KubeApi } from "../../kubernetes/kube-api.ts";
import { valueAfter } from "../../kubernetes/mirror.ts";
import type { ReflectorStats } from "../../kubernetes/reflector.ts";
import { messageOf } from "../../lib/describe.ts";
import { Latch } from "../../lib/latch.ts";
import { Listeners } from "../../lib/listeners.ts";
import { ObjectBudget, type ObjectBudgetOptions, type UnusedObject } from "../../lib/object-budget.ts";
import { SortedMap } from "../../lib/sorted-map.ts";
import { problemsOf } from "../../resources/check-pools.ts";
import { CheckedPools } from "../../resources/checked-pools.ts";
import { COORDINATOR_NAME, firstNicOf } from "../../resources/coordinator.ts";
import { API_PATH } from "../../resources/fields/metadata.ts";
import type { Node } from "../../resources/node.ts";
import type { Snapshot } from "../../resources/snapshot.ts";
import { settingsInForce } from "../../resources/vendor-conf-map.ts";
import type { LiveObjects } from "../backend.ts";
import type { PoolChanges } from "../ipam/cluster-ipam.ts";
import { SYNC_WAIT_MS } from "../request/add-deadline.ts";
import { RELOAD_DELAY_MS, type Resources, type ResourcesState } from "../request/resources.ts";
import type { CachedDefinition } from "./cached-definition.ts";
import { type AnyWatch, openWatches, type Watches, type WatchesOptions } from "./watches.ts";

/** Most that an agent keeps of pods, namespaces and network definitions, as the heap has it: bytes. @limit */
const AGENT_BUDGET_BYTES = 14 * 1024 * 1024;

export class ClusterResources implements Resources, ResourcesState, PoolChanges {
  readonly watches: Watches;
  /** Itself, with its present state: an ADD reads the snapshot a dozen times, and the rest only if it is refused. */
  readonly state: ResourcesState = this;
  /** Tells of new snapshots, not of pods and namespaces, whose maps change by themselves; `changed`: the pools. */
  readonly changes = new Listeners<{ readonly snapshot: Snapshot; readonly changed: ReadonlySet<string> }>((error) => {
    throw error;
  });
  readonly #all: readonly (readonly [name: string, watch: AnyWatch])[];
  readonly #budget: ObjectBudget;
  readonly #pools = new CheckedPools();
  /** Why pools cannot be read, by name. */
  readonly #bad = new SortedMap<string>();
  /** Names of pools that the watch has reported since they were composed. */
  readonly #told = new Set<string>();
  snapshot: Snapshot;
  #pending: NodeJS.Timeout | undefined;
  /** Opens with the next change. */
  #next = new Latch();
  /** Counts the changes for {@link changed}. */
  changeCount = 0;

  constructor(options: Omit<WatchesOptions, "budget"> & Pick<ObjectBudgetOptions, "onUnused">) {
    const { configNamespace: home, onUnused } = options;
    this.#budget = new ObjectBudget({ totalBytes: AGENT_BUDGET_BYTES, home, onUnused });
    this.watches = openWatches({ ...options, budget: this.#budget });
    const { pools, reserved, coordinators, vendorConf, epoch } = this.watches;
    pools.subscribe((change) => {
      this.#told.add(change.key);
      const now = valueAfter(change);
      // Only the shortfall, the routers and the blocks of a pool's status count.
      if (now?.revision === undefined || now.revision !== change.before?.revision) this.#schedule();
    });
    for (const setting of [reserved, coordinators, vendorConf]) setting.subscribe(() => this.#schedule());
    epoch.subscribe((change) => {
      if (valueAfter(change)?.settings !== change.before?.settings) this.#schedule();
    });
    this.#all = Object.entries<AnyWatch>({ ...this.watches });
    this.snapshot = this.#compose();
  }

  start(): void {
    for (const [, reflector] of this.#all) reflector.start();
  }

  get problems(): readonly string[] {
    return [...this.#all.flatMap(([, { problems }]) => problems), ...this.#budget.problems];
  }

  /** Objects for which there is no room. */
  get unused(): readonly UnusedObject[] {
    return this.#budget.unused;
  }

  /** A reserved address or a setting never decoded might forbid an allocation. Invalid pools are left out instead. */
  get complete(): boolean {
    const { reserved, coordinators, vendorConf } = this.watches;
    const isConfKnown = vendorConf.unknown.size === 0 || this.#knownConf !== undefined;
    const areKnown = reserved.unknown.size === 0 && !coordinators.unknown.has(COORDINATOR_NAME) && isConfKnown;
    return areKnown && this.#all.every(([, { isSynced }]) => isSynced);
  }

  /** By `namespace/name`. */
  get attachments(): ReadonlyMap<string, CachedDefinition> {
    return this.watches.attachments.items;
  }

  /** This node's object; undefined while there is none. */
  get node(): Node | undefined {
    return this.watches.node.items.values().next().value;
  }

  /** Resolves when it is known whether this node has an object. */
  nodeRead(signal: AbortSignal): Promise<void> {
    return this.watches.node.synced(signal);
  }

  get arePodsSynced(): boolean {
    return this.watches.pods.isSynced && this.watches.pods.problems.length === 0;
  }

  /** Since when changes of pools have been heard of, as {@link Reflector.heardSinceMs}. */
  get heardSinceMs(): number {
    return this.watches.pools.heardSinceMs;
  }

  /** Number of times that this node's pods or its Node object were listed anew. */
  get relists(): number {
    const { pods, node } = this.watches;
    return [pods, node].reduce((sum, { stats }) => sum + Math.max(0, stats.lists - 1), 0);
  }

  /** Names of the collections whose first list is not complete. */
  get unread(): readonly string[] {
    return this.#all.flatMap(([name, { isSynced }]) => (isSynced ? [] : [name]));
  }

  /** By the collection's name. */
  get stats(): Readonly<Record<string, ReflectorStats & { readonly objects: number }>> {
    return Object.fromEntries(this.#all.map(([name, { stats, items }]) => [name, { ...stats, objects: items.size }]));
  }

  flush(): void {
    if (this.#pending !== undefined) this.#reload();
  }

  /** Resolves when every list was complete once. */
  async known(signal?: AbortSignal): Promise<void> {
    await Promise.all(this.#all.map(([, reflector]) => reflector.synced(signal)));
    this.flush();
  }

  /**
   * The wait of an ADD. Rejects with CniError 50 after SYNC_WAIT_MS, and with the signal's reason. `whyNot`: the reason
   * besides the lists, a clause.
   */
  async within(
    signal: AbortSignal,
    wait: (bounded: AbortSignal) => Promise<void>,
    whyNot: () => string,
  ): Promise<void> {
    const tooLong = AbortSignal.timeout(SYNC_WAIT_MS);
    try {
      await wait(AbortSignal.any([signal, tooLong]));
    } catch (error) {
      if (!tooLong.aborted || signal.aborted) throw signal.reason ?? error;
      const { problems } = this;
      const details = problems.join("\n");
      const within = `from the API server within ${SYNC_WAIT_MS / 1000} s`;
      const text =
        this.unread.length > 0
          ? `The agent has not received all lists ${within}: ${problems[0] ?? `${this.unread.join(", ")} are not complete`}`
          : `The agent has not received the allocations of this node ${within}: ${whyNot()}`;
      throw new CniError(ErrorCode.PluginNotAvailable, text, { cause: error, details });
    }
  }

  /**
   * Waits until pools or settings have changed, or an address has become free, since {@link changeCount} was `since`.
   * False when nothing came within so many milliseconds.
   */
  async changed(signal: AbortSignal, { since, withinMs }: { since: number; withinMs: number }): Promise<boolean> {
    this.flush();
    if (this.changeCount !== since) return true;
    const tooLong = AbortSignal.timeout(Math.max(0, Math.ceil(withinMs)));
    try {
      await this.#next.wait(AbortSignal.any([signal, tooLong]));
      return true;
    } catch (error) {
      if (!tooLong.aborted || signal.aborted) throw signal.reason ?? error;
      return false;
    }
  }

  async close(): Promise<void> {
    clearTimeout(this.#pending);
    await Promise.all(this.#all.map(([, reflector]) => reflector.close()));
  }

  /** The settings that the controller has kept. */
  get #knownConf(): VendorConf | undefined {
    return this.watches.epoch.items.values().next().value?.conf;
  }

  #schedule(): void {
    this.#pending ??= setTimeout(() => this.#reload(), RELOAD_DELAY_MS).unref();
  }

  #reload(): void {
    clearTimeout(this.#pending);
    this.#pending = undefined;
    const changed = this.#takePools();
    this.snapshot = this.#compose();
    this.changes.tell({ snapshot: this.snapshot, changed });
    this.notify();
  }

  /** Something that {@link changed} waits for: also an address that has become free on this node. */
  notify(): void {
    this.changeCount++;
    this.#next.open();
    this.#next = new Latch();
  }

  /** Returns the names of pools that differ now. */
  #takePools(): ReadonlySet<string> {
    const { items } = this.watches.pools;
    const changes = [...this.#told].map((name) => [name, items.get(name)] as const);
    this.#told.clear();
    for (const [name, watched] of changes)
      if (watched?.kind === "bad") this.#bad.set(name, `cannot be used: ${watched.reason}`);
      else this.#bad.delete(name);
    return this.#pools.apply(
      changes.map(([name, watched]) => [name, watched?.kind === "pool" ? watched.pool : undefined]),
    );
  }

  /** The pools are those that {@link #takePools} has taken. */
  #compose(): Snapshot {
    const { reserved, coordinators, vendorConf, pods, namespaces } = this.watches;
    const coordinator = coordinators.items.get(COORDINATOR_NAME);
    const { accepted, refused: unfit } = this.#pools;
    const refused = new Map([...unfit, ...this.#bad]);
    let problems: readonly string[] | undefined;
    return {
      pools: accepted,
      refused,
      reserved: [...reserved.items.values()],
      ended: [],
      namespaces: namespaces.items,
      pods: pods.items,
      coordinator,
      firstNic: firstNicOf(coordinator),
      vendorConf: settingsInForce([...vendorConf.items.values()][0], this.#knownConf),
      get problems() {
        problems ??= problemsOf(accepted.values(), refused);
        return problems;
      },
    };
  }
}

/** Time for which `berthctl explain pool` tries to read each object: milliseconds. */
const EXPLAIN_PATIENCE_MS = 2_000;

/** For explanations; it never waits long. */
export function openLiveObjects(api: KubeApi): LiveObjects {
  return {
    read: async (plural, name) => {
      const path = `${API_PATH}/${plural}`;
      const common = { method: "GET", lane: "pod", patienceMs: EXPLAIN_PATIENCE_MS } as const;
      try {
        // Agents may list the pools, and read nothing of them by name.
        if (plural !== "ippools")
          return { kind: "there", value: await api.call({ ...common, path: `${path}/${encodeURIComponent(name)}` }) };
        const { items } = await api.call({ ...common, path, query: { fieldSelector: `metadata.name=${name}` } });
        if (!Array.isArray(items) || items.length === 0) return { kind: "absent" };
        // The API server leaves both out of the items of a list.
        return { kind: "there", value: { apiVersion: "ipam.vendor.io/v1", kind: "IPPool", ...items[0] } };
      } catch (error) {
        return isNotFound(error) ? { kind: "absent" } : { kind: "unseen", why: messageOf(error) };
      }
    },
  };
}
