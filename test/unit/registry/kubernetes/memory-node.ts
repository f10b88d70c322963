/** One node's registry on an API server in memory, for tests of what a real server does only by bad luck. */
import { createFaultCounter } from "../../../../host/lib/fault.ts";
import { openLog } from "../../../../host/lib/log.ts";
import { equalIp, formatIp, type Ip } from "../../../../host/net/ip.ts";
import type { Journal } from "../../../../host/registry/journal.ts";
import type { KubernetesRegistry } from "../../../../host/registry/kubernetes/kubernetes-registry.ts";
import { openRegistryOn } from "../../../../host/registry/kubernetes/kubernetes-registry.ts";
import type { Allocation } from "../../../../host/registry/registry.ts";
import { decodeIpAllocation } from "../../../../host/resources/ip-allocation.ts";
import { type Gate, MemoryApiServer, type StoredObject } from "../../../fakes/memory-api-server.ts";
import { openDisk, openMemoryJournal } from "../../../fakes/memory-journal.ts";
import { COOLDOWN_MS } from "../registry-suite.ts";

export interface MemoryNodeOptions {
  readonly poolSize?: number;
  readonly server?: MemoryApiServer;
  readonly name?: string;
}

export class MemoryNode {
  readonly server: MemoryApiServer;
  readonly name: string;
  readonly poolSize: number;
  readonly disk = openDisk();
  readonly freed: string[] = [];
  readonly lost: Allocation[] = [];
  readonly calls: string[] = [];
  /** Stands before each call. */
  gate: Gate = async (_call, commit) => commit();
  /** Stands before each operation of the journal that has to wait. */
  journalGate: (method: string) => Promise<void> | undefined = () => undefined;
  clockMs = 1_000_000;
  isDead = { now: false };
  #registry: KubernetesRegistry | undefined;

  constructor({ poolSize = 1_000, server = new MemoryApiServer(), name = "n1" }: MemoryNodeOptions = {}) {
    this.server = server;
    this.name = name;
    this.poolSize = poolSize;
  }

  get registry(): KubernetesRegistry {
    if (this.#registry === undefined) throw new Error("No registry is open");
    return this.#registry;
  }

  /** An earlier one ends as after `kill -9`. */
  async open(bootId = "boot-1"): Promise<this> {
    this.isDead.now = true;
    const isDead = { now: false };
    this.isDead = isDead;
    const nowMs = (): number => this.clockMs;
    const cooldowns = { defaultMs: COOLDOWN_MS, byPool: new Map<string, number>() };
    const onFreed = (_space: string, ip: Ip): void => void this.freed.push(formatIp(ip));
    const api = this.server.client((call, commit) => {
      if (isDead.now) return new Promise(() => {});
      this.calls.push(call.method);
      return this.gate(call, commit);
    });
    const journal = openMemoryJournal(this.disk, { bootId, nowMs, cooldowns, onFreed, isDead: () => isDead.now });
    this.#registry = await openRegistryOn(this.#gated(journal), {
      ...{ directory: "", bootId, lockWaitMs: 0, faultCounter: createFaultCounter(), cooldowns, nowMs, onFreed, api },
      ...{ node: this.name, random: () => 0.5, poolSize: () => this.poolSize, log: openLog("berth", "silent") },
      ...{ isLivePod: async () => false, isPodGone: async () => true },
      onLost: (row) => this.lost.push(row),
      isLost: ({ ip }) => this.lost.some((each) => equalIp(each.ip, ip)),
      onDeath: (error) => {
        throw error;
      },
    });
    return this;
  }

  #gated(journal: Journal): Journal {
    return new Proxy(journal, {
      get: (target, name) => {
        const found: unknown = Reflect.get(target, name);
        if (typeof found !== "function") return found;
        return (...args: unknown[]): unknown => {
          const run = (): unknown => Reflect.apply(found, target, args);
          const wait = this.journalGate(String(name));
          return wait === undefined ? run() : wait.then(run);
        };
      },
    });
  }

  /** What the watch tells of an object, now or late. */
  observe(object: StoredObject | undefined): void {
    if (object === undefined) throw new Error("There is no such object");
    const complete = { ...object, apiVersion: "ipam.vendor.io/v1", kind: "IPAllocation" };
    this.registry.observe({ kind: "object", object: decodeIpAllocation(complete, "the test") });
  }

  async pass(milliseconds: number): Promise<void> {
    await this.registry.idle();
    this.clockMs += milliseconds;
    await this.registry.expire();
    await this.registry.idle();
  }

  /** `10.0.0.1 Bound n1` */
  lines(): string[] {
    return [...this.server.objects.values()].map(({ metadata, spec }) => `${metadata.name} ${spec.state} ${spec.node}`);
  }
}
