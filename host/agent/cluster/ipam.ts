/**
 * The cluster's part of the ADD: addresses of other nodes and of earlier pods, generated pools, prefetched addresses,
 * events of refused pods.
 */

import { ErrorCode } from "../../cni/error.ts";
import { closedTo } from "../../config/vendor-conf.ts";
import { mayBeShared } from "../../ipam/retention.ts";
import type { SubnetState } from "../../ipam/subnet-capacity.ts";
import type { Events } from "../../kubernetes/events.ts";
import { callIfThere, isNotFound, type KubeApi } from "../../kubernetes/kube-api.ts";
import { objectPath } from "../../kubernetes/paths.ts";
import { messageOf } from "../../lib/describe.ts";
import type { FirstClaims } from "../../registry/epoch/registry-epoch.ts";
import type { KubernetesRegistry } from "../../registry/kubernetes/kubernetes-registry.ts";
import type { Allocation, Attachment, Claim } from "../../registry/registry.ts";
import { IP_POOLS } from "../../resources/collections.ts";
import { API_PATH } from "../../resources/fields/metadata.ts";
import { decodeIpPool, type IpPool } from "../../resources/ip-pool.ts";
import { subnetStatus } from "../../resources/status.ts";
import { decodeSubnet, refuseNamespace } from "../../resources/subnet.ts";
import type { Collector } from "../gc/collector.ts";
import type { LostAddresses } from "../gc/lost-addresses.ts";
import type { ClusterAddresses, ClusterIpam, PoolChanges, ReportedPod, SharedRecords } from "../ipam/cluster-ipam.ts";
import type { Prefetcher } from "../ipam/prefetch/prefetcher.ts";
import { POOL_READ_MS, SUBNET_READ_MS } from "../request/add-deadline.ts";
import { toCniError } from "../server/answer.ts";
import { evictPredecessor } from "./address-owners.ts";
import type { ClusterIdentifier } from "./identity.ts";
import type { ClusterResources } from "./resources.ts";
import { WaitingPods } from "./waiting-pods.ts";

interface KubernetesIpamDeps {
  readonly api: KubeApi;
  readonly resources: ClusterResources;
  readonly registry: KubernetesRegistry;
  readonly collector: Collector;
  readonly identifier: ClusterIdentifier;
  readonly events: Events;
  readonly lost: LostAddresses;
  readonly epoch: FirstClaims;
}

export class KubernetesIpam implements ClusterIpam {
  readonly prefetched: Prefetcher;
  readonly poolChanges: PoolChanges;
  readonly epoch: FirstClaims;
  readonly records: SharedRecords;
  readonly #deps: KubernetesIpamDeps;
  readonly #waiting: WaitingPods;

  constructor(deps: KubernetesIpamDeps, openPrefetcher: (addresses: ClusterAddresses) => Prefetcher) {
    this.#deps = deps;
    this.poolChanges = deps.resources;
    this.epoch = deps.epoch;
    this.records = deps.registry;
    this.#waiting = new WaitingPods((pool, waiting) => deps.registry.markWanted(pool, waiting));
    this.prefetched = openPrefetcher(this);
  }

  evictPredecessor(former: Allocation, claimant: Pick<Claim, "namespace" | "pod">): Promise<Allocation | undefined> {
    const { registry, collector } = this.#deps;
    const isPodGone = (row: Allocation): Promise<boolean> => collector.letGo(row);
    const endOrphan = (row: Allocation): Promise<Allocation | undefined> => collector.endOrphan(row);
    return evictPredecessor({ registry, isPodGone, endOrphan }, former, claimant);
  }

  foreseeEviction(former: Allocation, claimant: Pick<Claim, "namespace" | "pod">): Promise<Allocation | undefined> {
    const registry = { collect: async (row: Allocation): Promise<Allocation> => ({ ...row, state: "Cooling" }) };
    const isPodGone = (row: Allocation): Promise<boolean> => this.#deps.collector.isPodGone(row);
    return evictPredecessor({ registry, isPodGone, endOrphan: async () => undefined }, former, claimant);
  }

  async isShared(row: Allocation, signal: AbortSignal): Promise<boolean> {
    return mayBeShared(row.workload) && (await this.#deps.registry.isShared(row, signal));
  }

  /** Never rejects: the pod is refused anyway, and the state is part of the message. */
  async readSubnet(
    { name, namespace }: { readonly name: string; readonly namespace: string },
    signal: AbortSignal,
  ): Promise<SubnetState> {
    const { api, resources } = this.#deps;
    const { namespaces, vendorConf } = resources.state.snapshot;
    const asking = { name: namespace, labels: namespaces.get(namespace)?.labels ?? {}, closedTo: closedTo(vendorConf) };
    const path = `${API_PATH}/subnets/${encodeURIComponent(name)}`;
    try {
      const object = await api.call({ method: "GET", path, lane: "pod", patienceMs: SUBNET_READ_MS, signal });
      const { spec, deleting } = decodeSubnet(object, `Subnet "${name}"`);
      const refusal = refuseNamespace(spec, asking);
      const { waiting } = subnetStatus.safeParse(object.status).data ?? {};
      return { kind: "there", family: spec.family, isDeleting: deleting, refusal, waiting };
    } catch (error) {
      if (isNotFound(error)) return { kind: "absent" };
      return { kind: "unseen", why: `Subnet "${name}" cannot be read: ${messageOf(error)}` };
    }
  }

  async readPool(name: string, signal: AbortSignal): Promise<IpPool | undefined> {
    const path = objectPath(IP_POOLS, { name });
    const patience = { lane: "pod", patienceMs: POOL_READ_MS } as const;
    const object = await callIfThere(this.#deps.api, { method: "GET", path, ...patience, signal });
    return object && decodeIpPool(object, `IPPool "${name}"`);
  }

  markWanted(pool: string): Promise<void> {
    return this.#waiting.add(pool);
  }

  forgetPoolOwners(): void {
    this.#deps.identifier.forgetPoolOwners();
  }

  /** The Event has the error that the runtime received. */
  reportRefusal(pod: ReportedPod, error: unknown): void {
    const { code, message } = toCniError(error);
    if (code === ErrorCode.PodUnknown) return;
    const reason = Object.entries(ErrorCode).find(([, known]) => known === code)?.[0] ?? "Refused";
    this.#report(pod, reason, message);
  }

  reportIgnored(pod: ReportedPod, note: string): void {
    this.#report(pod, "AnnotationIgnored", note);
  }

  #report({ namespace, name, owner: uid }: ReportedPod, reason: string, note: string): void {
    const regarding = { kind: "Pod", apiVersion: "v1", namespace, name, uid };
    this.#deps.events.emit({ regarding, reason, note, type: "Warning", action: "Allocate" });
  }

  isGone(row: Allocation): Promise<boolean> {
    return this.#deps.collector.letGo(row);
  }

  findLoss(attachment: Attachment): string | undefined {
    return this.#deps.lost.find(attachment);
  }
}
