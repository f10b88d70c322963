/**
 * The registry of a node in this process, on a real API server and with the rights of the node's agent, and nothing
 * else of the agent (agent-node.ts has all of it). Its clock is the test's to advance.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createFaultCounter } from "../../../host/lib/fault.ts";
import { openLog } from "../../../host/lib/log.ts";
import { formatIp } from "../../../host/net/ip.ts";
import type { KubernetesRegistry } from "../../../host/registry/kubernetes/kubernetes-registry.ts";
import { openKubernetesRegistry } from "../../../host/registry/kubernetes/kubernetes-registry.ts";
import type { ControlPlane } from "../control-plane.ts";
import { connectAgentClient } from "./in-process.ts";
import { WatchedApi } from "./watched-api.ts";

/** Cooldown of a released address in these registries. */
const COOLDOWN_MS = 30_000;

export interface RegistryNodeOptions {
  /** Addresses of each pool; default: 1,000. */
  readonly poolSize?: number;
}

export class RegistryNode {
  readonly name: string;
  readonly api: WatchedApi;
  readonly freed: string[] = [];
  clockMs = 1_000_000;
  readonly #options: RegistryNodeOptions;
  readonly #directory = mkdtempSync(join(tmpdir(), "berth-node-"));
  #registry: KubernetesRegistry | undefined;

  static async open(plane: ControlPlane, name: string, options: RegistryNodeOptions = {}): Promise<RegistryNode> {
    const node = new RegistryNode(name, new WatchedApi(await connectAgentClient(plane, name)), options);
    await node.start();
    return node;
  }

  private constructor(name: string, api: WatchedApi, options: RegistryNodeOptions) {
    this.name = name;
    this.api = api;
    this.#options = options;
  }

  readonly nowMs = (): number => this.clockMs;

  get registry(): KubernetesRegistry {
    if (this.#registry === undefined) throw new Error("No registry is open");
    return this.#registry;
  }

  async start(): Promise<void> {
    const { api, name: node, nowMs } = this;
    this.#registry = await openKubernetesRegistry({
      ...{ api, random: () => 0.5, log: openLog("berth", "silent") },
      journal: {
        ...{ nowMs, bootId: "boot-1", directory: this.#directory, lockWaitMs: 5_000 },
        ...{ faultCounter: createFaultCounter(), cooldowns: { defaultMs: COOLDOWN_MS, byPool: new Map() } },
        onDeath: (error) => {
          throw error;
        },
        onFreed: (_space, ip) => this.freed.push(formatIp(ip)),
      },
      live: { node, isLivePod: async () => false },
      lost: { onLost: () => {} },
      pools: {
        counts: () => {
          const total = BigInt(this.#options.poolSize ?? 1_000);
          return { total, free: total };
        },
      },
    });
  }

  async stop(): Promise<void> {
    await this.#registry?.close();
    this.#registry = undefined;
  }

  async close(): Promise<void> {
    await this.stop();
    await this.api.close();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
