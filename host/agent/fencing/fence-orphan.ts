/**
 * Fencing: a pod of this node whose object is gone, and whose sandbox lives on, loses the addresses that its workload's next pod is to have
 * (retention, docs/decisions/0025). Whether a pod is such an orphan is decided by gc/collector.ts, from what the API server says.
 * Effects: changes the orphan's network namespace, and what the coordinator made for it on the node; a line in the log, an event of the workload.
 */
import { mayBeShared } from "../../ipam/retention.ts";
import type { KubeEvent } from "../../kubernetes/events.ts";
import type { Log } from "../../lib/log.ts";
import { formatIp } from "../../net/ip.ts";
import { UNKNOWN_CONTAINER } from "../../registry/journal.ts";
import type { Allocation } from "../../registry/registry.ts";
import type { Workload } from "../../resources/ip-allocation.ts";
import { readNetnsStatus } from "../gc/live-status.ts";
import { fenceNics } from "./fence-nics.ts";
import { findNetns } from "./find-netns.ts";

/** An address whose workload waits for it. */
export type OrphanRow = Allocation & { readonly workload: Workload };

export interface FenceDeps {
  /** Paths of the network namespaces of all attachments in the journal. */
  readonly knownNetns: () => Promise<readonly string[]>;
  readonly node: string;
  /** The setting `enableFencing`, as it is now. */
  readonly isEnabled: () => boolean;
  /** Takes away what the coordinator made for the attachment, on the node, too. */
  readonly detach: (row: Allocation) => Promise<void>;
  readonly emit: (event: KubeEvent) => void;
  readonly log: Log;
}

/**
 * Whether no NIC of this node has the address any more; the agent makes it so, unless that is disabled. False also when the agent cannot see the
 * orphan's namespace. Rejects when the kernel refuses.
 */
export async function fenceOrphan(tools: FenceDeps, told: OrphanRow): Promise<boolean> {
  const row = told.netns === undefined ? { ...told, netns: findNetns(told.ip, await tools.knownNetns()) } : told;
  const { netns, ip, workload } = row;
  const sighting = await readNetnsStatus(row);
  if (sighting === "gone") return true;
  if (sighting === "unknown" || netns === undefined) return false;
  const hasMachine = mayBeShared(workload);
  if (!tools.isEnabled()) return sighting === "there" && !hasMachine;
  const links = fenceNics({ netns, ips: [ip], hasMachine }) ?? [];
  // Of what was taken in from the API server no container is known; the next attachment of the address replaces the routes.
  if (row.containerId !== UNKNOWN_CONTAINER) await tools.detach(row);
  if (links.length > 0) report(tools, row, links);
  return (await readNetnsStatus(row)) !== "inUse";
}

function report({ node, emit, log }: FenceDeps, row: OrphanRow, links: readonly string[]): void {
  const { namespace, pod, owner, ifName, pool, workload } = row;
  const address = formatIp(row.ip);
  const names = links.map((link) => `"${link}"`).join(", ");
  const text = `Pod ${namespace}/${pod} (UID ${owner}) is deleted and its sandbox still runs on node "${node}"; address ${address} was taken off it, and ${names} set down`;
  log.info({ address, pool, namespace, pod, owner, ifName, links }, text);
  emit({
    regarding: {
      ...{ kind: workload.kind, apiVersion: apiVersionOf(workload), name: workload.name, uid: workload.uid },
      namespace: workload.namespace ?? namespace,
    },
    ...{ type: "Warning", reason: "OrphanFenced", action: "Fence", note: text },
  });
}

function apiVersionOf({ kind }: Workload): string {
  if (kind === "StatefulSet") return "apps/v1";
  return kind === "IPAMClaim" ? "k8s.cni.cncf.io/v1alpha1" : "kubevirt.io/v1";
}
