/**
 * Pods of a fleet: their objects in the API server, their ADDs and DELs at the agent of their node, each told to the history.
 * Effects: objects in the API server; those of the agents.
 */
import { randomUUID } from "node:crypto";
import { addAddresses } from "../../../host/agent/ipam/add.ts";
import { parseContainerId, parseIfName } from "../../../host/cni/names.ts";
import { decodeNetConf } from "../../../host/cni/net-conf.ts";
import type { AttachRequest } from "../../../host/cni/request.ts";
import { allocationName } from "../../../host/resources/ip-allocation.ts";
import type { History } from "../history/follow.ts";
import type { Attachment } from "../history/judge.ts";
import type { KubeClient } from "../kube-client.ts";
import { NETWORK, type SimNode } from "./fleet.ts";

export interface PodWish {
  readonly name: string;
  readonly node: SimNode;
  readonly annotations?: Readonly<Record<string, string>>;
  /** The controlling owner. */
  readonly owner?: { readonly apiVersion: string; readonly kind: string; readonly name: string; readonly uid: string };
}

/** A pod whose object is there. */
export interface SimPod extends PodWish {
  readonly uid: string;
  readonly containerId: string;
}

/** A pod with its addresses. */
export interface AttachedPod extends SimPod {
  readonly attachments: readonly Attachment[];
  readonly tookMs: number;
  /** Resolves when the history has come to the place of the answer. */
  readonly judged: Promise<unknown>;
}

export const NAMESPACE = "scale";
const PODS = `/api/v1/namespaces/${NAMESPACE}/pods`;
const IF_NAME = "eth0";
/** Longer than any ADD may take. */
const ADD_LIMIT_MS = 60_000;

const netConf = decodeNetConf(
  JSON.stringify({ cniVersion: "1.0.0", name: NETWORK, type: "macvlan", ipam: { type: "berth" } }),
);

/** The object, bound to its node as by the scheduler. */
export async function createPod(client: KubeClient, wish: PodWish): Promise<SimPod> {
  const { name, node, annotations = {}, owner } = wish;
  const ownerReferences = owner === undefined ? [] : [{ ...owner, controller: true }];
  const { metadata } = await client.create(PODS, {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, annotations, ownerReferences },
    spec: { nodeName: node.name, containers: [{ name: "main", image: "example/main:1" }] },
  });
  return { ...wish, uid: metadata.uid, containerId: randomUUID() };
}

/** The object goes at once: nobody else has to agree here. */
export async function deletePod(client: KubeClient, { name }: SimPod): Promise<void> {
  await client.delete(`${PODS}/${name}?gracePeriodSeconds=0`);
}

/** The ADD of its NIC. Rejects with what the agent refuses it with. */
export async function attachPod(pod: SimPod, history: History): Promise<AttachedPod> {
  const request = requestOf(pod);
  const startMs = performance.now();
  const { result } = await addAddresses(pod.node.cluster.ipam, request, AbortSignal.timeout(ADD_LIMIT_MS));
  const tookMs = performance.now() - startMs;
  const attachments = result.ips.map(({ address }) => ({
    name: allocationName(address.ip, ""),
    podUid: pod.uid,
    ifName: IF_NAME,
    identity: pod.owner?.kind === "StatefulSet" ? `${pod.owner.uid}/${pod.name}` : undefined,
  }));
  const judged = Promise.all(attachments.map((attachment) => history.attached(attachment)));
  return { ...pod, attachments, tookMs, judged };
}

/** The DEL of its NIC, and how long it took. */
export async function detachPod(pod: AttachedPod, history: History): Promise<number> {
  await pod.judged;
  for (const attachment of pod.attachments) history.leaving(attachment);
  const startMs = performance.now();
  await pod.node.cluster.registry.release({ containerId: pod.containerId, ifName: IF_NAME });
  return performance.now() - startMs;
}

function requestOf({ name, uid, containerId }: SimPod): AttachRequest {
  const id = parseContainerId(containerId);
  const ifName = parseIfName(IF_NAME);
  if (id === undefined || ifName === undefined) throw new TypeError(`${containerId} is no container's ID`);
  return {
    command: "ADD",
    plugin: "berth",
    netConf,
    args: new Map([
      ["K8S_POD_NAMESPACE", NAMESPACE],
      ["K8S_POD_NAME", name],
      ["K8S_POD_UID", uid],
      ["K8S_POD_INFRA_CONTAINER_ID", containerId],
    ]),
    path: "/opt/cni/bin",
    containerId: id,
    ifName,
    netns: `/run/netns/${name}`,
    netnsOverride: false,
  };
}
