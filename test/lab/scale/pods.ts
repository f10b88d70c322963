/** Pods of a fleet: their objects in the API server, their ADDs and DELs at the agent of their node, each reported to the history. */

import { parseIp } from "../../../host/net/ip.ts";
import { allocationName } from "../../../host/resources/ip-allocation.ts";
import { type AgentNode, containerOf } from "../cluster/agent-node.ts";
import * as objects from "../cluster/objects.ts";
import type { Attachment } from "../history/allocation-checker.ts";
import type { History } from "../history/follow.ts";
import type { KubeClient } from "../kube-client.ts";

export interface SimPodSpec extends Pick<objects.PodSpec, "name" | "annotations" | "owner"> {
  readonly node: AgentNode;
}

/** A pod whose object exists. */
export interface SimPod extends SimPodSpec {
  readonly uid: string;
}

/** A pod with its addresses. */
export interface AttachedPod extends SimPod {
  readonly attachments: readonly Attachment[];
  readonly tookMs: number;
  /** Resolves when the history has come to the place of the answer. */
  readonly checked: Promise<unknown>;
}

export const NAMESPACE = "scale";
const IF_NAME = "eth0";

/** The object, bound to its node as by the scheduler. */
export async function createPod(client: KubeClient, spec: SimPodSpec): Promise<SimPod> {
  const { uid } = await objects.createPod(client, { ...spec, node: spec.node.name, namespace: NAMESPACE });
  return { ...spec, uid };
}

export async function deletePod(client: KubeClient, { name, uid, node }: SimPod): Promise<void> {
  await objects.deletePod(client, { namespace: NAMESPACE, name, uid, node: node.name });
}

/** The ADD of its NIC. Rejects with what the agent refuses it with. */
export async function attachPod(pod: SimPod, history: History): Promise<AttachedPod> {
  const { ips, tookMs } = await pod.node.add({ namespace: NAMESPACE, name: pod.name, uid: pod.uid });
  const attachments = ips.map((address) => ({
    name: nameOf(address),
    podUid: pod.uid,
    ifName: IF_NAME,
    identity: pod.owner?.kind === "StatefulSet" ? `${pod.owner.uid}/${pod.name}` : undefined,
  }));
  const checked = Promise.all(attachments.map((attachment) => history.attached(attachment)));
  return { ...pod, attachments, tookMs, checked };
}

function nameOf(address: string): string {
  const ip = parseIp(address);
  if (ip === undefined) throw new TypeError(`"${address}" is not an address`);
  return allocationName(ip, "");
}

/** The DEL of its NIC, and how long it took. */
export async function detachPod(pod: AttachedPod, history: History): Promise<number> {
  await pod.checked;
  for (const attachment of pod.attachments) history.leaving(attachment);
  const startMs = performance.now();
  await pod.node.registry.release({ containerId: containerOf(pod), ifName: IF_NAME });
  return performance.now() - startMs;
}
