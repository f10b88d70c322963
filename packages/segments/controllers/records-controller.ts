/**
 * Keeps the addresses that pods have in a server of record, Nautobot or NetBox, so that people find them there. One
 * way: nothing that the server says changes an address, and no pod waits for it. plan-records.ts decides.
 */

import type { CachedAllocation } from "../../../host/controller/cached-allocation.ts";
import { hasEveryRecord } from "../../../host/controller/caches.ts";
import type { Controller, ControllerDeps, Measurements, StartController } from "../../../host/controller/types.ts";
import { readClusterId } from "../../../host/kubernetes/cluster-id.ts";
import { pauseMs } from "../../../host/kubernetes/http/retry.ts";
import { messageOf } from "../../../host/lib/describe.ts";
import { PeriodicWorker } from "../../../host/lib/periodic.ts";
import { printable } from "../../../host/lib/printable.ts";
import { formatIp } from "../../../host/net/ip.ts";
import { API_VERSION } from "../../../host/resources/fields/metadata.ts";
import { RecordServerError } from "../record-server/http-client.ts";
import {
  type AddressPlace,
  describeNic,
  dnsNameOf,
  placeKey,
  type RecordingCluster,
  type ServerAddress,
} from "../record-server/pod-address.ts";
import { BATCH_SIZE, RecordsRefused, type RestAddresses } from "../record-server/rest-addresses.ts";
import {
  countDrift,
  type HeldSince,
  type KnownEntry,
  knownEntry,
  planRecords,
  type RecordFinding,
  type RecordsPlan,
  type UsedAddress,
} from "./plan-records.ts";

/** Shortest time between two passes: milliseconds. */
const RECORDS_REST_MS = 1_000;

/**
 * Interval at which all entries of the cluster are read from the server, to find changes by others, and at which a
 * finding is checked again: milliseconds. @limit
 */
const RECORDS_CHECK_MS = 600_000;

/** Time for which the API server may take to say the cluster's UID: milliseconds. */
const PATIENCE_MS = 10_000;

/** Entries of the first call: how many a server takes in a time that no proxy cuts is found out. */
const FIRST_BATCH = 20;

/** Calls get larger while they take less than this, and smaller when they take twice as long: milliseconds. */
const CALL_MS = 5_000;

/** Reason of events, by which `berthctl check` finds them. */
const NOT_RECORDED = "AddressNotRecorded";

const REFUSED = "is not recorded: the server refuses it";
const KEPT = "has an entry too many: the server does not delete it";

/** Most findings that problems name one by one. */
const MAX_NAMED = 10;

/** Longest list of addresses in a query: characters. Servers refuse a longer line of a request. */
const MAX_QUERY_CHARACTERS = 3_000;

export interface RecordsSettings {
  /** For the cluster of this UID. */
  readonly open: (clusterUid: string) => RestAddresses;
  /** The cluster's name for people. */
  readonly cluster: string;
  /** Suffix of DNS names. */
  readonly domain: string;
  /** Names on the server, by address space. Others are not recorded. */
  readonly spaces: ReadonlyMap<string, string>;
  /** An address is recorded when a pod has had it for so long. */
  readonly intervalMs: number;
  /** Default: RECORDS_CHECK_MS. */
  readonly checkMs?: number;
  /** Default: RECORDS_REST_MS. */
  readonly restMs?: number;
}

export function startRecords(settings: RecordsSettings): StartController {
  return (deps) => new Records(deps, settings);
}

/** An address, or without a name an entry that is to be deleted. */
type RecordedPlace = AddressPlace & Partial<Pick<UsedAddress, "name">>;

class Records implements Controller {
  readonly #deps: ControllerDeps;
  readonly #settings: RecordsSettings;
  readonly #closing = new AbortController();
  readonly #signal: AbortSignal;
  readonly #worker: PeriodicWorker;
  readonly #held = new Map<string, HeldSince>();
  #server: RestAddresses | undefined;
  #cluster: RecordingCluster | undefined;
  /** Entries of the server; undefined before they were read. */
  #known: Map<string, KnownEntry> | undefined;
  #checkedAtMs = Number.NEGATIVE_INFINITY;
  #findings = new Map<string, RecordFinding>();
  #batch = FIRST_BATCH;
  #plan: Pick<RecordsPlan, "inSync" | "pending"> = { inSync: 0, pending: 0 };
  #succeededAtMs: number;
  readonly #changes = new Map<string, number>();
  #drift = 0;
  /** Addresses in spaces without a name on the server, by space. */
  #unnamed = new Map<string, number>();
  #retryAfterMs = 0;

  constructor(deps: ControllerDeps, settings: RecordsSettings) {
    this.#deps = deps;
    this.#settings = settings;
    this.#signal = AbortSignal.any([deps.leading, this.#closing.signal]);
    this.#succeededAtMs = deps.clock.now().getTime();
    const { restMs = RECORDS_REST_MS } = settings;
    this.#worker = new PeriodicWorker({
      failure: "Recording the addresses of pods failed",
      work: () => this.#reconcile(),
      restMs: () => restMs,
      retryMs: (failures) => restMs + pauseMs(failures, deps.random(), this.#retryAfterMs),
      signal: this.#signal,
      log: deps.log,
    });
  }

  get problems(): readonly string[] {
    const findings = [...this.#findings].map(([key, { text }]) => `Address ${key.split(" ")[0]} ${text}`);
    const more = findings.length - MAX_NAMED;
    const unnamed = [...this.#unnamed].map(
      ([space, count]) =>
        `${count} addresses of address space "${space}" are not recorded: want --records-space ${space}=NAME`,
    );
    const own = this.#server?.problem;
    return [
      ...this.#worker.problems,
      ...(own === undefined ? [] : [own]),
      ...unnamed,
      ...findings.slice(0, MAX_NAMED),
      ...(more > 0 ? [`${more} more addresses are not recorded`] : []),
    ];
  }

  get measurements(): Measurements {
    const kinds = [...this.#findings.values()].map(({ kind }) => kind);
    return {
      records: {
        entries: {
          ...{ in_sync: this.#plan.inSync, pending: this.#plan.pending },
          foreign: kinds.filter((kind) => kind === "foreign").length,
          refused: kinds.filter((kind) => kind === "refused").length,
        },
        succeededAtMs: this.#succeededAtMs,
        requests: this.#server?.requests ?? 0,
        changes: this.#changes,
        drift: this.#drift,
      },
    };
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error("The recording of addresses was stopped"));
    await this.#worker.close();
  }

  /** Returns the time until the next check: milliseconds. */
  async #reconcile(): Promise<number> {
    const { intervalMs, checkMs = RECORDS_CHECK_MS } = this.#settings;
    const { nowMs } = this.#deps.clock;
    try {
      const server = await this.#open();
      if (this.#known === undefined || nowMs() - this.#checkedAtMs >= checkMs) await this.#observe(server);
      const plan = this.#decide();
      await this.#carryOut(server, plan);
      this.#tell();
      this.#retryAfterMs = 0;
      if (plan.pending === 0) this.#succeededAtMs = this.#deps.clock.now().getTime();
      return plan.pending > 0 ? 0 : Math.min(intervalMs, checkMs);
    } catch (error) {
      if (error instanceof RecordServerError) {
        this.#retryAfterMs = error.retryAfterMs ?? 0;
        // Without an answer the call was too much for the server, or for a proxy before it.
        if (error.status === undefined || error.status >= 500 || error.status === 413) this.#shrink();
      }
      if (!this.#signal.aborted)
        this.#emit("Namespace", "v1", "kube-system", `Addresses of pods are not recorded: ${messageOf(error)}`);
      throw error;
    }
  }

  async #open(): Promise<RestAddresses> {
    const { open, cluster: name, domain } = this.#settings;
    if (this.#server !== undefined) return this.#server;
    const uid = await readClusterId(this.#deps.api, PATIENCE_MS);
    this.#cluster = { uid, name, domain };
    this.#server = open(uid);
    return this.#server;
  }

  async #observe(server: RestAddresses): Promise<void> {
    await server.prepare(this.#signal);
    const known = new Map<string, KnownEntry>();
    const surplus: KnownEntry[] = [];
    for await (const page of server.listOwn(this.#signal)) {
      for (const entry of page) {
        const key = placeKey(entry);
        if (known.has(key) && known.get(key)?.id !== entry.id) surplus.push(knownEntry(entry));
        else known.set(key, knownEntry(entry));
      }
    }
    const drift = this.#known === undefined ? 0 : countDrift(this.#known, known);
    if (drift > 0) this.#deps.log.warn({ entries: drift }, "Others have changed or deleted entries of pods' addresses");
    this.#drift += drift;
    this.#known = known;
    // After lost answers, where a server takes two entries for one address.
    await this.#remove(server, surplus, known);
    this.#checkedAtMs = this.#deps.clock.nowMs();
  }

  #decide(): RecordsPlan {
    const { caches, clock } = this.#deps;
    const plan = planRecords({
      ...{ used: this.#used(), held: this.#held, known: this.#known ?? new Map(), findings: this.#findings },
      ...{ nowMs: clock.nowMs(), intervalMs: this.#settings.intervalMs },
      isComplete: caches.allocations.problems.length === 0 && hasEveryRecord(caches),
    });
    this.#plan = plan;
    this.#findings = new Map(plan.open);
    return plan;
  }

  *#used(): Generator<UsedAddress> {
    const cluster = this.#cluster;
    this.#unnamed = new Map();
    if (cluster === undefined) return;
    for (const allocation of this.#deps.caches.allocations.items.values()) {
      const { addressSpace } = allocation.spec;
      const space = this.#settings.spaces.get(addressSpace);
      if (space !== undefined) yield* usedAddress(allocation, space, cluster);
      else this.#unnamed.set(addressSpace, (this.#unnamed.get(addressSpace) ?? 0) + 1);
    }
  }

  async #carryOut(server: RestAddresses, { create, update, remove }: RecordsPlan): Promise<void> {
    const known = this.#known ?? new Map<string, KnownEntry>();
    await this.#inBatches(update, (entries) =>
      this.#write(entries, async (part) => {
        await server.update(part, this.#signal);
        for (const entry of part) known.set(placeKey(entry), knownEntry(entry));
        this.#count("update", part.length);
      }),
    );
    for (const ofSpace of Map.groupBy(create, ({ space }) => space).values())
      await this.#inBatches(ofSpace, (entries) => this.#create(server, entries, known));
    // After all that pods need: a token may lack the right.
    await this.#remove(server, remove, known);
  }

  #remove(server: RestAddresses, list: readonly KnownEntry[], known: Map<string, KnownEntry>): Promise<void> {
    return this.#inBatches(list, (entries) =>
      this.#write<KnownEntry & RecordedPlace>(entries, async (part) => {
        const ids = part.map(({ id }) => id);
        await server.remove(ids, this.#signal);
        for (const entry of part) if (known.get(placeKey(entry))?.id === entry.id) known.delete(placeKey(entry));
        this.#count("delete", part.length);
      }),
    );
  }

  /** As many at once as the server does in a few seconds. */
  async #inBatches<T>(list: readonly T[], call: (part: readonly T[]) => Promise<void>): Promise<void> {
    const { nowMs } = this.#deps.clock;
    for (let at = 0; at < list.length; ) {
      const part = list.slice(at, at + this.#batch);
      at += part.length;
      const startMs = nowMs();
      await call(part);
      const tookMs = nowMs() - startMs;
      if (tookMs > 2 * CALL_MS) this.#shrink();
      else if (tookMs < CALL_MS && part.length === this.#batch)
        this.#batch = Math.min(BATCH_SIZE, Math.ceil(this.#batch * 1.5));
    }
  }

  #shrink(): void {
    this.#batch = Math.max(1, Math.floor(this.#batch / 2));
  }

  async #create(server: RestAddresses, entries: readonly UsedAddress[], known: Map<string, KnownEntry>): Promise<void> {
    const taken = new Map<string, ServerAddress>();
    for (const places of inQueries(entries))
      for (const entry of await server.findAt(places, this.#signal))
        if (entry.isOwn || !taken.has(placeKey(entry))) taken.set(placeKey(entry), entry);
    for (const address of entries) {
      const entry = taken.get(placeKey(address));
      // The answer to its creation was lost.
      if (entry?.isOwn) known.set(placeKey(entry), knownEntry(entry));
      else if (entry !== undefined) this.#find(address, "foreign", describeForeign(entry));
    }
    const free = entries.filter((entry) => !taken.has(placeKey(entry)));
    await this.#write(free, async (part) => {
      for (const entry of await server.create(part, this.#signal)) known.set(placeKey(entry), knownEntry(entry));
      this.#count("create", part.length);
    });
  }

  /**
   * Those that are refused become findings; the others are planned again. If the server does not say which it means,
   * it is asked with halves.
   */
  async #write<T extends RecordedPlace>(
    entries: readonly T[],
    call: (part: readonly T[]) => Promise<void>,
  ): Promise<void> {
    if (entries.length === 0) return;
    try {
      await call(entries);
    } catch (error) {
      if (!(error instanceof RecordsRefused)) throw error;
      if (error.reasons === undefined) {
        const middle = Math.ceil(entries.length / 2);
        for (const part of [entries.slice(0, middle), entries.slice(middle)]) await this.#write(part, call);
        return;
      }
      for (const [index, entry] of entries.entries()) {
        const reason = error.reasons[index];
        if (reason !== undefined)
          this.#find(entry, "refused", `${entry.name === undefined ? KEPT : REFUSED}: ${reason}`);
      }
    }
  }

  #find(place: RecordedPlace, kind: RecordFinding["kind"], text: string): void {
    const { checkMs = RECORDS_CHECK_MS } = this.#settings;
    const { name = place.ip } = place;
    this.#findings.set(placeKey(place), { kind, name, text, againMs: this.#deps.clock.nowMs() + checkMs });
  }

  /** Events are forgotten after an hour, and `berthctl check` reads these: they are repeated while they are true. */
  #tell(): void {
    for (const { name, text } of [...this.#findings.values()].slice(0, MAX_NAMED))
      this.#emit("IPAllocation", API_VERSION, name, `The address ${text}`);
  }

  #emit(kind: string, apiVersion: string, name: string, note: string): void {
    const regarding = { kind, apiVersion, namespace: "", name, uid: "" };
    this.#deps.events.emit({ regarding, note, reason: NOT_RECORDED, type: "Warning", action: "Record" });
  }

  #count(action: string, count: number): void {
    this.#changes.set(action, (this.#changes.get(action) ?? 0) + count);
  }
}

function* usedAddress(
  { name, spec: { ip, prefixLength, holders } }: CachedAllocation,
  space: string,
  cluster: RecordingCluster,
): Generator<UsedAddress> {
  const [holder] = holders;
  if (holder === undefined) return;
  yield {
    ...{ name, space, ip: formatIp(ip), prefixLength, holder: holder.uidHash ?? 0 },
    ...{ dnsName: dnsNameOf(holder, cluster), description: describeNic(holder, cluster) },
  };
}

function describeForeign({ ip, prefixLength, description, dnsName }: ServerAddress): string {
  const about = [dnsName, description].filter((text) => text !== "").join(", ");
  return `is not recorded: the server has an entry ${ip}/${prefixLength} of others${about === "" ? "" : ` (${printable(about.slice(0, 100))})`}`;
}

/** Returns the places in parts whose addresses fit into the line of a request. */
function* inQueries(places: readonly AddressPlace[]): Generator<readonly AddressPlace[]> {
  let [part, length]: [AddressPlace[], number] = [[], 0];
  for (const place of places) {
    // "&address=", and each ":" in three characters.
    const needed = encodeURIComponent(place.ip).length + 9;
    if (length + needed > MAX_QUERY_CHARACTERS) {
      yield part;
      [part, length] = [[], 0];
    }
    part.push(place);
    length += needed;
  }
  if (part.length > 0) yield part;
}
