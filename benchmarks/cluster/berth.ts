/**
 * Berth with an agent of a cluster, on a node of its own, whose pods are there before their ADD.
 * Effects: an agent, objects in the API server.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startAgent } from "../../scripts/lab/agent.ts";
import { berthBin } from "../../scripts/lab/cnitool.ts";
import type { ControlPlane } from "../../scripts/lab/control-plane.ts";
import { inParallel } from "../../scripts/lab/parallel.ts";
import { type Contestant, callEnvironment, type Place } from "../ipam/contestant.ts";

export interface ClusterBerthOptions {
  readonly plane: ControlPlane;
  readonly place: Place;
  readonly node: string;
  /** Whether a network definition of the node names Berth, so that it claims when a pod is bound. */
  readonly isAhead: boolean;
}

const NETWORK = { cniVersion: "1.0.0", name: "bench", plugins: [{ type: "bridge", ipam: { type: "berth" } }] };
const PODS = "/api/v1/namespaces/bench/pods";
const PODS_AT_ONCE = 16;
/** Until the API server has nothing more to do with the pods that were just created: it has the same processors. */
const QUIET_MS = 300;
const PATIENCE_MS = 30_000;
/** The runtime's CNI_ARGS. The API server makes the UID. */
const ARGS =
  "IgnoreUnknown=1;K8S_POD_NAMESPACE=bench;K8S_POD_NAME={node}-{n};K8S_POD_INFRA_CONTAINER_ID={node}-{n};K8S_POD_UID={text:{uids}{n}}";

export async function openClusterBerth(options: ClusterBerthOptions): Promise<Contestant> {
  const { plane, place, node, isAhead } = options;
  await plane.client.create("/api/v1/nodes", { apiVersion: "v1", kind: "Node", metadata: { name: node } });
  const agent = await startAgent({ config: {}, kubeconfig: plane.kubeconfig, args: ["--node", node] });
  if (isAhead) await writeFile(join(agent.cniConfDir, "10-bench.conflist"), JSON.stringify(NETWORK));
  await waitFor("the agent to be ready", async () => (await agent.request("/v1/health")).status === 200);
  const stdinFile = join(place.directory, "berth-cluster.json");
  const { plugins, ...frame } = NETWORK;
  await writeFile(stdinFile, JSON.stringify({ ...frame, ...plugins[0] }));
  const uids = join(place.directory, `uid-${node}-`);
  const subject = (command: "ADD" | "DEL") => ({
    path: join(berthBin, "berth"),
    stdinFile,
    env: {
      ...callEnvironment(command, place, agent.env),
      CNI_CONTAINERID: `${node}-{n}`,
      CNI_ARGS: ARGS.replaceAll("{node}", node).replace("{uids}", uids),
    },
  });
  /** Addresses of this node that have objects. */
  const objects = async (): Promise<number> => {
    const path = `/apis/ipam.vendor.io/v1/ipallocations?fieldSelector=spec.node%3D${node}`;
    return (await plane.client.get(path)).items.length;
  };
  const numbers = (first: number, count: number): number[] =>
    Array.from({ length: count }, (_, index) => first + index);
  return {
    name: `berth in a cluster, ${isAhead ? "claimed ahead" : "nothing claimed ahead"}`,
    add: subject("ADD"),
    del: subject("DEL"),
    daemonPid: agent.pid,
    prepare: async (first, count) => {
      await inParallel(numbers(first, count), PODS_AT_ONCE, async (number) => {
        const { metadata } = await plane.client.create(PODS, pod(node, number));
        await writeFile(`${uids}${number}`, metadata.uid);
      });
      if (isAhead) await waitFor("the claims", async () => (await objects()) === count);
      await sleep(QUIET_MS);
    },
    finish: async (first, count) => {
      await inParallel(numbers(first, count), PODS_AT_ONCE, (number) =>
        plane.client.delete(`${PODS}/${node}-${number}?gracePeriodSeconds=0`),
      );
      await waitFor("the releases", async () => (await objects()) === 0);
    },
    close: () => agent.delete(),
  };
}

function pod(node: string, number: number): object {
  return {
    ...{ apiVersion: "v1", kind: "Pod", metadata: { name: `${node}-${number}` } },
    spec: { nodeName: node, containers: [{ name: "main", image: "example/main:1" }] },
  };
}

async function waitFor(what: string, isSo: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS;
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error(`Waited ${PATIENCE_MS} ms in vain for ${what}`);
    await sleep(20);
  }
}
