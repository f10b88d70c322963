/**
 * Takes back the addresses of pods that are gone or finished and for which no DEL has come (allocation rules 1, 9 and 16).
 *
 * A sweep goes through this node's journal in pages. A row whose pod the watch shows alive is left alone. What the watch says otherwise is
 * only a reason to ask the API server; host/ipam/leaks.ts judges the answer. A pod that the watch reports as finished or deleted is looked
 * at without waiting for the sweep. Another node's addresses are never looked at (rule 2): the journal has none.
 * Effects: a timer; calls of the API server; those of the registry.
 */
import { isFinished, isOwner, mayLeak, type PodStatus, podFacts } from "../../ipam/leaks.ts";
import { formatIp } from "../../net/ip.ts";
import type { Journal } from "../../registry/journal.ts";
import { listRows } from "../../registry/list-rows.ts";
import type { Allocation, Cooldowns } from "../../registry/registry.ts";
import type { Pod } from "../../resources/pod.ts";
import type { OrphanRow } from "../fencing/fence-orphan.ts";
import { type PodReaderTools, podKey, readPod, readPods } from "./live-pods.ts";
import { type PodRow, Suspects } from "./suspects.ts";

/** After a sweep that could not ask the API server the next one comes no sooner than this: milliseconds. @limit */
export const SWEEP_RETRY_MS = 10_000;

/** Rows of the journal that a sweep reads at once. @limit */
export const SWEEP_PAGE = 500;

/** How often the collector looks whether a sweep is due: milliseconds. Settings of `garbageCollection` hold from the next look on. @limit */
export const COLLECTOR_TICK_MS = 1_000;

export interface CollectorSettings {
  /** `garbageCollection.interval` */
  readonly intervalMs: number;
  /** `garbageCollection.grace` */
  readonly graceMs: number;
  readonly cooldowns: Cooldowns;
}

/** This node's pods as their watch has them: a hint, never a reason to take an address. */
export interface PodHints {
  /** False: not listed yet, or not heard of for too long. Nothing is collected then. */
  readonly isSynced: () => boolean;
  /** By `namespace/name`. */
  readonly find: (key: string) => Pod | undefined;
}

export interface CollectorTools extends Omit<PodReaderTools, "signal"> {
  readonly registry: Pick<Journal, "list" | "findOwner" | "collect">;
  readonly pods: PodHints;
  /** Takes an orphan's address off its NIC, and says whether it is off. Absent: nothing is fenced. */
  readonly fence?: ((row: OrphanRow) => Promise<boolean>) | undefined;
  /** What holds now: asked for at every look. */
  readonly settings: () => CollectorSettings;
  /** The machine's monotonic clock. */
  readonly nowMs: () => number;
  readonly random: () => number;
}

export interface SweepReport {
  /** Rows whose pod the watch does not show alive. */
  readonly suspects: number;
  /** As they cool. */
  readonly collected: readonly Allocation[];
}

export interface Collector {
  /** The watch says so. Returns at once; what follows is done in turn. */
  podChanged(pod: Pod): void;
  podDeleted(pod: Pod): void;
  /** Goes through the journal now. Rejects when the API server cannot be asked; undefined while the watch is not synced. */
  sweep(): Promise<SweepReport | undefined>;
  /** Whether the row's pod is gone or finished, asked now: CNI GC only nominates (rule 1). False when it cannot be told. */
  isPodGone(row: PodRow): Promise<boolean>;
  /**
   * The row as it cools, when its pod is an orphan whose NIC has lost the address: the pod's object is gone, asked now. Undefined when it is none.
   * Rejects when that cannot be found out.
   */
  endOrphan(row: Allocation): Promise<Allocation | undefined>;
  /** How many addresses it has taken back since its start. */
  readonly collected: number;
  /** Resolves when nothing is under way. */
  settled(): Promise<void>;
  close(): Promise<void>;
}

interface Noticed {
  readonly pod: Pod;
  /** As the watch shows it finished; undefined when the watch says that it is gone. */
  readonly seen: PodStatus | undefined;
}

export function startCollector(tools: CollectorTools): Collector {
  return new NodeCollector(tools);
}

class NodeCollector implements Collector {
  readonly #tools: CollectorTools;
  readonly #closed = new AbortController();
  readonly #reader: PodReaderTools;
  readonly #suspects: Suspects;
  readonly #timer: NodeJS.Timeout;
  /** By UID: a pod is looked at once, however often the watch tells of it meanwhile. */
  readonly #noticed = new Map<string, Noticed>();
  #turn: Promise<unknown> = Promise.resolve();
  #isTicking = false;
  #isLookDue = false;
  #sweptMs = Number.NEGATIVE_INFINITY;
  #jitter = 1;
  #said = "";
  collected = 0;

  constructor(tools: CollectorTools) {
    this.#tools = tools;
    this.#reader = { ...tools, signal: this.#closed.signal };
    this.#suspects = new Suspects(tools, this.#reader);
    this.#timer = setInterval(() => void this.#tick(), COLLECTOR_TICK_MS).unref();
  }

  podChanged(pod: Pod): void {
    if (isFinished(pod)) this.#notice(pod, { kind: "present", pod: podFacts(pod) });
  }

  podDeleted(pod: Pod): void {
    this.#notice(pod, undefined);
  }

  sweep(): Promise<SweepReport | undefined> {
    return this.#inTurn(() => this.#sweep());
  }

  async isPodGone(row: PodRow): Promise<boolean> {
    if (!mayLeak(row)) return false;
    try {
      return await this.#suspects.isGone(row);
    } catch (error) {
      this.#tools.log.info({ err: error, address: formatIp(row.ip) }, "The pod of an address could not be asked for");
      return false;
    }
  }

  endOrphan(row: Allocation): Promise<Allocation | undefined> {
    return mayLeak(row) ? this.#suspects.endOrphan(row) : Promise.resolve(undefined);
  }

  async settled(): Promise<void> {
    await this.#turn;
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#closed.abort(new Error("The collector is closed"));
    await this.#turn;
  }

  /** A sweep is due after the interval, and when something has been missed for long enough; the latter not again and again. */
  async #tick(): Promise<void> {
    const { settings, nowMs } = this.#tools;
    if (this.#noticed.size > 0) this.#lookSoon();
    const { intervalMs } = settings();
    const wishedMs = Math.min(
      this.#sweptMs + intervalMs * this.#jitter,
      this.#suspects.dueMs ?? Number.POSITIVE_INFINITY,
    );
    const earliestMs = this.#sweptMs + Math.min(intervalMs, SWEEP_RETRY_MS);
    if (this.#isTicking || nowMs() < Math.max(wishedMs, earliestMs)) return;
    this.#isTicking = true;
    await this.#tell(this.sweep());
    this.#isTicking = false;
  }

  async #sweep(): Promise<SweepReport | undefined> {
    const { pods, nowMs, random } = this.#tools;
    this.#closed.signal.throwIfAborted();
    if (!pods.isSynced()) return undefined;
    this.#sweptMs = nowMs();
    this.#jitter = 0.9 + 0.2 * random();
    const suspects: Allocation[] = [];
    for await (const row of listRows(this.#tools.registry, SWEEP_PAGE))
      if (mayLeak(row) && !this.#looksAlive(row)) suspects.push(row);
    this.#suspects.keepOnly(suspects);
    const sightings = await readPods(this.#reader, suspects);
    const collected: Allocation[] = [];
    for (const row of suspects)
      collected.push(...(await this.#examine(row, sightings.get(podKey(row)) ?? { kind: "absent" })));
    return { suspects: suspects.length, collected };
  }

  /** What the watch shows alive may have gone; it will say so. */
  #looksAlive({ owner, namespace, pod }: Allocation): boolean {
    const known = this.#tools.pods.find(podKey({ namespace, pod }));
    return known !== undefined && isOwner(owner, podFacts(known)) && !isFinished(known);
  }

  #notice(pod: Pod, seen: PodStatus | undefined): void {
    if (this.#closed.signal.aborted || pod.uid === undefined) return;
    this.#noticed.set(pod.uid, { pod, seen });
    this.#lookSoon();
  }

  #lookSoon(): void {
    if (this.#isLookDue) return;
    this.#isLookDue = true;
    const look = (): Promise<void> => {
      this.#isLookDue = false;
      return this.#lookAtNoticed();
    };
    void this.#tell(this.#inTurn(look));
  }

  /** Most have had their DEL by now, and no row any more: then nobody is asked. What could not be looked at is looked at with the next tick. */
  async #lookAtNoticed(): Promise<void> {
    if (!this.#tools.pods.isSynced()) return;
    const failures: unknown[] = [];
    for (const [uid, noticed] of [...this.#noticed]) {
      const { pod, seen } = noticed;
      const { configHash = uid } = podFacts(pod);
      try {
        for (const owner of new Set([uid, configHash])) await this.#lookAtOwner(owner, seen);
        if (this.#noticed.get(uid) === noticed) this.#noticed.delete(uid);
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  }

  async #lookAtOwner(owner: string, seen: PodStatus | undefined): Promise<void> {
    const rows = (await this.#tools.registry.findOwner(owner)).filter(mayLeak);
    for (const row of rows) await this.#examine(row, seen ?? (await readPod(this.#reader, row)));
  }

  async #examine(row: Allocation, pod: PodStatus): Promise<readonly Allocation[]> {
    this.#closed.signal.throwIfAborted();
    const cooling = await this.#suspects.examine(row, pod);
    if (cooling === undefined) return [];
    this.collected++;
    return [cooling];
  }

  /** One at a time: two sweeps would count one look as two. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work);
    this.#turn = done.catch(() => {});
    return done;
  }

  /** Trouble lasts: it is told once, not at every sweep. */
  async #tell(work: Promise<unknown>): Promise<void> {
    try {
      await work;
      this.#said = "";
    } catch (error) {
      if (this.#closed.signal.aborted) return;
      if (String(error) !== this.#said) {
        this.#tools.log.warn({ err: error }, "Looking for lost addresses failed; it is tried again");
      }
      this.#said = String(error);
    }
  }
}
