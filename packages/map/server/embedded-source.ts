/**
 * The address map's source on a node without a cluster: its pools and the rows of its registry, which are read again
 * while a viewer is connected. After a read it rests twenty times as long as that took, so that viewers do not take
 * the registry's thread from ADDs.
 */

import type { Backend } from "../../../host/agent/backend.ts";
import { Listeners } from "../../../host/lib/listeners.ts";
import type { Log } from "../../../host/lib/log.ts";
import { listRows } from "../../../host/registry/list-rows.ts";
import type { Allocation } from "../../../host/registry/registry.ts";
import { mapPoolOf } from "./describe-pool.ts";
import type { MapAllocation, MapChange, MapSource } from "./map-source.ts";

/** Rows of one call to the registry when the address map reads it. */
const MAP_PAGE = 1_000;

/** Shortest rest between two reads of the registry for the address map: milliseconds. */
const MAP_REST_MS = 500;

/** A rest is so many times as long as the read before it. */
const REST_FACTOR = 20;

interface EmbeddedMapOptions {
  readonly backend: Pick<Backend, "ipam" | "problems">;
  readonly questions: NonNullable<MapSource["questions"]>;
  /** The machine's monotonic clock, which the rows' times are of. */
  readonly nowMs: () => number;
  readonly log: Log;
}

interface KnownRow {
  readonly version: number;
  readonly allocation: MapAllocation;
}

export class EmbeddedMap implements MapSource {
  readonly mode = "embedded";
  readonly questions: NonNullable<MapSource["questions"]>;
  readonly #options: EmbeddedMapOptions;
  readonly #listeners: Listeners<MapChange>;
  #rows = new Map<string, KnownRow>();
  #reading: Promise<void> | undefined;
  /** Not before then is the registry read again. */
  #dueMs = 0;
  #followers = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: EmbeddedMapOptions) {
    this.#options = options;
    this.questions = options.questions;
    this.#listeners = new Listeners((error) => {
      options.log.error({ err: error }, "Internal error while telling the address map of a change");
    });
  }

  async refresh(): Promise<void> {
    if (this.#options.nowMs() < this.#dueMs) return;
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
    });
    await this.#reading;
  }

  pools() {
    const { snapshot, poolCache } = this.#options.backend.ipam.inventory;
    return [...snapshot.pools.values()].map((pool) => mapPoolOf(pool, [], poolCache.exceptionsOf(pool.name)));
  }

  reserved() {
    const { reserved } = this.#options.backend.ipam.inventory.snapshot;
    return reserved.map(({ name, spec: { addressSpace, ranges } }) => ({ name, addressSpace, ranges }));
  }

  *allocations(): Generator<MapAllocation> {
    for (const { allocation } of this.#rows.values()) yield allocation;
  }

  problems(): readonly string[] {
    return this.#options.backend.problems;
  }

  subscribe(listener: (change: MapChange) => void): () => void {
    const remove = this.#listeners.add(listener);
    this.#followers++;
    this.#schedule();
    return () => {
      remove();
      this.#followers--;
    };
  }

  /** Reads on while there are followers. */
  #schedule(): void {
    if (this.#followers === 0 || this.#timer !== undefined) return;
    const waitMs = Math.max(0, this.#dueMs - this.#options.nowMs());
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.refresh()
        .catch((error: unknown) =>
          this.#options.log.warn({ err: error }, "Reading the registry for the address map failed"),
        )
        .finally(() => this.#schedule());
    }, waitMs).unref();
  }

  async #read(): Promise<void> {
    const { backend, nowMs } = this.#options;
    const startMs = nowMs();
    const rows = new Map<string, KnownRow>();
    try {
      for await (const row of listRows(backend.ipam.inventory.registry, MAP_PAGE)) {
        const key = `${row.space}/${row.ip.family}/${row.ip.value}`;
        const known = this.#rows.get(key);
        rows.set(
          key,
          known?.version === row.version ? known : { version: row.version, allocation: this.#describe(row) },
        );
      }
    } finally {
      this.#dueMs = nowMs() + Math.max(MAP_REST_MS, REST_FACTOR * (nowMs() - startMs));
    }
    const before = this.#rows;
    this.#rows = rows;
    for (const [key, { allocation }] of before) if (!rows.has(key)) this.#tell(allocation, undefined);
    for (const [key, row] of rows) if (before.get(key) !== row) this.#tell(row.allocation, row.allocation);
  }

  #tell({ ip, addressSpace }: MapAllocation, allocation: MapAllocation | undefined): void {
    this.#listeners.tell({ ip, addressSpace, allocation });
  }

  #describe(row: Allocation): MapAllocation {
    const { ip, space, pool, state, namespace, pod, ifName, workload, quarantine, mac, sinceMs } = row;
    const { nowMs, backend } = this.#options;
    const holder = { namespace, pod, ifName, node: backend.ipam.node.name };
    const ageMs = nowMs() - sinceMs;
    return {
      ip,
      addressSpace: space,
      pool,
      state,
      holders: state === "Bound" ? [holder] : [],
      workload,
      quarantine: quarantine && { mac: quarantine.mac ?? "" },
      mac,
      // Rows of an earlier boot have times of its clock.
      since: ageMs >= 0 ? new Date(Date.now() - ageMs).toISOString() : undefined,
    };
  }
}
