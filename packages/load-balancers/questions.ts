/**
 * Has an address probed before a Service first gets it (conflict). The controller has no NIC on the segment, so the
 * question is a record: in quarantine, of a node with a NIC of the pool. The node's agent probes it like any other, and
 * deletes the record if no machine answers, or records the machine that does. It also ends a question forgotten here.
 */
import { Probers } from "../../host/controller/gc/probers.ts";
import type { Caches } from "../../host/controller/types.ts";
import { formatIp, type Ip } from "../../host/net/ip.ts";
import { type IpAllocationSpec, NO_NODE } from "../../host/resources/ip-allocation.ts";
import type { IpPool } from "../../host/resources/ip-pool.ts";
import type { Workload } from "../../host/resources/member.ts";
import type { ServiceRecord } from "./plan-address.ts";

/** Time after which an address that no agent has probed is given without: milliseconds. */
const ANSWER_MS = 15_000;

/** After it the end of the question is forgotten: milliseconds. */
const FORGET_MS = 5_000;

interface Question {
  readonly ip: Ip;
  readonly pool: IpPool;
  readonly workload: Workload;
  readonly untilMs: number;
}

export class Questions {
  readonly #caches: Caches;
  readonly #nowMs: () => number;
  /** By address, as text. */
  readonly #asked = new Map<string, Question>();
  /** Addresses that were given without a probe. */
  readonly #unprobed = new Set<string>();
  #probers: Probers;

  constructor(caches: Caches, nowMs: () => number) {
    this.#caches = caches;
    this.#nowMs = nowMs;
    this.#probers = new Probers(caches);
  }

  /** Begins a pass. Returns the addresses asked for these Services, which no other Service may have. */
  begin(uids: ReadonlySet<string>): ServiceRecord[] {
    this.#probers = new Probers(this.#caches);
    for (const [text, { workload, untilMs }] of this.#asked)
      if (!uids.has(workload.uid) || this.#nowMs() > untilMs + FORGET_MS) this.#asked.delete(text);
    return [...this.#asked.values()].map(({ pool, ...own }) => ({ ...own, addressSpace: pool.spec.addressSpace }));
  }

  /** Returns the record that asks, in place of the Service's; undefined if no node can probe, or any would answer. */
  ask({ workload, ...record }: IpAllocationSpec, pool: IpPool): IpAllocationSpec | undefined {
    const { conditions = [] } = this.#caches.pools.items.get(pool.name) ?? {};
    const isProxied = conditions.some(({ type, status }) => type === "ProxyArpSuspected" && status === "True");
    const node = this.#probers.choose({ pool: pool.name, lost: { node: NO_NODE }, except: new Set() });
    if (workload === undefined || node === undefined || isProxied) return undefined;
    const question = { ip: record.ip, pool, workload, untilMs: this.#nowMs() + ANSWER_MS };
    this.#asked.set(formatIp(record.ip), question);
    return { ...record, node, state: "Quarantined", quarantine: { reason: "Conflict", mac: "", parent: "" } };
  }

  find(ip: Ip): Question | undefined {
    return this.#asked.get(formatIp(ip));
  }

  /** The Service has the address, or will not get it. */
  end(ip: Ip, isProbed: boolean): void {
    this.#asked.delete(formatIp(ip));
    this.#unprobed[isProbed ? "delete" : "add"](formatIp(ip));
  }

  /** Returns those that were given without a probe. */
  unprobed(ips: readonly string[]): string[] {
    return ips.filter((text) => this.#unprobed.has(text));
  }
}
