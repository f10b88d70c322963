/** A registry that plays a cluster for the claim's loop: others have addresses of which the pool cache has not heard, and keep some. */

import { AddDeadline } from "../../../../host/agent/add-deadline.ts";
import { allocateAddresses } from "../../../../host/agent/ipam/allocate.ts";
import type { ClusterIpam } from "../../../../host/agent/ipam/cluster-ipam.ts";
import type { AllocateDeps } from "../../../../host/agent/ipam/sources/source.ts";
import { PoolCache } from "../../../../host/ipam/pool-cache.ts";
import { selectPools } from "../../../../host/ipam/selection.ts";
import { formatIp, type Ip } from "../../../../host/net/ip.ts";
import {
  type Allocation,
  type Claim,
  type ClaimOutcome,
  type Registry,
  RegistryError,
} from "../../../../host/registry/registry.ts";
import type { IpPool } from "../../../../host/resources/ip-pool.ts";
import type { PoolUsage } from "../../../../host/resources/usage/ip-pool-usage.ts";
import { clusterIpam } from "../../../world/cluster-ipam.ts";
import { openCore, poolsByName, subject } from "../../../world/subjects.ts";
import { ip } from "../../../world/values.ts";

export const WORKLOAD = { kind: "StatefulSet", namespace: "shop", name: "db", uid: "set", member: "db-0" };

/** The API server: the owners by address. Only what a claim needs is played. */
class Cluster {
  readonly objects = new Map<string, Allocation>();
  readonly released: string[] = [];
  surveys = 0;
  surveysFail = false;
  keptQuestions = 0;
  /** What the usage object of any pool says, and how often it was asked for. */
  usage: PoolUsage | undefined;
  glimpses = 0;
  proposed: string[] = [];
  /** Whether a survey tells anything. */
  tells = true;
  #version = 0;

  put(address: string, rest: Partial<Allocation> = {}): Allocation {
    const object: Allocation = {
      ...{ space: "", ip: ip(address), prefixLength: 24, pool: "blue", state: "Bound", owner: "other", ifName: "eth0" },
      ...{ containerId: "-", network: "", namespace: "", pod: "other", sinceMs: 0, version: -++this.#version - 1 },
      ...rest,
    };
    this.objects.set(address, object);
    return object;
  }

  claim(claim: Claim): ClaimOutcome {
    const found = claim.proposals.map((proposal) => ({ proposal, object: this.objects.get(formatIp(proposal.ip)) }));
    this.proposed.push(...claim.proposals.map((proposal) => formatIp(proposal.ip)));
    const own = [...this.objects.values()].filter(
      ({ owner, ifName }) => owner === claim.owner && ifName === claim.ifName,
    );
    if (own.length > 0) return { kind: "bound", held: own, created: [], previous: [] };
    const by = found.flatMap(({ object, proposal }) =>
      object === undefined || isFor(object, proposal.replaces) ? [] : [object],
    );
    if (by.length > 0) return { kind: "taken", by };
    const { owner, ifName, containerId, workload } = claim;
    const rows = found.map(({ proposal }) =>
      this.put(formatIp(proposal.ip), { owner, ifName, containerId, workload, version: ++this.#version }),
    );
    const fresh = rows.filter((_, index) => found[index]?.object === undefined);
    return { kind: "bound", held: rows, created: rows, previous: [], fresh };
  }

  get used(): Ip[] {
    return [...this.objects.values()].map((object) => object.ip);
  }
}

/** An address that is Bound in this node's journal has no other owner. */
function isFor({ version, state }: Allocation, replaces: number | undefined): boolean {
  return version === replaces && (version < 0 || state === "Cooling");
}

export function packed(addresses: readonly Ip[]): Uint8Array {
  return Uint8Array.from(
    addresses.flatMap(({ value }) => [24n, 16n, 8n, 0n].map((shift) => Number((value >> shift) & 255n))),
  );
}

export function worldOf(pools: readonly IpPool[]) {
  const cluster = new Cluster();
  const poolCache = new PoolCache(openCore());
  poolCache.update(pools, []);
  let clockMs = 0;
  const unplayed = (name: string) => () => Promise.reject(new Error(`${name} is not played here`));
  const registry = {
    claim: async (claim) => cluster.claim(claim),
    undo: async (created) => {
      for (const { space, ip: address } of created) {
        cluster.objects.delete(formatIp(address));
        poolCache.unmark(space, address);
      }
    },
    listUsed: async () => {
      cluster.surveys++;
      if (cluster.surveysFail) throw new RegistryError("The API server does not tell");
      return cluster.tells ? packed(cluster.used) : undefined;
    },
    readUsageSummary: async () => {
      cluster.glimpses++;
      return cluster.usage;
    },
    // Of this node itself.
    readUsed: async () =>
      packed([...cluster.objects.values()].filter(({ version }) => version > 0).map((each) => each.ip)),
    findRetained: async (workload) => {
      cluster.keptQuestions++;
      return [...cluster.objects.values()].filter((each) => each.workload?.member === workload.member);
    },
    findOwner: async () => [],
    findCooling: async () => [],
    findQuarantined: async () => [],
    expire: async () => 0,
    findAddress: unplayed("findAddress"),
  } satisfies Partial<Registry>;
  const deps: AllocateDeps & { readonly cluster: ClusterIpam } = {
    registry: registry as unknown as Registry,
    poolCache,
    cluster: clusterIpam({
      releaseRetained: async (kept) => void cluster.released.push(...kept.map((each) => formatIp(each.ip))),
    }),
  };
  const clock = {
    nowMs: () => clockMs,
    sleep: async (milliseconds: number) => {
      clockMs += milliseconds;
    },
  };
  const claim = async (options: { workload?: typeof WORKLOAD; seedText?: string; requested?: string } = {}) => {
    const names = pools.map(({ name }) => name);
    const asking = subject({
      pod: { namespace: "shop", name: "db-0", labels: {}, annotations: { ippool: { ipv4: names } } },
    });
    const claimant = {
      ...{ owner: "uid", namespace: "shop", pod: "db-0", ifName: "eth0", containerId: "c", network: "lab" },
      workload: options.workload,
    };
    const requested =
      options.requested === undefined ? [] : [{ ip: ip(options.requested), source: "CNI_ARGS IP" as const }];
    const { held } = await allocateAddresses(deps, {
      ...{ nics: selectPools(asking, poolsByName(...pools)).nics, requested, claimant },
      ...{ seedText: options.seedText ?? "seed", deadline: new AddDeadline(clock, new AbortController().signal) },
    });
    return held.map((each) => formatIp(each.ip));
  };
  return { cluster, poolCache, deps, claim };
}

export const range = (first: number, last: number) =>
  Array.from({ length: last - first + 1 }, (_, index) => `10.6.0.${first + index}`);
