/**
 * Quarantines addresses that another machine answers for, unless that machine answers for any (proxy ARP), and probes
 * quarantined addresses again through the node's link under the NIC that met the conflict: silence releases an
 * address, an answer postpones its next probe (conflict). The agent probes the addresses of lost nodes too, when the
 * controller tells it to (node-lost).
 */

import type { ConflictProbe } from "../../coordinator/detect-conflict.ts";
import { DetectionError } from "../../coordinator/detection-error.ts";
import type { Conflict, ProbeLink } from "../../coordinator/probe.ts";
import { type ConflictAction, describeProxyArp, PROXY_ARP_ADDRESSES, type ProxyArp } from "../../ipam/conflict.ts";
import { BoundedMap } from "../../lib/bounded-map.ts";
import { invariant } from "../../lib/invariant.ts";
import type { Log } from "../../lib/log.ts";
import { KeyedSerialQueue } from "../../lib/serial.ts";
import { orElse } from "../../lib/try-or.ts";
import type { ConflictMetrics } from "../../metrics/agent-metrics.ts";
import { equalIp, formatIp, type Ip } from "../../net/ip.ts";
import type { Mac } from "../../net/mac.ts";
import type { Allocation, Registry } from "../../registry/registry.ts";
import type { PoolsByName } from "../../resources/pools-by-name.ts";
import type { Audit } from "../log/audit.ts";

/** Silence after which a quarantined address is released: milliseconds. No request waits for it. */
const QUARANTINE_WINDOW_MS = 1_000;

/** Time until the first probe of a quarantined address; each next pause equals its age: milliseconds. */
export const QUARANTINE_FIRST_PROBE_MS = 5_000;

/** Longest time between two probes of a quarantined address: milliseconds. */
export const QUARANTINE_PROBE_MAX_MS = 300_000;

/** Most quarantined addresses that are probed at once; each has sockets of its own. */
export const PROBES_AT_ONCE = 32;

/**
 * Most machines suspected of proxy ARP at a time. The one that answered longest ago is dropped first. Any machine on
 * the segment can make up MACs.
 */
export const MAX_PROXY_ARP_SUSPECTS = 32;

/** Time for which a machine is suspected of proxy ARP after its last answer: milliseconds. */
export const PROXY_ARP_MEMORY_MS = 3_600_000;

/** The engine of detection: host/coordinator/detect-conflict.ts. */
export type DetectConflict = (question: ConflictProbe) => Promise<Conflict | undefined>;

export interface QuarantineProberDeps {
  readonly registry: Registry;
  readonly pools: () => PoolsByName;
  readonly detect: DetectConflict;
  /** Returns a link of the node by name; undefined if it cannot probe. */
  readonly findNodeLink: (name: string) => ProbeLink | undefined;
  /** Returns a link of the node to the segment of an address that names no link. */
  readonly findPoolLink?: ((allocation: Allocation) => Promise<ProbeLink | undefined>) | undefined;
  readonly nowMs: () => number;
  readonly random: () => number;
  /**
   * Resolves, as a rule, when the ADD that met a conflict has been answered: other consequences of the conflict do not
   * delay the answer.
   */
  readonly letAnswer: () => Promise<unknown>;
  readonly log: Log;
  /** Default: conflicts are not counted. */
  readonly metrics?: ConflictMetrics | undefined;
  readonly audit: Audit;
}

interface ConflictFound {
  readonly allocation: Allocation;
  /** MAC of the machine that answered; undefined if its answer has none. */
  readonly mac: Mac | undefined;
  /** The node's link to the segment on which it answered; "" if unknown. */
  readonly parent: string;
  /** The claims of an ADD that ends here: undone in the same write. */
  readonly created?: readonly Allocation[];
}

type ProbeOutcome = "silent" | "unknown" | Conflict;

interface Suspect extends ProxyArp {
  readonly seenMs: number;
}

export class QuarantineProber {
  readonly #deps: QuarantineProberDeps;
  readonly #suspects = new BoundedMap<string, Suspect>(MAX_PROXY_ARP_SUSPECTS);
  /** By pool and MAC: the first addresses that a machine answers for make it a suspect before more are quarantined. */
  readonly #conflicts = new KeyedSerialQueue();
  readonly #closed = new AbortController();
  /** Probes of gateways in the background; never rejects. */
  #gatewayProbes: Promise<unknown> = Promise.resolve();
  #salt = 0;

  constructor(deps: QuarantineProberDeps) {
    this.#deps = deps;
  }

  /** Sentences without a full stop. */
  get problems(): readonly string[] {
    return this.#known().map(describeProxyArp);
  }

  /**
   * Part of the seed of an address search; "" while no proxy ARP is suspected. It changes with each answer: as such
   * an address is not quarantined, the next attempt would start with the same one.
   */
  get salt(): string {
    return this.#suspects.size === 0 || this.#known().length === 0 ? "" : `#${this.#salt}`;
  }

  /**
   * Returns whether a machine on the pool's segment is suspected. In a pool that is searched in ascending order the
   * {@link salt} has no effect.
   */
  hasSuspect(pool: string): boolean {
    return this.#known().some((each) => each.pool === pool);
  }

  isSuspect(pool: string, mac: Mac | undefined): boolean {
    return mac !== undefined && this.#known().some((each) => each.pool === pool && each.mac === mac);
  }

  /** Handles a Bound address that another machine answers for. Rejects with RegistryError. */
  async conflict(found: ConflictFound): Promise<ConflictAction> {
    const { allocation, mac } = found;
    const action = await (mac === undefined
      ? this.#quarantine(found)
      : this.#conflicts.run(`${allocation.pool} ${mac}`, () => this.#quarantine(found)));
    this.#deps.metrics?.conflicts.inc({ action });
    return action;
  }

  /** Probes all quarantined addresses that are due. Ends early when the prober is closed. */
  async probeDue(): Promise<void> {
    const { registry, nowMs } = this.#deps;
    const dueMs = nowMs();
    while (!this.#closed.signal.aborted) {
      const due = await registry.findQuarantined({ dueMs, limit: PROBES_AT_ONCE });
      await Promise.all(due.map((each) => this.#probe(each)));
      if (due.length < PROBES_AT_ONCE) return;
    }
  }

  async #quarantine({ allocation, mac, parent, created = [] }: ConflictFound): Promise<ConflictAction> {
    const { registry, nowMs, log } = this.#deps;
    const { ip, pool } = allocation;
    if (mac !== undefined && this.isSuspect(pool, mac)) {
      this.#suspect({ pool, mac, gateway: undefined });
      // The undo of the ADD frees the address; one taken out of quarantine would return there.
      if (allocation.quarantine === undefined) return "proxyArp";
    }
    const nextProbeAtMs = nowMs() + QUARANTINE_FIRST_PROBE_MS;
    const about = { address: formatIp(ip), pool, mac, parent };
    const quarantining = registry
      .quarantine(allocation, { reason: "Conflict", mac, parent, nextProbeAtMs }, created)
      .catch((error: unknown) => {
        // The caller reports only the registry's failure, such as a full disk.
        log.warn({ ...about, err: error }, "Quarantining an address that another machine answers for failed");
        throw error;
      });
    // Sent together they share one turn of the registry's thread.
    const [found, same] = await Promise.all([
      quarantining,
      mac === undefined ? [] : registry.findQuarantined({ pool, mac, limit: PROXY_ARP_ADDRESSES }),
    ]);
    if (found === undefined) return "superseded";
    log.warn(about, "Quarantined an address: another machine answers for it");
    const rule = `${mac ?? "another machine"} answers for it`;
    this.#deps.audit.record({ audit: "QUARANTINE", allocations: [allocation], rule });
    if (mac === undefined) return "quarantined";
    const others = same.filter((each) => !equalIp(each.ip, ip));
    if (others.length + 1 >= PROXY_ARP_ADDRESSES) this.#suspect({ pool, mac, gateway: undefined });
    if (this.isSuspect(pool, mac)) {
      await this.#release(pool, mac);
      return "proxyArp";
    }
    this.#gatewayProbes = Promise.allSettled([this.#gatewayProbes, this.#probeGateway(pool, mac, parent)]);
    return "quarantined";
  }

  /** Resolves when no gateway is being probed in the background. */
  async idle(): Promise<void> {
    await this.#gatewayProbes;
  }

  async close(): Promise<void> {
    this.#closed.abort();
    await this.idle();
  }

  async #probe(allocation: Allocation): Promise<void> {
    const { registry, nowMs, audit } = this.#deps;
    const outcome = await this.#probeOnce(allocation);
    if (this.#closed.signal.aborted) return;
    if (outcome === "silent") {
      await registry.endQuarantine(allocation);
      audit.record({ audit: "RELEASE", allocations: [allocation], rule: "silent in quarantine" });
      return;
    }
    const inQuarantineMs = nowMs() - allocation.sinceMs;
    const waitMs = Math.min(Math.max(inQuarantineMs, QUARANTINE_FIRST_PROBE_MS), QUARANTINE_PROBE_MAX_MS);
    const { quarantine } = allocation;
    invariant(quarantine !== undefined, "An address that is probed is in quarantine");
    const { mac = quarantine.mac } = outcome === "unknown" ? quarantine : outcome;
    await registry.quarantine(allocation, { ...quarantine, mac, nextProbeAtMs: nowMs() + waitMs });
  }

  /** "unknown" without a link, or with one that is down or has no carrier. */
  async #probeOnce(allocation: Allocation): Promise<ProbeOutcome> {
    const { findNodeLink, findPoolLink } = this.#deps;
    const { parent = "" } = allocation.quarantine ?? {};
    // No link is known here for an address of a lost node: any parent of the NICs of its pool will do.
    const link = parent === "" ? await findPoolLink?.(allocation) : findNodeLink(parent);
    if (link === undefined) return "unknown";
    return await this.#ask(link, allocation.ip)
      .then((conflict): ProbeOutcome => conflict ?? "silent")
      .catch(orElse((error) => error instanceof DetectionError, "unknown"));
  }

  #ask(link: ProbeLink, ip: Ip): Promise<Conflict | undefined> {
    const { detect, random } = this.#deps;
    return detect({ link, addresses: [ip], windowMs: QUARANTINE_WINDOW_MS, random, signal: this.#closed.signal });
  }

  #suspect(found: ProxyArp): void {
    const { log, nowMs } = this.#deps;
    const key = `${found.pool} ${found.mac}`;
    const before = this.#known().find(({ pool, mac }) => pool === found.pool && mac === found.mac);
    const suspect = { ...found, gateway: found.gateway ?? before?.gateway, seenMs: nowMs() };
    this.#suspects.set(key, suspect);
    this.#salt++;
    if (before === undefined) log.warn({ pool: found.pool, mac: found.mac }, describeProxyArp(suspect));
  }

  #known(): Suspect[] {
    const sinceMs = this.#deps.nowMs() - PROXY_ARP_MEMORY_MS;
    for (const [key, { seenMs }] of this.#suspects) if (seenMs < sinceMs) this.#suspects.delete(key);
    return [...this.#suspects.values()];
  }

  /** Ends the quarantine of all addresses that this machine has answered for, page by page. */
  async #release(pool: string, mac: Mac): Promise<void> {
    const { registry } = this.#deps;
    for (;;) {
      const found = await registry.findQuarantined({ pool, mac, limit: PROXY_ARP_ADDRESSES });
      if (found.length === 0) return;
      for (const each of found) {
        await registry.endQuarantine(each);
        this.#deps.audit.record({ audit: "RELEASE", allocations: [each], rule: `${mac} answers for any address` });
      }
    }
  }

  /** An answer with the gateway's MAC for another address is proxy ARP, too. A failed probe changes nothing. */
  async #probeGateway(poolName: string, mac: Mac, parent: string): Promise<void> {
    const { pools, findNodeLink, letAnswer, log } = this.#deps;
    try {
      await letAnswer();
      const gateway = pools().get(poolName)?.spec.gateway;
      const link = gateway && findNodeLink(parent);
      if (link === undefined || gateway === undefined) return;
      const answer = await this.#ask(link, gateway);
      if (answer?.mac !== mac) return;
      this.#suspect({ pool: poolName, mac, gateway });
      await this.#release(poolName, mac);
    } catch (error) {
      if (!this.#closed.signal.aborted)
        log.warn({ err: error, pool: poolName, parent }, "Probing the gateway of a pool failed");
    }
  }
}
