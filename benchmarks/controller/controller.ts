/**
 * The benchmark `controller`: its memory when very many addresses are in use, of one pool or of very many generated
 * ones, beside an empty Node.js.
 * Effects: etcd and an API server on loopback; a controller.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { referenceTool } from "../../scripts/setup/paths.mjs";
import { runSetup } from "../../scripts/setup/run-setup.ts";
import { startControllerProcess } from "../../test/lab/cluster/controller-process.ts";
import { applyCrds } from "../../test/lab/cluster/crds.ts";
import { fillNamespaces, fillNodes, fillPool } from "../../test/lab/cluster/fill.ts";
import { SYSTEM, settingsObject } from "../../test/lab/cluster/objects.ts";
import { type ControlPlane, startControlPlane } from "../../test/lab/control-plane.ts";
import { until } from "../../test/lab/waiting.ts";
import { requireUninterrupted } from "../harness/interruption.ts";
import { atMostMb, type MemoryFigure, readEmptyNode, readMemory, tabulateMemory } from "../harness/memory.ts";
import type { Bench, BenchOptions, BenchReport } from "../harness/report.ts";
import { fillWorkloads, POOLS_OF_SUBNET } from "./fill-workloads.ts";

export const controllerBench: Bench = { name: "controller", run: runController };

const ALLOCATIONS = 150_000;
const QUICK_ALLOCATIONS = 10_000;
const POOL = { name: "bench", subnet: "10.128.0.0/14" };
const BERTH = "/apis/ipam.vendor.io/v1";
const POOLS = `${BERTH}/ippools`;

/** Each generated pool gives so many addresses to its workload's pods. */
const PODS_OF_WORKLOAD = 15;

/** Until the controller has counted them all. */
const COUNT_MS = 900_000;

/** Time from then until it is at rest: milliseconds. */
const REST_MS = 10_000;

const LIMIT_MB = 300;

/** The largest cluster that Kubernetes supports, each node with 30 pods. */
const PODS_OF_NODE = 30;

const NAMESPACES = 500;

async function runController({ quick }: BenchOptions): Promise<BenchReport> {
  runSetup("cluster");
  const count = quick ? QUICK_ALLOCATIONS : ALLOCATIONS;
  const workloads = Math.floor(count / PODS_OF_WORKLOAD);
  const figures = [
    await readEmptyNode(),
    ...(await readWithOnePool(count)),
    await readWithWorkloads(`the same number of ${workloads} generated pools`, workloads),
  ];
  return {
    tables: [tabulateMemory("controller", figures)],
    targets: figures.slice(-2).map((figure) => atMostMb(figure, LIMIT_MB)),
    notes: [
      `The addresses are of one pool and of one pod each, on ${ALLOCATIONS / PODS_OF_NODE} ready nodes and in ${NAMESPACES} namespaces. The figure is taken when the pool's status counts all of them and ten seconds have passed; the controller was started after they had been created, so it has read all of them at once, and compared the addresses of fifty nodes with their pods.`,
      `Generated pools: each of a Deployment with ${PODS_OF_WORKLOAD} pods and a ReplicaSet, out of Subnets with ${POOLS_OF_SUBNET} pools. The figure is taken ten seconds after the controller has written the usage object of each pool; it still writes their status.`,
    ],
    versions: { Kubernetes: referenceTool("kubernetes").version },
    raw: figures,
  };
}

/** Returns the memory without any address, and with `count` addresses of one pool. */
async function readWithOnePool(count: number): Promise<MemoryFigure[]> {
  await using stack = new AsyncDisposableStack();
  const plane = await openPlane(stack);
  await plane.client.create(POOLS, {
    ...{ apiVersion: "ipam.vendor.io/v1", kind: "IPPool", metadata: { name: POOL.name } },
    spec: { subnet: POOL.subnet },
  });
  const isCounted = (count: number) => async (): Promise<boolean> => {
    const { status } = await plane.client.get(`${POOLS}/${POOL.name}`);
    return status !== undefined && Number(status.used) === count;
  };
  const before = await readController(plane, "no address in use", isCounted(0));
  await fillCluster(plane.etcdUrl, count);
  return [before, await readController(plane, `${count} addresses in use`, isCounted(count))];
}

/** Returns the memory with so many workloads, whose pods have addresses of their generated pools. */
async function readWithWorkloads(name: string, workloads: number): Promise<MemoryFigure> {
  await using stack = new AsyncDisposableStack();
  const plane = await openPlane(stack);
  const nodes = nodeNames(workloads * PODS_OF_WORKLOAD);
  // Their Subnets have one family.
  await plane.client.create(`/api/v1/namespaces/${SYSTEM}/configmaps`, settingsObject({ enableIPv6: false }));
  await fillNodes(plane.etcdUrl, nodes);
  await fillNamespaces(
    plane.etcdUrl,
    Array.from({ length: NAMESPACES }, (_, number) => namespaceOf(number)),
  );
  await fillWorkloads(plane.etcdUrl, {
    ...{ workloads, pods: PODS_OF_WORKLOAD },
    namespaceOf: (workload) => namespaceOf(workload),
    nodeOf: (pod) => nodes[pod % nodes.length] ?? "",
  });
  return await readController(
    plane,
    name,
    async () => (await countObjects(plane, `${BERTH}/ippoolusages`)) === workloads,
  );
}

async function openPlane(stack: AsyncDisposableStack): Promise<ControlPlane> {
  const plane = await startControlPlane();
  stack.defer(() => plane.stop());
  await applyCrds(plane.client);
  return plane;
}

async function countObjects({ client }: ControlPlane, path: string): Promise<number> {
  const { items, metadata } = await client.get(`${path}?limit=1`);
  return items.length + Number(metadata.remainingItemCount ?? 0);
}

function nodeNames(pods: number): string[] {
  return Array.from({ length: pods / PODS_OF_NODE }, (_, number) => `node-${number}`);
}

function namespaceOf(group: number): string {
  return `team-${group % NAMESPACES}`;
}

/** Ready nodes, and pods in many namespaces with an address each; the pods of one namespace are on many nodes. */
async function fillCluster(etcdUrl: string, count: number): Promise<void> {
  const nodes = nodeNames(count);
  await fillNodes(etcdUrl, nodes);
  let taken = 0;
  await fillPool(etcdUrl, {
    subnet: POOL.subnet,
    pool: POOL.name,
    isTaken: () => taken < count,
    place: () => {
      const number = taken++;
      return {
        namespace: namespaceOf(Math.floor(number / PODS_OF_NODE)),
        node: `node-${number % nodes.length}`,
      };
    },
  });
}

/** Starts a controller, and reads its memory when it is at rest after it has counted the addresses. */
async function readController(
  plane: ControlPlane,
  name: string,
  isCounted: () => Promise<boolean>,
): Promise<MemoryFigure> {
  requireUninterrupted();
  const controller = await startControllerProcess({ kubeconfig: plane.kubeconfig, name: "bench" });
  try {
    const isReady = async (): Promise<boolean> => {
      requireUninterrupted();
      return isCounted();
    };
    await until(`the addresses are counted: ${name}`, isReady, COUNT_MS);
    await sleep(REST_MS);
    return readMemory(name, controller.pid);
  } finally {
    await controller.stop();
  }
}
