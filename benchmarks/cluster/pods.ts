/**
 * Pods of one node that exist before their ADD, as every IPAM of a cluster needs them.
 *
 *   const pods = await openNodePods({ plane, place, node: "ahead" });
 *   await pods.create(0, 200);
 *   callEnvironment("ADD", place, pods.env);            // the call of pod {n}
 *   await pods.remove(0, 200);
 *
 * Effects: a node and pods in the API server; a file for each pod's UID.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ControlPlane } from "../../scripts/lab/control-plane.ts";
import { inParallel } from "../../scripts/lab/parallel.ts";
import type { Place } from "../ipam/contestant.ts";

const PODS = "/api/v1/namespaces/bench/pods";
const PODS_AT_ONCE = 16;
/** The runtime's CNI_ARGS. The API server makes the UID. */
const ARGS =
  "IgnoreUnknown=1;K8S_POD_NAMESPACE=bench;K8S_POD_NAME={node}-{n};K8S_POD_INFRA_CONTAINER_ID={node}-{n};K8S_POD_UID={text:{uids}{n}}";

export interface NodePods {
  /** What the calls of a pod have in their environment. */
  readonly env: Readonly<Record<string, string>>;
  create(first: number, count: number): Promise<unknown>;
  remove(first: number, count: number): Promise<unknown>;
}

export interface NodePodsOptions {
  readonly plane: ControlPlane;
  readonly place: Place;
  readonly node: string;
}

export async function openNodePods({ plane, place, node }: NodePodsOptions): Promise<NodePods> {
  await plane.client.create("/api/v1/nodes", { apiVersion: "v1", kind: "Node", metadata: { name: node } });
  const uids = join(place.directory, `uid-${node}-`);
  const numbers = (first: number, count: number): number[] =>
    Array.from({ length: count }, (_, index) => first + index);
  return {
    env: { CNI_CONTAINERID: `${node}-{n}`, CNI_ARGS: ARGS.replaceAll("{node}", node).replace("{uids}", uids) },
    create: (first, count) =>
      inParallel(numbers(first, count), PODS_AT_ONCE, async (number) => {
        const { metadata } = await plane.client.create(PODS, pod(node, number));
        await writeFile(`${uids}${number}`, metadata.uid);
      }),
    remove: (first, count) =>
      inParallel(numbers(first, count), PODS_AT_ONCE, (number) =>
        plane.client.delete(`${PODS}/${node}-${number}?gracePeriodSeconds=0`),
      ),
  };
}

function pod(node: string, number: number): object {
  return {
    ...{ apiVersion: "v1", kind: "Pod", metadata: { name: `${node}-${number}` } },
    spec: { nodeName: node, containers: [{ name: "main", image: "example/main:1" }] },
  };
}
