/**
 * Members of workloads and plain pods that come and go on several nodes: the product's claim, pool cache, journal and publisher on an API server in
 * memory. Time is the world's; what happens is the test's.
 */

import { AddDeadline } from "../../../host/agent/add-deadline.ts";
import { evictPredecessor, readHolderStatus } from "../../../host/agent/cluster/address-owners.ts";
import { allocateAddresses } from "../../../host/agent/ipam/allocate.ts";
import type { AllocateDeps } from "../../../host/agent/ipam/sources/source.ts";
import { CniError } from "../../../host/cni/error.ts";
import type { RequestedIp } from "../../../host/cni/request.ts";
import type { NicDemand } from "../../../host/ipam/model.ts";
import { PoolCache } from "../../../host/ipam/pool-cache.ts";
import type { KubeObject } from "../../../host/kubernetes/kube-api.ts";
import { createFaultCounter } from "../../../host/lib/fault.ts";
import { openLog } from "../../../host/lib/log.ts";
import { formatIp } from "../../../host/net/ip.ts";
import type { KubernetesRegistry } from "../../../host/registry/kubernetes/kubernetes-registry.ts";
import { openRegistryOn } from "../../../host/registry/kubernetes/kubernetes-registry.ts";
import type { Allocation } from "../../../host/registry/registry.ts";
import { API_PATH } from "../../../host/resources/fields/metadata.ts";
import { memberKey, type Workload } from "../../../host/resources/ip-allocation.ts";
import type { IpPool } from "../../../host/resources/ip-pool.ts";
import { decodePod, type Pod } from "../../../host/resources/pod.ts";
import { MemoryApiServer, type StoredObject } from "../../fakes/memory-api-server.ts";
import { openDisk, openMemoryJournal } from "../../fakes/memory-journal.ts";
import { ip, openCore } from "../../unit/ipam/subjects.ts";

const COOLDOWN_MS = 30_000;

export interface KeptNode {
  readonly name: string;
  readonly registry: KubernetesRegistry;
  readonly deps: AllocateDeps;
}

/** What a pod is one life of. */
export interface Member {
  readonly name: string;
  readonly workload: Workload | undefined;
  /** Of a machine: the UID of its instance, which two pods of it share while it migrates. */
  readonly run?: string | undefined;
}

export interface LivePod {
  readonly member: Member;
  readonly pod: Pod;
  readonly node: KeptNode;
  /** `eth0/4 10.6.0.7` by NIC and family. */
  readonly addresses: ReadonlyMap<string, string>;
}

export interface StartOptions {
  /** All NICs are claimed with the first ADD, as with `ippools`. */
  readonly isAtOnce?: boolean;
  /** For the first NIC, by name. */
  readonly requested?: string;
  /** Default: CNI_ARGS. */
  readonly source?: RequestedIp["source"] | undefined;
}

export class KeptWorld {
  readonly server = new MemoryApiServer();
  readonly #pools: readonly IpPool[];
  readonly #nics: readonly string[];
  readonly #pods = new Map<string, Pod>();
  readonly #nodes: KeptNode[] = [];
  #clockMs = 1_000_000;
  #count = 0;

  /** Each NIC wants an address of each pool. */
  constructor(pools: readonly IpPool[], nics: readonly string[]) {
    this.#pools = pools;
    this.#nics = nics;
  }

  /** An agent that knows nothing of the pools but that they are there. */
  async node(): Promise<KeptNode> {
    const name = `n${++this.#count}`;
    const poolCache = new PoolCache(openCore());
    poolCache.update(this.#pools, []);
    const nowMs = (): number => this.#clockMs;
    const cooldowns = { defaultMs: COOLDOWN_MS, byPool: new Map<string, number>() };
    const onFreed = (space: string, ip: Allocation["ip"]): void => void poolCache.unmark(space, ip);
    const isPodGone = async (row: Allocation): Promise<boolean> =>
      this.#find(row.namespace, row.pod)?.uid !== row.owner;
    const readPod = async (of: { namespace: string; name: string }) => this.#find(of.namespace, of.name);
    const registry = await openRegistryOn(openMemoryJournal(openDisk(), { bootId: "b", nowMs, cooldowns, onFreed }), {
      ...{ directory: "", bootId: "b", lockWaitMs: 0, faultCounter: createFaultCounter(), cooldowns, nowMs, onFreed },
      ...{ api: this.server.client(), node: name, random: () => 0.5, log: openLog("berth", "silent") },
      poolSize: (pool) => Number(poolCache.counts(pool)?.total ?? 0n),
      isLivePod: async (namespace, pod, uid) => this.#find(namespace, pod)?.uid === uid,
      isPodGone,
      readHolderStatus: (row, holder) => readHolderStatus(readPod, row, holder),
      onLost: (row) => {
        throw new Error(`${formatIp(row.ip)} of ${row.pod} is lost`);
      },
      onDeath: (error) => {
        throw error;
      },
    });
    const deps: AllocateDeps = {
      registry,
      poolCache,
      cluster: {
        releaseRetained: (kept) => registry.releaseRetained(kept),
        evictPredecessor: (former, claimant) =>
          evictPredecessor({ registry, isPodGone, endOrphan: (row) => registry.collect(row) }, former, claimant),
        awaitChange: async () => false,
      },
    };
    const node = { name, registry, deps };
    this.#nodes.push(node);
    return node;
  }

  /** Its pod starts there: an ADD for each NIC. Rejects as the first ADD that is refused; then the pod is gone again. */
  async start(
    member: Member,
    node: KeptNode,
    { isAtOnce = false, requested, source = "CNI_ARGS IP" }: StartOptions = {},
  ): Promise<LivePod> {
    const pod = this.#podOf(member);
    this.#pods.set(`${pod.namespace}/${pod.name}`, pod);
    const clock = { nowMs: () => this.#clockMs, sleep: (milliseconds: number) => this.pass(milliseconds) };
    const demands = this.#nics.map((ifName) => this.#demandOf(ifName));
    const addresses = new Map<string, string>();
    try {
      for (const [index, ifName] of this.#nics.entries()) {
        const { held } = await allocateAddresses(node.deps, {
          nics: isAtOnce ? demands : demands.filter((demand) => demand.ifName === ifName),
          requested: requested === undefined || index > 0 ? [] : [{ ip: ip(requested), source }],
          ...{ seedText: member.workload ? memberKey(member.workload) : pod.name },
          coversPod: isAtOnce || this.#nics.length === 1,
          deadline: new AddDeadline(clock, new AbortController().signal),
          claimant: {
            ...{ owner: `${pod.uid}`, namespace: pod.namespace, pod: pod.name, ifName, network: "lan" },
            ...{ containerId: `${pod.uid}-${index}`, workload: member.workload },
          },
        });
        for (const { ip: own } of held) addresses.set(`${ifName}/${own.family}`, formatIp(own));
      }
    } catch (error) {
      await this.end({ member, pod, node, addresses });
      throw error;
    }
    return { member, pod, node, addresses };
  }

  /** As a kubelet ends a pod: DEL, then its object goes; or by force, and the DEL comes later or with the next pod of the name. */
  async end({ pod, node }: LivePod, { byForce = false }: { readonly byForce?: boolean } = {}): Promise<void> {
    const key = `${pod.namespace}/${pod.name}`;
    if (byForce && this.#pods.get(key) === pod) this.#pods.delete(key);
    for (const [index, ifName] of this.#nics.entries())
      if (!byForce) await node.registry.release({ containerId: `${pod.uid}-${index}`, ifName });
    if (!byForce) await node.registry.idle();
    if (this.#pods.get(key) === pod) this.#pods.delete(key);
  }

  /** Time goes on, and every janitor looks. */
  async pass(milliseconds: number): Promise<void> {
    this.#clockMs += milliseconds;
    for (const { registry } of this.#nodes) {
      await registry.idle();
      await registry.expire();
      await registry.idle();
    }
  }

  /** As an earlier version left it: what is kept at `from` is kept there, too. */
  async keepAlso(from: string, address: string): Promise<void> {
    const path = `${API_PATH}/ipallocations`;
    const object: KubeObject = await this.server.client().call({ method: "GET", path: `${path}/${from}` });
    const { name: _, uid: __, resourceVersion: ___, ...metadata } = Object(object.metadata);
    const body = { ...object, metadata: { ...metadata, name: address }, spec: { ...Object(object.spec), address } };
    await this.server.client().call({ method: "POST", path, body });
  }

  /** What is Bound to or kept for each NIC and family of a workload's members, beyond one: `web-0/eth0/4 10.6.0.7 10.6.0.9`. */
  surplus(): string[] {
    const found = new Map<string, string[]>();
    for (const { spec } of this.server.objects.values() as Iterable<StoredObject>) {
      const { address, state, workload } = Object(spec);
      if (workload === undefined || (state !== "Kept" && state !== "Bound")) continue;
      const key = `${workload.uid}/${workload.member}/${workload.interface}/${address.includes(":") ? 6 : 4}`;
      found.set(key, [...(found.get(key) ?? []), address]);
    }
    return [...found].flatMap(([key, addresses]) => (addresses.length > 1 ? [`${key} ${addresses.join(" ")}`] : []));
  }

  #find(namespace: string, name: string): Pod | undefined {
    return this.#pods.get(`${namespace}/${name}`);
  }

  #demandOf(ifName: string): NicDemand {
    const families = this.#pools.map((pool) => ({
      family: pool.spec.family,
      candidates: [{ name: pool.name, pool }],
    }));
    return { ifName, rule: "the test", cleanGateway: false, families };
  }

  #podOf({ name, run }: Member): Pod {
    const uid = `u${++this.#count}`;
    const owner = { apiVersion: "kubevirt.io/v1", kind: "VirtualMachineInstance", name, uid: run, controller: true };
    const metadata = {
      ...{ namespace: "shop", name: run === undefined ? name : `${name}-${uid}`, uid, resourceVersion: "1" },
      ...(run === undefined ? {} : { ownerReferences: [owner], labels: { "kubevirt.io": "virt-launcher" } }),
    };
    return decodePod({ kind: "Pod", metadata, spec: {}, status: {} }, "the test");
  }
}

/** Of a StatefulSet. */
export function memberOf(set: string, ordinal: number): Member {
  const member = `${set}-${ordinal}`;
  return { name: member, workload: { kind: "StatefulSet", namespace: "shop", name: set, uid: `uid-${set}`, member } };
}

export function machineOf(name: string): Member {
  return {
    ...{ name, run: `run-${name}` },
    workload: { kind: "VirtualMachine", namespace: "shop", name, uid: `uid-${name}`, member: name },
  };
}

export function isRefused(error: unknown): error is CniError {
  return error instanceof CniError;
}
