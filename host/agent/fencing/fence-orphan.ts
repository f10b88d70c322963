/**
 * Fencing: a pod of this node whose object is gone and whose sandbox still runs loses the addresses that its workload's next pod is to have (retention,
 * docs/decisions/0025). gc/collector.ts decides which pods are such orphans.
 */
import { mayBeShared } from "../../ipam/retention.ts";
import type { KubeEvent } from "../../kubernetes/events.ts";
import type { Log } from "../../lib/log.ts";
import { formatIp } from "../../net/ip.ts";
import { UNKNOWN_CONTAINER } from "../../registry/journal.ts";
import type { Allocation } from "../../registry/registry.ts";
import type { Workload } from "../../resources/ip-allocation.ts";
import { KERNEL_NICS, type NicAccess } from "./nic-access.ts";

/** An address that is retained for a workload. */
export type OrphanRow = Allocation & { readonly workload: Workload };

export interface FenceDeps {
  /** Paths of the network namespaces of all attachments in the journal. */
  readonly knownNetns: () => Promise<readonly string[]>;
  /** Absent: the kernel's. */
  readonly nics?: NicAccess | undefined;
  readonly node: string;
  /** The setting `enableFencing`, as it is now. */
  readonly isEnabled: () => boolean;
  /** Removes the links, routes and rules that the coordinator created for the attachment, also on the node. */
  readonly detach: (row: Allocation) => Promise<void>;
  readonly emit: (event: KubeEvent) => void;
  readonly log: Log;
}

/**
 * Takes the address off the orphan's NIC unless fencing is disabled. Returns whether no NIC of this node has the address; false also if the orphan's
 * namespace cannot be found. Rejects when the kernel refuses.
 */
export async function fenceOrphan(deps: FenceDeps, orphan: OrphanRow): Promise<boolean> {
  const { readNetnsStatus, findNetns, fenceNics } = deps.nics ?? KERNEL_NICS;
  const row = orphan.netns === undefined ? { ...orphan, netns: findNetns(orphan.ip, await deps.knownNetns()) } : orphan;
  const { netns, ip, workload } = row;
  const status = await readNetnsStatus(row);
  if (status === "gone") return true;
  if (status === "unknown" || netns === undefined) return false;
  const hasMachine = mayBeShared(workload);
  if (!deps.isEnabled()) return status === "there" && !hasMachine;
  const links = fenceNics({ netns, ips: [ip], hasMachine }) ?? [];
  // The container of an address adopted from the API server is unknown; the next attachment of the address replaces the routes.
  if (row.containerId !== UNKNOWN_CONTAINER) await deps.detach(row);
  if (links.length > 0) report(deps, row, links);
  return (await readNetnsStatus(row)) !== "inUse";
}

function report({ node, emit, log }: FenceDeps, row: OrphanRow, links: readonly string[]): void {
  const { namespace, pod, owner, ifName, pool, workload } = row;
  const address = formatIp(row.ip);
  const names = links.map((link) => `"${link}"`).join(", ");
  const text = `Pod ${namespace}/${pod} (UID ${owner}) is deleted but its sandbox still runs on node "${node}"; removed address ${address} from it and set ${names} down`;
  log.info({ address, pool, namespace, pod, owner, ifName, links }, text);
  emit({
    regarding: {
      kind: workload.kind,
      apiVersion: apiVersionOf(workload),
      name: workload.name,
      uid: workload.uid,
      namespace: workload.namespace ?? namespace,
    },
    type: "Warning",
    reason: "OrphanFenced",
    action: "Fence",
    note: text,
  });
}

function apiVersionOf({ kind }: Workload): string {
  if (kind === "StatefulSet") return "apps/v1";
  return kind === "IPAMClaim" ? "k8s.cni.cncf.io/v1alpha1" : "kubevirt.io/v1";
}
