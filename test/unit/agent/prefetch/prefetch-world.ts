/**
 * A node with a prefetch, for tests: the registry is the real one in a temporary folder, the ADD is the real one. The clock stands still
 * until a test moves it, and the registry can be told to keep claims waiting.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDetection } from "../../../../host/agent/detection/open-detection.ts";
import { addAddresses } from "../../../../host/agent/ipam/add.ts";
import { identifyPod, openManifestIdentifier } from "../../../../host/agent/ipam/pod-identity.ts";
import { cooldownsOf, PoolInventory } from "../../../../host/agent/ipam/pool-inventory.ts";
import { Prefetcher, UNATTACHED_MS } from "../../../../host/agent/prefetch/prefetcher.ts";
import { decodeRequest } from "../../../../host/cni/request.ts";
import { type AnnouncedNic, ownerOfPod } from "../../../../host/ipam/plan-prefetch.ts";
import { PoolCache } from "../../../../host/ipam/pool-cache.ts";
import { createFaultCounter } from "../../../../host/lib/fault.ts";
import { formatIp } from "../../../../host/net/ip.ts";
import type { Claim, ClaimOutcome, Registry } from "../../../../host/registry/registry.ts";
import { openSqliteRegistry } from "../../../../host/registry/sqlite/registry.ts";
import { decodeManifests } from "../../../../host/resources/manifest.ts";
import { decodePod, type Pod } from "../../../../host/resources/pod.ts";
import { assembleSnapshot, type Snapshot } from "../../../../host/resources/snapshot.ts";
import { openCore } from "../../ipam/subjects.ts";
import { clusterIpam } from "../cluster-ipam.ts";
import { nicSettings } from "../nic-settings.ts";
import { recordLog } from "../recorded-log.ts";

export const OWN_IPAM = { type: "berth" } as const;

const CONF = {
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "vendor-conf" },
  data: { "conf.yml": "enableIPv6: false\nallocationCooldown: 30s" },
};

export function ipPool(name: string, subnet: string, spec: object = {}): object {
  return { apiVersion: "ipam.vendor.io/v1", kind: "IPPool", metadata: { name }, spec: { subnet, ...spec } };
}

function snapshotOf(manifests: readonly object[]): Snapshot {
  const resources = [CONF, ...manifests].flatMap((manifest) => decodeManifests(JSON.stringify(manifest), "test"));
  return assembleSnapshot([{ source: "test", resources }]);
}

export interface PodParts {
  readonly uid?: string;
  readonly annotations?: Readonly<Record<string, unknown>>;
  /** `k8s.v1.cni.cncf.io/networks`. */
  readonly networks?: string;
  readonly metadata?: object;
  readonly spec?: object;
  readonly status?: object;
}

/** A pod `shop/<name>` bound to node n1 a moment ago; its UID is `uid-<name>`. */
export function podOf(name: string, parts: PodParts = {}): Pod {
  const { uid = `uid-${name}`, annotations = {}, networks, metadata, spec, status = { phase: "Pending" } } = parts;
  const texts = Object.entries(annotations).map(([key, value]) => [`ipam.vendor.io/${key}`, JSON.stringify(value)]);
  const announced = networks === undefined ? {} : { "k8s.v1.cni.cncf.io/networks": networks };
  const named = {
    namespace: "shop",
    name,
    uid,
    annotations: { ...Object.fromEntries(texts), ...announced },
    ...metadata,
  };
  return decodePod({ apiVersion: "v1", kind: "Pod", metadata: named, spec: { nodeName: "n1", ...spec }, status }, name);
}

/** A NIC of Berth's, unless `ipamConf` says otherwise. */
export function nic(ifName: string, parts: Partial<AnnouncedNic> = {}): AnnouncedNic {
  return { ifName, network: "lab", ipamConf: OWN_IPAM, isAsking: false, ...parts };
}

/** The registry behind a door: a claim of a pod in `closed` waits until it is let through, or its caller gives up. */
class Door {
  readonly claims: Claim[] = [];
  readonly closed = new Set<string>();
  /** Claims of these pods fail. */
  readonly broken = new Set<string>();
  /** Nothing is undone. */
  isFull = false;
  /** Who waits does not hear that its caller gives up. */
  isDeaf = false;
  underWay = 0;
  mostAtOnce = 0;
  #opened = Promise.withResolvers<void>();

  stand(registry: Registry): Registry {
    const claim = async (claim: Claim, signal?: AbortSignal): Promise<ClaimOutcome> => {
      this.claims.push(claim);
      this.mostAtOnce = Math.max(this.mostAtOnce, ++this.underWay);
      try {
        if (this.broken.has(claim.pod)) throw new Error("the API server does not answer");
        while (this.closed.has(claim.pod)) await orAborted(this.#opened.promise, this.isDeaf ? undefined : signal);
        return await registry.claim(claim, signal);
      } finally {
        this.underWay--;
      }
    };
    return new Proxy(registry, {
      get: (target, key) => {
        if (key === "claim") return claim;
        if (key === "undo" && this.isFull) return () => Promise.reject(new Error("the disk is full"));
        const value: unknown = Reflect.get(target, key, target);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  }

  open(): void {
    this.closed.clear();
    this.#opened.resolve();
    this.#opened = Promise.withResolvers();
  }
}

async function orAborted(work: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  signal?.addEventListener("abort", () => aborted.reject(signal.reason));
  await Promise.race([work, aborted.promise]);
}

/** Sleepers wake when the test moves the clock. */
class Clock {
  ms = 1_000_000;
  readonly sleepers = new Set<{ dueMs: number; wake: () => void }>();

  readonly sleep = (milliseconds: number, signal: AbortSignal): Promise<void> =>
    new Promise((resolve, reject) => {
      signal.throwIfAborted();
      const sleeper = { dueMs: this.ms + milliseconds, wake: resolve };
      this.sleepers.add(sleeper);
      signal.addEventListener("abort", () => {
        this.sleepers.delete(sleeper);
        reject(signal.reason);
      });
    });

  advance(milliseconds: number): void {
    this.ms += milliseconds;
    for (const sleeper of [...this.sleepers].filter(({ dueMs }) => dueMs <= this.ms)) {
      this.sleepers.delete(sleeper);
      sleeper.wake();
    }
  }
}

export type PrefetchWorld = Awaited<ReturnType<typeof openWorld>>;

interface WorldOptions {
  readonly directory: string;
  readonly manifests: readonly object[];
  /** What the definitions say of a pod's NICs. */
  readonly nics: (pod: Pod) => readonly AnnouncedNic[];
  readonly mayBegin?: Promise<unknown>;
}

async function openWorld({ directory, manifests, nics, mayBegin = Promise.resolve() }: WorldOptions) {
  let snapshot = snapshotOf(manifests);
  const clock = new Clock();
  const nowMs = (): number => clock.ms;
  const poolCache = new PoolCache(openCore());
  const registry = await openSqliteRegistry({
    ...{ directory, bootId: "b", nowMs, lockWaitMs: 1_000, cooldowns: cooldownsOf(snapshot) },
    ...{ onFreed: (space, ip) => poolCache.unmark(space, ip), onDeath: () => {}, faultCounter: createFaultCounter() },
  });
  const door = new Door();
  const inventory = new PoolInventory(poolCache, door.stand(registry), snapshot);
  inventory.follow(snapshot);
  await inventory.loaded();
  const { log, lines } = recordLog();
  const detection = openDetection({ registry, pools: () => snapshot.pools, nowMs, log });
  const deps = {
    detection,
    networks: nicSettings,
    inventory,
    clock: { nowMs, sleep: clock.sleep },
    log,
    node: { name: "n1", labels: {} },
    identifier: openManifestIdentifier(() => snapshot),
  };
  const identityOf = async (pod: Pod) => ({
    ...identifyPod({ ...pod, uid: ownerOfPod(pod), containerId: "" }, snapshot),
  });
  const prefetcher = new Prefetcher({ ...deps, prober: detection.prober, identityOf }, { nics, ready: mayBegin });
  const add = async (pod: Pod, ifName = "eth0", options: { signal?: AbortSignal; body?: object } = {}) => {
    const args = `K8S_POD_NAMESPACE=shop;K8S_POD_NAME=${pod.name};K8S_POD_UID=${ownerOfPod(pod)}`;
    const headers = {
      ...{ "cni-command": "ADD", "cni-containerid": `c-${pod.name}`, "cni-netns": "/run/netns/x" },
      ...{ "cni-ifname": ifName, "cni-path": "/bin", "cni-args": args },
    };
    const podAnnotations = { runtimeConfig: { "io.kubernetes.cri.pod-annotations": pod.annotations } };
    const conf = {
      cniVersion: "1.0.0",
      name: "lab",
      type: "macvlan",
      ipam: OWN_IPAM,
      ...podAnnotations,
      ...options.body,
    };
    const request = decodeRequest("berth", headers, JSON.stringify(conf));
    if (request.command !== "ADD") throw new Error("no ADD");
    const signal = options.signal ?? new AbortController().signal;
    const { result } = await addAddresses(
      { ...deps, cluster: clusterIpam({ prefetched: prefetcher }) },
      request,
      signal,
    );
    return result.ips.map(({ address }) => formatIp(address.ip)).join(" ");
  };
  return {
    ...{ prefetcher, registry, poolCache, clock, door, log: lines, add },
    /** The pools and the settings are others now. */
    follow: (others: readonly object[]) => {
      snapshot = snapshotOf(others);
      inventory.follow(snapshot);
    },
    /** `eth0 10.6.0.1 Bound c-web-0`, the last word only when a NIC has it. */
    rows: async (): Promise<string[]> => {
      const rows = await registry.list(undefined, 1_000);
      return rows.map(({ pod, ifName, ip, state, containerId }) =>
        `${pod} ${ifName} ${formatIp(ip)} ${state} ${containerId}`.trim(),
      );
    },
    /** What the maintenance does, after so long. */
    later: async (milliseconds: number): Promise<void> => {
      clock.advance(milliseconds);
      await registry.releaseUnattached(clock.ms - UNATTACHED_MS);
      await registry.expire();
    },
    close: async () => {
      door.open();
      await prefetcher.close();
      await registry.close();
    },
  };
}

export interface WithWorld extends Partial<Omit<WorldOptions, "directory">> {
  readonly test: (world: PrefetchWorld, reopen: () => Promise<PrefetchWorld>) => Promise<void>;
}

export const POOLS = [ipPool("blue", "10.6.0.0/24", { default: true }), ipPool("green", "10.7.0.0/24")];

/** `reopen` ends the agent and starts another one on the same state directory. */
export async function withWorld(options: WithWorld): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "berth-prefetch-"));
  const full = { manifests: POOLS, nics: () => [nic("eth0")], ...options, directory };
  let world = await openWorld(full);
  const reopen = async (): Promise<PrefetchWorld> => {
    await world.close();
    world = await openWorld(full);
    return world;
  };
  try {
    await options.test(world, reopen);
  } finally {
    await world.close();
    rmSync(directory, { recursive: true });
  }
}

/** Until it holds; rejects after ten seconds. */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const endMs = performance.now() + 10_000;
  while (!(await holds())) {
    if (performance.now() > endMs) throw new Error(`It never came to this: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}
