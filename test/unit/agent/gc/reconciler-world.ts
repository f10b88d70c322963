/** A reconciler over a real journal, and an API server of allocations beside a watch that may be behind it. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "vitest";
import { Reconciler } from "../../../../host/agent/gc/reconciler.ts";
import { ApiError, type KubeApi, type KubeCall, type KubeObject } from "../../../../host/kubernetes/kube-api.ts";
import { createFaultCounter } from "../../../../host/lib/fault.ts";
import { formatIp } from "../../../../host/net/ip.ts";
import type { Journal } from "../../../../host/registry/journal.ts";
import { openSqliteJournal } from "../../../../host/registry/sqlite/registry.ts";
import {
  allocationName,
  encodeIpAllocation,
  type IpAllocation,
  type IpAllocationSpec,
} from "../../../../host/resources/ip-allocation.ts";
import { recordLog } from "../recorded-log.ts";
import { ipOf } from "./collector-world.ts";

export const NODE = "n1";
export const GRACE_MS = 60_000;

export class ReconcilerWorld implements KubeApi {
  /** What the API server has, and what the watch has. */
  readonly server = new Map<string, IpAllocation>();
  readonly watched = new Map<string, IpAllocation>();
  readonly calls: string[] = [];
  readonly republished: string[] = [];
  readonly gonePods = new Set<string>();
  readonly #directory: string;
  readonly #recorded = recordLog();
  readonly lines = this.#recorded.lines;
  readonly journal: Journal;
  readonly reconciler: Reconciler;
  trouble: Error | undefined;
  isSynced = true;
  /** How often the watch has listed all. */
  lists = 1;
  clockMs = 1_000_000;

  static async open(): Promise<ReconcilerWorld> {
    const directory = mkdtempSync(join(tmpdir(), "berth-reconciler-"));
    const clock = { nowMs: () => 0 };
    const journal = await openSqliteJournal({
      ...{ directory, bootId: "boot-1", lockWaitMs: 0, faultCounter: createFaultCounter(), onFreed: () => {} },
      ...{ nowMs: () => clock.nowMs(), cooldowns: { defaultMs: 30_000, byPool: new Map() }, onDeath: () => {} },
    });
    const world = new ReconcilerWorld(journal, directory);
    clock.nowMs = () => world.clockMs;
    return world;
  }

  private constructor(journal: Journal, directory: string) {
    this.#directory = directory;
    this.journal = journal;
    const republish = async ({ ip }: { ip: IpAllocation["spec"]["ip"] }) => void this.republished.push(formatIp(ip));
    const world = this;
    this.reconciler = new Reconciler(
      {
        api: this,
        node: NODE,
        log: this.#recorded.log,
        registry: {
          list: (after, limit) => journal.list(after, limit),
          findAddress: (space, ip) => journal.findAddress(space, ip),
          findOwner: (owner) => journal.findOwner(owner),
          adopt: (adoption) => journal.adopt(adoption),
          republish,
        },
        objects: {
          items: this.watched,
          get isSynced() {
            return world.isSynced;
          },
          get stats() {
            return { lists: world.lists, bytes: 0, watches: 0, events: 0 };
          },
        },
        collector: { isPodGone: async ({ pod }) => this.gonePods.has(pod) },
        lost: { prune: async () => {} },
      },
      { graceMs: () => GRACE_MS, nowMs: () => this.clockMs, random: () => 0.5 },
    );
  }

  async call({ method, path }: KubeCall): Promise<KubeObject> {
    this.calls.push(`${method} ${path}`);
    if (this.trouble !== undefined) throw this.trouble;
    const found = this.server.get(path.slice(path.lastIndexOf("/") + 1));
    if (found === undefined) throw new ApiError({ status: 404, reason: "NotFound", operation: path, message: "gone" });
    const { name, uid, resourceVersion } = found;
    return { ...encodeIpAllocation(found.spec, { name, labels: {}, uid, resourceVersion }) };
  }
  async watch(): Promise<void> {}
  async close(): Promise<void> {}

  /** An object of pod `pod` on this node, in the API server and in the watch. */
  addObject(address: string, pod: string, changes: Partial<IpAllocationSpec> = {}): IpAllocation {
    const ip = ipOf(address);
    const holder = { namespace: "shop", pod, podUid: `uid-${pod}`, ifName: "eth0", node: NODE };
    const spec: IpAllocationSpec = {
      ...{ ip, addressSpace: "", prefixLength: 24, pool: "blue", state: "Bound", node: NODE, holders: [holder] },
      ...changes,
    };
    const name = allocationName(ip, "");
    const version = String(this.server.size + 1);
    const object = {
      kind: "IPAllocation" as const,
      name,
      uid: `o-${name}`,
      resourceVersion: version,
      deleting: false,
      spec,
    };
    this.server.set(name, object);
    this.watched.set(name, object);
    return object;
  }

  /** A row of the journal, as an ADD wrote it. */
  async bind(address: string, pod: string): Promise<void> {
    const proposals = [{ space: "", ip: ipOf(address), prefixLength: 24, pool: "blue", ifName: "eth0" }];
    const who = {
      owner: `uid-${pod}`,
      namespace: "shop",
      pod,
      ifName: "eth0",
      containerId: `c-${pod}`,
      network: "lab",
    };
    const outcome = await this.journal.claim({ ...who, proposals });
    if (outcome.kind !== "bound") throw new Error(outcome.kind);
    await this.journal.confirm(outcome.created);
  }

  async rowOf(address: string): Promise<string> {
    const row = await this.journal.findAddress("", ipOf(address));
    return row === undefined ? "none" : `${row.state} ${row.owner} ${row.containerId}`.trimEnd();
  }

  async dispose(): Promise<void> {
    await this.reconciler.close();
    await this.journal.close();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

/** A test with a world of its own: `it("…", async ({ world }) => …)`. */
export const it = test.extend<{ world: ReconcilerWorld }>({
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads from the pattern which other fixtures are needed
  world: async ({}, use) => {
    const world = await ReconcilerWorld.open();
    await use(world);
    await world.dispose();
  },
});
