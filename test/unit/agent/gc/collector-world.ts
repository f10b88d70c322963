/** A collector over a real journal, and an API server of pods that can be out of reach. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "vitest";
import { Collector, type CollectorSettings } from "../../../../host/agent/gc/collector.ts";
import {
  ApiError,
  ApiUnavailable,
  type KubeApi,
  type KubeCall,
  type KubeObject,
} from "../../../../host/kubernetes/kube-api.ts";
import { createFaultCounter } from "../../../../host/lib/fault.ts";
import { type Ip, parseIp } from "../../../../host/net/ip.ts";
import type { Journal } from "../../../../host/registry/journal.ts";
import type { Allocation, Claim } from "../../../../host/registry/registry.ts";
import { openSqliteJournal } from "../../../../host/registry/sqlite/registry.ts";
import { decodePod, type Pod } from "../../../../host/resources/pod.ts";
import { recordLog } from "../recorded-log.ts";

export const NODE = "n1";
export const GRACE_MS = 60_000;
export const COOLDOWN_MS = 30_000;
export const INTERVAL_MS = 300_000;

export interface PodShape {
  readonly uid?: string;
  readonly phase?: string;
  readonly hash?: string;
  readonly deleting?: boolean;
}

export function ipOf(text: string): Ip {
  const ip = parseIp(text);
  if (ip === undefined) throw new Error(`${text} is no address`);
  return ip;
}

function podObject(name: string, { uid = `uid-${name}`, phase = "Running", hash, deleting }: PodShape): KubeObject {
  return {
    metadata: {
      ...{ namespace: "shop", name, uid },
      ...(hash === undefined ? {} : { annotations: { "kubernetes.io/config.hash": hash } }),
      ...(deleting ? { deletionTimestamp: "2026-11-20T00:00:00Z" } : {}),
    },
    spec: { nodeName: NODE },
    status: { phase },
    kind: "Pod",
  };
}

/** Answers GET and LIST of pods as the client does. */
class PodServer implements KubeApi {
  readonly pods = new Map<string, KubeObject>();
  readonly calls: string[] = [];
  trouble: Error | undefined;
  /** Called before each answer. */
  beforeAnswer: () => void = () => {};

  async call({ method, path, query }: KubeCall): Promise<KubeObject> {
    this.calls.push(`${method} ${path}${query?.continue === undefined ? "" : " continued"}`);
    if (this.trouble !== undefined) throw this.trouble;
    this.beforeAnswer();
    if (path === "/api/v1/pods") return this.#page(Number(query?.limit), Number(query?.continue ?? 0));
    const found = this.pods.get(path.slice(path.lastIndexOf("/") + 1));
    if (found !== undefined) return found;
    throw new ApiError({ status: 404, reason: "NotFound", operation: `${method} ${path}`, message: "not found" });
  }

  async watch(): Promise<void> {}
  async close(): Promise<void> {}

  #page(limit: number, start: number): KubeObject {
    const items = [...this.pods.values()].slice(start, start + limit);
    const next = start + limit < this.pods.size ? { continue: String(start + limit) } : {};
    return { metadata: { resourceVersion: "1", ...next }, items };
  }
}

export class CollectorWorld {
  readonly api = new PodServer();
  readonly cache = new Map<string, Pod>();
  readonly #directory = mkdtempSync(join(tmpdir(), "berth-collector-"));
  readonly #recorded = recordLog();
  readonly lines = this.#recorded.lines;
  #clockMs = 1_000_000;
  #journal: Journal | undefined;
  #collector: Collector | undefined;
  isSynced = true;
  /** Whether the orphan's NIC has lost the address. */
  fence: (row: Allocation) => Promise<boolean> = async () => true;
  settings: CollectorSettings = {
    ...{ intervalMs: INTERVAL_MS, graceMs: GRACE_MS },
    cooldowns: { defaultMs: COOLDOWN_MS, byPool: new Map([["slow", 600_000]]) },
  };

  static async open(): Promise<CollectorWorld> {
    const world = new CollectorWorld();
    world.#journal = await openSqliteJournal({
      ...{ directory: world.#directory, bootId: "boot-1", lockWaitMs: 0, faultCounter: createFaultCounter() },
      ...{ nowMs: world.nowMs, cooldowns: world.settings.cooldowns, onFreed: () => {} },
      onDeath: (error) => world.lines.push(String(error)),
    });
    world.#collector = new Collector(
      {
        api: world.api,
        node: NODE,
        registry: world.#journal,
        log: world.#recorded.log,
        pods: { isSynced: () => world.isSynced, find: (key) => world.cache.get(key) },
        fence: (row) => world.fence(row),
      },
      { settings: () => world.settings, nowMs: world.nowMs, random: () => 0.5 },
    );
    return world;
  }

  get journal(): Journal {
    if (this.#journal === undefined) throw new Error("Not open");
    return this.#journal;
  }
  get collector(): Collector {
    if (this.#collector === undefined) throw new Error("Not open");
    return this.#collector;
  }

  nowMs = (): number => this.#clockMs;
  advance(milliseconds: number): void {
    this.#clockMs += milliseconds;
  }

  /** In the API server and in the watch. */
  addPod(name: string, shape: PodShape = {}): Pod {
    const object = podObject(name, shape);
    const pod = decodePod(object, name);
    this.api.pods.set(name, object);
    this.cache.set(`shop/${name}`, pod);
    return pod;
  }

  removePod(name: string): Pod {
    const pod = this.cache.get(`shop/${name}`);
    if (pod === undefined) throw new Error(`There was no pod ${name}`);
    this.api.pods.delete(name);
    this.cache.delete(`shop/${name}`);
    return pod;
  }

  /** The address is Bound to the pod, attached unless `containerId` is "". */
  async bind(address: string, pod: string, changes: Partial<Claim> & { pool?: string } = {}): Promise<Allocation> {
    const { pool = "blue", ...rest } = changes;
    const ifName = rest.ifName ?? "eth0";
    const proposals = [{ space: "", ip: ipOf(address), prefixLength: 24, pool, ifName }];
    const claim = { owner: `uid-${pod}`, namespace: "shop", pod, ifName, containerId: `c-${pod}`, network: "lab" };
    const outcome = await this.journal.claim({ ...claim, proposals, ...rest });
    const [first] = outcome.kind === "bound" ? outcome.held : [];
    if (first === undefined) throw new Error(`${address} could not be bound: ${outcome.kind}`);
    return first;
  }

  /** Two sweeps that are far enough apart. */
  async sweepTwice(): Promise<void> {
    await this.collector.sweep();
    this.advance(GRACE_MS);
    await this.collector.sweep();
  }

  async stateOf(address: string): Promise<string> {
    return (await this.journal.findAddress("", ipOf(address)))?.state ?? "free";
  }

  async close(): Promise<void> {
    await this.#collector?.close();
    await this.#journal?.close();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

export const UNREACHABLE = new ApiUnavailable("GET /api/v1/pods", "No connection");

/** A test with a world of its own: `it("…", async ({ world }) => …)`. */
export const it = test.extend<{ world: CollectorWorld }>({
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads from the pattern which other fixtures are needed
  world: async ({}, use) => {
    const world = await CollectorWorld.open();
    await use(world);
    await world.close();
  },
});
