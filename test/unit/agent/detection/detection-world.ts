/** A claiming agent with real inventory, registry and search, and a segment that is a table: who answers for which address. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AddDeadline } from "../../../../host/agent/add-deadline.ts";
import { QuarantineProber, type QuarantineProberDeps } from "../../../../host/agent/detection/quarantine-prober.ts";
import { VerifiedAttachments } from "../../../../host/agent/detection/verified-attachments.ts";
import type { NicLinks } from "../../../../host/agent/detection/verify-addresses.ts";
import type { Claimed } from "../../../../host/agent/ipam/allocate.ts";
import { type ClaimVerifiedDeps, claimVerified } from "../../../../host/agent/ipam/claim-verified.ts";
import { cooldownsOf, PoolInventory } from "../../../../host/agent/ipam/pool-inventory.ts";
import type { AddressDemand } from "../../../../host/agent/ipam/sources/source.ts";
import { DEFAULT_COORDINATOR_CONF } from "../../../../host/config/coordinator-settings.ts";
import type { ConflictProbe } from "../../../../host/coordinator/detect-conflict.ts";
import { DetectionError } from "../../../../host/coordinator/detection-error.ts";
import { PoolCache } from "../../../../host/ipam/pool-cache.ts";
import { createFaultCounter } from "../../../../host/lib/fault.ts";
import { formatIp, type Ip } from "../../../../host/net/ip.ts";
import type { Mac } from "../../../../host/net/mac.ts";
import type { Allocation, Registry } from "../../../../host/registry/registry.ts";
import { openSqliteRegistry } from "../../../../host/registry/sqlite/registry.ts";
import type { IpPool } from "../../../../host/resources/ip-pool.ts";
import { assembleSnapshot } from "../../../../host/resources/snapshot.ts";
import { ip, openCore } from "../../ipam/subjects.ts";
import { mac, RIVAL } from "../../registry/registry-quarantine-suite.ts";
import { clusterIpam } from "../cluster-ipam.ts";
import { recordLog } from "../recorded-log.ts";

export const OWN = mac("0a:00:00:00:00:01");
export const ANY = "any address";

export interface DetectOptions {
  readonly detect?: boolean;
  readonly mode?: "auto" | "disable";
  readonly onConflict?: "fail" | "next";
}

export interface AddOptions {
  readonly requested?: string;
  readonly containerId?: string;
  readonly netns?: string;
  readonly signal?: AbortSignal;
}

export class DetectionWorld {
  readonly directory = mkdtempSync(join(tmpdir(), "berth-detect-"));
  readonly log = recordLog();
  /** By address as text, or ANY. */
  readonly answering = new Map<string, Mac>();
  /** Addresses that a twin has, too, as a machine migrates. */
  readonly shared = new Set<string>();
  /** Addresses of each question, the link's name in front. */
  readonly questions: string[][] = [];
  readonly freed: string[] = [];
  readonly withdrawn: string[] = [];
  /** What is on the pod's NIC; undefined: there is no NIC. */
  onNic: Ip[] | undefined = [];
  /** What ends each question instead of an answer. */
  broken: Error | undefined;
  /** Called while a question is under way. */
  meanwhile: () => Promise<void> | void = () => {};
  /** The node's links. */
  nodeLinks = ["uplink"];
  options: DetectOptions = { detect: true };
  clockMs = 10_000_000;
  readonly verified = new VerifiedAttachments();
  registry!: Registry;
  prober!: QuarantineProber;
  poolCache!: PoolCache;
  #inventory!: PoolInventory;
  #deps!: ClaimVerifiedDeps;
  #quarantineDeps!: QuarantineProberDeps;
  readonly #pools: readonly IpPool[];

  constructor(pools: readonly IpPool[]) {
    this.#pools = pools;
  }

  async open(): Promise<void> {
    const snapshot = assembleSnapshot([{ source: "test", resources: [...this.#pools] }]);
    this.poolCache = new PoolCache(openCore());
    const nowMs = (): number => this.clockMs;
    const registry = await openSqliteRegistry({
      ...{ directory: this.directory, bootId: "b", nowMs, lockWaitMs: 0 },
      ...{ cooldowns: cooldownsOf(snapshot), onDeath: () => {}, faultCounter: createFaultCounter() },
      onFreed: (space, address) => {
        this.freed.push(formatIp(address));
        this.poolCache.unmark(space, address);
      },
    });
    this.registry = registry;
    this.#inventory = new PoolInventory(this.poolCache, registry, snapshot);
    this.#inventory.follow(snapshot);
    await this.#inventory.loaded();
    const engine = { detect: this.#detect, random: () => 0.5, log: this.log.log };
    this.#quarantineDeps = {
      ...{ ...engine, registry, nowMs, pools: () => snapshot.pools },
      findNodeLink: (name) => (this.nodeLinks.includes(name) ? this.#linkOf("", name, OWN) : undefined),
    };
    this.prober = new QuarantineProber(this.#quarantineDeps);
    this.#deps = {
      registry,
      poolCache: this.poolCache,
      networks: { settingsFor: () => this.#settings, isCoordinated: () => false },
      detection: {
        ...engine,
        prober: this.prober,
        verified: this.verified,
        links: this.#links,
        withQuietLink: ({ netnsPath, ifName }, work) => work(this.#linkOf(netnsPath, ifName, OWN)),
      },
    };
  }

  async close(): Promise<void> {
    await this.prober.close();
    await this.registry.close();
    rmSync(this.directory, { recursive: true });
  }

  /** ADD of a pod whose NIC may have addresses of these pools, one list for each family. */
  add(pod: string, pools: readonly (readonly string[])[], options: AddOptions = {}): Promise<Claimed> {
    const {
      requested,
      containerId = `c-${pod}`,
      netns = `/run/${pod}`,
      signal = new AbortController().signal,
    } = options;
    const families = pools.map((names) => {
      const found = this.#pools.filter(({ name }) => names.includes(name));
      return { family: found[0]?.spec.family ?? 4, candidates: found.map((each) => ({ name: each.name, pool: each })) };
    });
    const demand: AddressDemand = {
      nics: [{ ifName: "eth0", rule: "the test", cleanGateway: false, families }],
      requested: requested === undefined ? [] : [{ ip: ip(requested), source: "CNI_ARGS IP" }],
      claimant: { owner: pod, namespace: "shop", pod, ifName: "eth0", containerId, network: "net", netns },
      seedText: pod,
      deadline: new AddDeadline(this.#clock, signal),
    };
    return claimVerified({ ...this.#deps, cluster: this.#cluster }, demand);
  }

  probe(): Promise<void> {
    return this.prober.probeDue();
  }

  async states(): Promise<Record<string, string[]>> {
    const all = await this.registry.list(undefined, 100);
    const grouped = Object.groupBy(all, ({ state }) => state);
    return Object.fromEntries(
      Object.entries(grouped).map(([state, found]) => [state, found.map((each) => formatIp(each.ip))]),
    );
  }

  readonly #clock = {
    nowMs: () => this.clockMs,
    sleep: async (milliseconds: number) => {
      this.clockMs += milliseconds;
    },
  };

  /** Only where addresses are shared: other nodes would be waited for. */
  get #cluster() {
    if (this.shared.size === 0) return undefined;
    return clusterIpam({ isShared: async ({ ip: address }) => this.shared.has(formatIp(address)) });
  }

  get #settings() {
    const { detect = true, mode = "auto", onConflict = "fail" } = this.options;
    const { detectOptions } = DEFAULT_COORDINATOR_CONF;
    return {
      ...DEFAULT_COORDINATOR_CONF,
      ...{ detectIPConflict: detect, mode, detectOptions: { ...detectOptions, onConflict } },
    };
  }

  #linkOf(netnsPath: string, name: string, of: Mac) {
    return { netnsPath, index: 1, name, mac: of };
  }

  readonly #detect = async ({ link, addresses, ownMacs = new Set(), signal }: ConflictProbe) => {
    this.questions.push([link.name, ...addresses.map(formatIp)]);
    await this.meanwhile();
    if (signal.aborted) throw new DetectionError("aborted", link.name, "given up");
    if (this.broken !== undefined) throw this.broken;
    const own = new Set([link.mac, ...ownMacs]);
    for (const address of addresses) {
      const found = this.answering.get(formatIp(address)) ?? this.answering.get(ANY);
      if (found !== undefined && !own.has(found)) return { ip: address, mac: found };
    }
    return undefined;
  };

  readonly #links: NicLinks = {
    observe: () => {
      if (this.onNic === undefined) return undefined;
      const addresses = this.onNic.map((each) => ({ ip: each, length: 24 }));
      return { index: 1, mac: OWN, flags: 0, up: false, addresses };
    },
    withdraw: ({ netns, ip: address }: Allocation) => {
      this.withdrawn.push(`${formatIp(address)} in ${netns}`);
      return undefined;
    },
    findParentName: () => "uplink",
    findAskingLink: (nic) => nic,
  };
}

/** One whose address the rival has, each time. */
export function conflictOn(world: DetectionWorld, address: string, by: Mac = RIVAL): void {
  world.answering.set(address, by);
}

export async function withDetection(
  pools: readonly IpPool[],
  test: (world: DetectionWorld) => Promise<void>,
): Promise<void> {
  const world = new DetectionWorld(pools);
  await world.open();
  try {
    await test(world);
  } finally {
    await world.close();
  }
}
