/**
 * The controller's memory without an address in use, and with very many of one pool.
 * Effects: etcd and an API server on loopback; a controller.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { startControllerProcess } from "../../test/lab/cluster/controller-process.ts";
import { applyCrds } from "../../test/lab/cluster/crds.ts";
import { fillNamespaces, fillNodes, fillPool } from "../../test/lab/cluster/fill.ts";
import { type ControlPlane, startControlPlane } from "../../test/lab/control-plane.ts";
import { until } from "../../test/lab/waiting.ts";
import { requireUninterrupted } from "../harness/interruption.ts";
import { type MemoryFigure, readMemory } from "../harness/memory.ts";
import { sayProgress } from "../harness/progress.ts";

const POOL = { name: "bench", subnet: "10.128.0.0/14" };
const POOL_PATH = "/apis/ipam.vendor.io/v1/ippools";
/** The largest cluster that Kubernetes supports has 5,000 nodes: each with so many pods. */
export const PODS_OF_NODE = 30;
export const NAMESPACES = 500;
/** Until the controller has counted them all. */
const COUNT_MS = 900_000;
/** Time from then until it is at rest: milliseconds. */
const REST_MS = 10_000;

/** `count` is that of the addresses in use. */
export async function readControllers(count: number): Promise<MemoryFigure[]> {
  const plane = await startControlPlane();
  await using stack = new AsyncDisposableStack();
  stack.defer(() => plane.stop());
  await applyCrds(plane.client);
  await plane.client.create(POOL_PATH, {
    ...{ apiVersion: "ipam.vendor.io/v1", kind: "IPPool", metadata: { name: POOL.name } },
    spec: { subnet: POOL.subnet },
  });
  const before = await readController(plane, "no address in use", 0);
  await fillCluster(plane.etcdUrl, count);
  return [before, await readController(plane, `${count} addresses in use`, count)];
}

/** Ready nodes, and pods in many namespaces with an address each; the pods of one namespace are on many nodes. */
async function fillCluster(etcdUrl: string, count: number): Promise<void> {
  const nodes = Array.from({ length: count / PODS_OF_NODE }, (_, number) => `node-${number}`);
  const namespaces = Array.from({ length: NAMESPACES }, (_, number) => `team-${number}`);
  await fillNodes(etcdUrl, nodes);
  await fillNamespaces(etcdUrl, namespaces);
  let taken = 0;
  await fillPool(etcdUrl, {
    subnet: POOL.subnet,
    pool: POOL.name,
    isTaken: () => taken < count,
    place: () => {
      const number = taken++;
      const namespace = namespaces[Math.floor(number / PODS_OF_NODE) % NAMESPACES] ?? "";
      return { namespace, node: nodes[number % nodes.length] ?? "" };
    },
  });
}

/** Starts a controller, and reads its memory when it is at rest after it has counted the addresses. */
async function readController({ kubeconfig, client }: ControlPlane, name: string, used: number): Promise<MemoryFigure> {
  sayProgress(`the controller with ${name}`);
  const controller = await startControllerProcess({ kubeconfig, name: "bench" });
  await using stack = new AsyncDisposableStack();
  stack.defer(async () => void (await controller.stop()));
  const isCounted = async (): Promise<boolean> => {
    requireUninterrupted();
    const { status } = await client.get(`${POOL_PATH}/${POOL.name}`);
    return status !== undefined && Number(status.used) === used;
  };
  await until(`the addresses are counted: ${name}`, isCounted, COUNT_MS);
  await sleep(REST_MS);
  return readMemory(name, controller.pid);
}
