/**
 * What becomes of an address that another machine answers for: quarantine, or none when that machine answers for any (conflict).
 * Effects: those of the registry; after a conflict, and without making anybody wait, it asks for the pool's gateway.
 */

import type { ConflictProbe } from "../../coordinator/detect-conflict.ts";
import type { Conflict, ProbeLink } from "../../coordinator/probe.ts";
import { type ConflictAction, describeProxyArp, PROXY_ARP_ADDRESSES, type ProxyArp } from "../../ipam/conflict.ts";
import type { PoolsByName } from "../../ipam/selection.ts";
import type { Log } from "../../lib/log.ts";
import { formatIp, type Ip } from "../../net/ip.ts";
import type { Mac } from "../../net/mac.ts";
import type { Allocation, Registry } from "../../registry/registry.ts";
import { QUARANTINE_FIRST_PROBE_MS, QUARANTINE_WINDOW_MS } from "./probe-quarantined.ts";

/** Most machines that are taken for proxy ARP at one time; the one that answered longest ago is forgotten first. Anybody on the segment can make up MACs. @limit */
export const MAX_PROXY_ARP_SUSPECTS = 32;

/** How long a machine is taken for proxy ARP after it answered last: milliseconds. @limit */
export const PROXY_ARP_MEMORY_MS = 3_600_000;

/** The engine of detection: host/coordinator/detect-conflict.ts. */
export type DetectConflict = (question: ConflictProbe) => Promise<Conflict | undefined>;

export interface QuarantineTools {
  readonly registry: Registry;
  readonly pools: () => PoolsByName;
  readonly detect: DetectConflict;
  /** A link of the node by name; undefined when one cannot ask through it. */
  readonly findNodeLink: (name: string) => ProbeLink | undefined;
  /** A link of the node to the address's segment, where the address names none. Absent: there is none. */
  readonly findPoolLink?: ((allocation: Allocation) => Promise<ProbeLink | undefined>) | undefined;
  readonly nowMs: () => number;
  readonly random: () => number;
  readonly log: Log;
}

export interface ConflictFound {
  readonly allocation: Allocation;
  /** Of the machine that answered; undefined when its answer did not tell. */
  readonly mac: Mac | undefined;
  /** The node's link on whose segment it answered; "" when none is known. */
  readonly parent: string;
  /** What the ADD has claimed, when it ends here: taken back in the same write. */
  readonly created?: readonly Allocation[];
}

interface Suspect extends ProxyArp {
  readonly seenMs: number;
}

export class QuarantineProber {
  readonly #tools: QuarantineTools;
  readonly #suspects = new Map<string, Suspect>();
  readonly #closed = new AbortController();
  #asking: Promise<unknown> = Promise.resolve();
  #salt = 0;

  constructor(tools: QuarantineTools) {
    this.#tools = tools;
  }

  /** Aborts with {@link close}. */
  get signal(): AbortSignal {
    return this.#closed.signal;
  }

  /** Conditions that people should know of, each a sentence. */
  get problems(): readonly string[] {
    return this.#known().map(describeProxyArp);
  }

  /**
   * Where nothing is quarantined the next attempt would find the same address first. This, added to what seeds the search, sends it
   * elsewhere. "" while no proxy ARP is suspected.
   */
  get salt(): string {
    return this.#known().length === 0 ? "" : `#${this.#salt}`;
  }

  /** Whether a machine is suspected in the pool. In an ascending one the {@link salt} would send nobody elsewhere. */
  hasSuspect(pool: string): boolean {
    return this.#known().some((each) => each.pool === pool);
  }

  isSuspect(pool: string, mac: Mac | undefined): boolean {
    return mac !== undefined && this.#known().some((each) => each.pool === pool && each.mac === mac);
  }

  /** What becomes of a Bound address that is another machine's. */
  async conflict({ allocation, mac, parent, created = [] }: ConflictFound): Promise<ConflictAction> {
    const { registry, nowMs, log } = this.#tools;
    const { ip, pool } = allocation;
    if (mac !== undefined && this.isSuspect(pool, mac)) {
      this.#suspect({ pool, mac, gateway: undefined });
      // The undo of the ADD makes it free; one that came out of quarantine would go back there.
      if (allocation.quarantine === undefined) return "proxyArp";
    }
    const nextProbeAtMs = nowMs() + QUARANTINE_FIRST_PROBE_MS;
    const about = { address: formatIp(ip), pool, mac, parent };
    const found = await registry
      .quarantine(allocation, { reason: "Conflict", mac, parent, nextProbeAtMs }, created)
      .catch((error: unknown) => {
        // The caller hears of the registry only, a full disk for one.
        log.warn({ ...about, err: error }, "Another machine answers for the address, and it could not be quarantined");
        throw error;
      });
    if (found === undefined) return "superseded";
    log.warn(about, "Quarantined: another machine answers for the address");
    if (mac === undefined) return "quarantined";
    const same = await registry.findQuarantined({ pool, mac, limit: PROXY_ARP_ADDRESSES });
    if (same.length >= PROXY_ARP_ADDRESSES) this.#suspect({ pool, mac, gateway: undefined });
    if (this.isSuspect(pool, mac)) {
      await this.#free(pool, mac);
      return "proxyArp";
    }
    this.#asking = Promise.allSettled([this.#asking, this.#askGateway(pool, mac, parent)]);
    return "quarantined";
  }

  /** When everything that goes on in the background has come to its end. */
  async settled(): Promise<void> {
    await this.#asking;
  }

  async close(): Promise<void> {
    this.#closed.abort();
    await this.settled();
  }

  #suspect(found: ProxyArp): void {
    const { log, nowMs } = this.#tools;
    const key = `${found.pool} ${found.mac}`;
    const before = this.#known().find(({ pool, mac }) => pool === found.pool && mac === found.mac);
    const suspect = { ...found, gateway: found.gateway ?? before?.gateway, seenMs: nowMs() };
    this.#suspects.delete(key); // the one that answered last is the last to be forgotten
    this.#suspects.set(key, suspect);
    const [oldest] = this.#suspects.keys();
    if (this.#suspects.size > MAX_PROXY_ARP_SUSPECTS && oldest !== undefined) this.#suspects.delete(oldest);
    this.#salt++;
    if (before === undefined) log.warn({ pool: found.pool, mac: found.mac }, describeProxyArp(suspect));
  }

  #known(): Suspect[] {
    const sinceMs = this.#tools.nowMs() - PROXY_ARP_MEMORY_MS;
    for (const [key, { seenMs }] of this.#suspects) if (seenMs < sinceMs) this.#suspects.delete(key);
    return [...this.#suspects.values()];
  }

  /** Ends the quarantine of everything that this machine has answered for, in pieces. */
  async #free(pool: string, mac: Mac): Promise<void> {
    const { registry } = this.#tools;
    for (;;) {
      const found = await registry.findQuarantined({ pool, mac, limit: PROXY_ARP_ADDRESSES });
      if (found.length === 0) return;
      for (const each of found) await registry.endQuarantine(each);
    }
  }

  /** The gateway's MAC for an address that is none of its own is proxy ARP, too. Trouble in finding out changes nothing. */
  async #askGateway(poolName: string, mac: Mac, parent: string): Promise<void> {
    const { pools, findNodeLink, detect, random, log } = this.#tools;
    try {
      const gateway: Ip | undefined = pools().get(poolName)?.spec.gateway;
      const link = gateway && findNodeLink(parent);
      if (link === undefined || gateway === undefined) return;
      const answer = await detect({
        link,
        addresses: [gateway],
        windowMs: QUARANTINE_WINDOW_MS,
        random,
        signal: this.signal,
      });
      if (answer?.mac !== mac) return;
      this.#suspect({ pool: poolName, mac, gateway });
      await this.#free(poolName, mac);
    } catch (error) {
      if (!this.signal.aborted) log.warn({ err: error, pool: poolName, parent }, "The gateway could not be asked");
    }
  }
}
