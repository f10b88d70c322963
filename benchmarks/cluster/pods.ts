/**
 * Pods of one node that exist before their ADD, as every IPAM of a cluster needs them.
 *
 *   const pods = await openNodePods({ plane, place, node: "ahead" });
 *   await pods.create(0, 200);
 *   callEnvironment("ADD", place, pods.env);            // the call of pod {n}
 *   await pods.terminate(0, 200);                       // before their DEL
 *   await pods.remove(0, 200);
 *
 * Effects: a node and pods in the API server; a file for each pod's UID.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ControlPlane } from "../../test/lab/control-plane.ts";
import { inParallel } from "../../test/lab/parallel.ts";
import type { Place } from "../ipam/contestant.ts";

const PODS = "/api/v1/namespaces/bench/pods";
const PODS_AT_ONCE = 16;
/** Longer than the DELs of a batch of pods take. */
const GRACE_S = 300;
/** The runtime's CNI_ARGS. The API server makes the UID. */
const ARGS =
  "IgnoreUnknown=1;K8S_POD_NAMESPACE=bench;K8S_POD_NAME={node}-{n};K8S_POD_INFRA_CONTAINER_ID={node}-{n};K8S_POD_UID={text:{uids}{n}}";

export interface NodePods {
  /** Environment of a pod's calls. */
  readonly env: Readonly<Record<string, string>>;
  readonly create: (first: number, count: number) => Promise<undefined>;
  /**
   * They are to be deleted and still exist, as a runtime's DEL finds them: an IPAM may ignore the DEL of a pod that
   * lives.
   */
  readonly terminate: (first: number, count: number) => Promise<void>;
  readonly remove: (first: number, count: number) => Promise<void>;
}

export interface NodePodsOptions {
  readonly plane: ControlPlane;
  readonly place: Place;
  /** Also the beginning of the pods' names. */
  readonly node: string;
  /** Over how many nodes the pods are spread by turns: `node-0`, `node-1`, … Default: `node` alone. */
  readonly spread?: number;
}

/** The nodes of the pods: pod {n} is on number {n} modulo their number. */
export function nodeNames({ node, spread }: Pick<NodePodsOptions, "node" | "spread">): string[] {
  return spread === undefined ? [node] : Array.from({ length: spread }, (_, index) => `${node}-${index}`);
}

export async function openNodePods(options: NodePodsOptions): Promise<NodePods> {
  const { plane, place, node } = options;
  const nodes = nodeNames(options);
  for (const name of nodes)
    await plane.client.create("/api/v1/nodes", { apiVersion: "v1", kind: "Node", metadata: { name } });
  const uids = join(place.directory, `uid-${node}-`);
  const numbers = (first: number, count: number): number[] =>
    Array.from({ length: count }, (_, index) => first + index);
  const deleteAll = async (first: number, count: number, graceS: number): Promise<void> => {
    await inParallel(numbers(first, count), PODS_AT_ONCE, (number) =>
      plane.client.delete(`${PODS}/${node}-${number}?gracePeriodSeconds=${graceS}`),
    );
  };
  return {
    env: { CNI_CONTAINERID: `${node}-{n}`, CNI_ARGS: ARGS.replaceAll("{node}", node).replace("{uids}", uids) },
    create: async (first, count) => {
      await inParallel(numbers(first, count), PODS_AT_ONCE, async (number) => {
        const nodeName = nodes[number % nodes.length] ?? node;
        const { metadata } = await plane.client.create(PODS, pod(`${node}-${number}`, nodeName));
        await writeFile(`${uids}${number}`, metadata.uid);
      });
      return undefined;
    },
    terminate: (first, count) => deleteAll(first, count, GRACE_S),
    remove: (first, count) => deleteAll(first, count, 0),
  };
}

function pod(name: string, nodeName: string): object {
  return {
    ...{ apiVersion: "v1", kind: "Pod", metadata: { name } },
    spec: { nodeName, containers: [{ name: "main", image: "example/main:1" }] },
  };
}
