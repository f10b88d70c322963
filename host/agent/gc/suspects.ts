/**
 * The addresses whose pods were not found, and since when; what becomes of each is decided here, one at a time (allocation rule 16).
 * Called by collector.ts. Memory only: an agent that starts anew observes anew.
 * Effects: calls of the API server; those of the registry.
 */
import { decideLeak, isOrphan, type LeakVerdict, type PodStatus, settleMs } from "../../ipam/leaks.ts";
import { formatIp } from "../../net/ip.ts";
import type { Allocation } from "../../registry/registry.ts";
import type { CollectorTools } from "./collector.ts";
import { type PodReaderTools, readPod, seeNetns } from "./live-pods.ts";

/** A row, as it was when its pod was first missed. */
interface Observation {
  readonly version: number;
  readonly pool: string;
  readonly sinceMs: number;
}

/** Of an address, what is needed to ask for its pod. */
export type PodRow = Pick<
  Allocation,
  "state" | "owner" | "containerId" | "namespace" | "pod" | "netns" | "ifName" | "pool" | "space" | "ip"
>;

export class Suspects {
  readonly #tools: CollectorTools;
  readonly #reader: PodReaderTools;
  readonly #observations = new Map<string, Observation>();

  constructor(tools: CollectorTools, reader: PodReaderTools) {
    this.#tools = tools;
    this.#reader = reader;
  }

  /** When the first of them has been missed for long enough; undefined without any. */
  get dueMs(): number | undefined {
    const due = [...this.#observations.values()].map(({ sinceMs, pool }) => sinceMs + this.#settleMs(pool));
    return due.length === 0 ? undefined : Math.min(...due);
  }

  /** The others have been seen alive, or are not Bound any more. */
  keepOnly(rows: readonly Allocation[]): void {
    const keys = new Set(rows.map(keyOf));
    for (const key of this.#observations.keys()) if (!keys.has(key)) this.#observations.delete(key);
  }

  /**
   * Decides by what was read of the row's pod, and acts. Before it takes the address it reads the pod once more. Answers the row as
   * it cools; undefined when the address stays. Rejects when the API server cannot be asked, or the kernel refuses to fence an orphan.
   */
  async examine(row: Allocation, pod: PodStatus): Promise<Allocation | undefined> {
    if (isOrphan(row, pod)) {
      const cooling = await this.endOrphan(row);
      if (cooling !== undefined) return cooling;
    }
    const first = await this.#judge(row, pod, this.#sinceMs(row));
    this.#note(row, first);
    if (first.kind !== "collect") return undefined;
    const again = await this.#judge(row, await readPod(this.#reader, row), this.#sinceMs(row));
    this.#note(row, again);
    return again.kind === "collect" ? this.#collect(row, again.reason) : undefined;
  }

  /**
   * Allocation rule 8: of an orphan the address is taken at once, so that the workload's next pod has it, but not before it is off the orphan's
   * NIC. Undefined when the row's pod is none, or its NIC cannot be seen to have lost the address.
   */
  async endOrphan(row: Allocation): Promise<Allocation | undefined> {
    const { fence } = this.#tools;
    const { workload } = row;
    if (fence === undefined || workload === undefined) return undefined;
    if (!isOrphan(row, await readPod(this.#reader, row))) return undefined;
    return (await fence({ ...row, workload })) ? this.#collect(row, "gone") : undefined;
  }

  /** Whether the pod is gone or finished, however short a time ago. */
  async isGone(row: PodRow): Promise<boolean> {
    const verdict = await this.#judge(row, await readPod(this.#reader, row), Number.NEGATIVE_INFINITY);
    return verdict.kind === "collect";
  }

  async #judge(row: PodRow, pod: PodStatus, observedAtMs: number | undefined): Promise<LeakVerdict> {
    const netns = await seeNetns(row);
    const nowMs = this.#tools.nowMs();
    return decideLeak({ row, pod, netns, observedAtMs, nowMs, settleMs: this.#settleMs(row.pool) });
  }

  /** Whoever has written to the row since knew that it is wanted: what was seen before does not count. */
  #sinceMs(row: Allocation): number | undefined {
    const before = this.#observations.get(keyOf(row));
    return before?.version === row.version ? before.sinceMs : undefined;
  }

  #note(row: Allocation, { kind }: LeakVerdict): void {
    if (kind === "wait") return;
    if (kind === "keep") this.#observations.delete(keyOf(row));
    if (kind !== "observe" || this.#sinceMs(row) !== undefined) return;
    const { version, pool } = row;
    this.#observations.set(keyOf(row), { version, pool, sinceMs: this.#tools.nowMs() });
  }

  async #collect(row: Allocation, reason: "finished" | "gone"): Promise<Allocation | undefined> {
    const { registry, log } = this.#tools;
    const cooling = await registry.collect(row);
    this.#observations.delete(keyOf(row));
    if (cooling === undefined) return undefined;
    const { namespace, pod, owner, pool, ifName } = row;
    log.info(
      { address: formatIp(row.ip), pool, namespace, pod, owner, ifName, reason },
      `The pod of an address is ${reason} and no DEL came; the address goes back`,
    );
    return cooling;
  }

  #settleMs(pool: string): number {
    const { graceMs, cooldowns } = this.#tools.settings();
    return settleMs(graceMs, cooldowns.byPool.get(pool) ?? cooldowns.defaultMs);
  }
}

function keyOf({ space, ip }: Allocation): string {
  return `${formatIp(ip)}/${space}`;
}
