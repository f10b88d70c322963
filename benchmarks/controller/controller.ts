/**
 * The benchmark `controller`: its memory when very many addresses are in use, beside an empty Node.js.
 * Effects: etcd and an API server on loopback; a controller.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { startControllerProcess } from "../../scripts/lab/cluster/controller-process.ts";
import { applyCrds } from "../../scripts/lab/cluster/crds.ts";
import { until } from "../../scripts/lab/cluster/objects.ts";
import { type ControlPlane, startControlPlane } from "../../scripts/lab/control-plane.ts";
import { fillNodes, fillPool } from "../../scripts/lab/scale/fill.ts";
import { formatFigure } from "../../scripts/lab/statistics.ts";
import { referenceTool } from "../../scripts/setup/paths.mjs";
import { runSetup } from "../../scripts/setup/run-setup.ts";
import { requireUninterrupted } from "../harness/interruption.ts";
import { type MemoryFigure, readEmptyNode, readMemory } from "../harness/memory.ts";
import type { Bench, BenchOptions, BenchReport } from "../harness/report.ts";

export const controllerBench: Bench = { name: "controller", run: runController };

const ALLOCATIONS = 150_000;
const QUICK_ALLOCATIONS = 10_000;
const POOL = { name: "bench", subnet: "10.128.0.0/14" };
const POOLS = "/apis/ipam.vendor.io/v1/ippools";

/** Until the controller has counted them all. */
const COUNT_MS = 900_000;

/** How long after that it is at rest: milliseconds. */
const REST_MS = 10_000;

const LIMIT_MB = 250;

/** The largest cluster that Kubernetes supports, each node with 30 pods. */
const PODS_OF_NODE = 30;

const NAMESPACES = 500;

async function runController({ quick }: BenchOptions): Promise<BenchReport> {
  runSetup("cluster");
  const count = quick ? QUICK_ALLOCATIONS : ALLOCATIONS;
  const figures: MemoryFigure[] = [await readEmptyNode()];
  await using stack = new AsyncDisposableStack();
  const plane = await startControlPlane();
  stack.defer(() => plane.stop());
  await applyCrds(plane.client);
  await plane.client.create(POOLS, {
    ...{ apiVersion: "ipam.vendor.io/v1", kind: "IPPool", metadata: { name: POOL.name } },
    spec: { subnet: POOL.subnet },
  });
  figures.push(await readController(plane, "no address in use", 0));
  await fillCluster(plane.etcdUrl, count);
  figures.push(await readController(plane, `${count} addresses in use`, count));
  const rows = figures.map(({ name, rssMb, anonymousMb }) => [name, formatFigure(rssMb), formatFigure(anonymousMb)]);
  const { rssMb } = figures.at(-1) ?? { rssMb: Number.NaN };
  return {
    tables: [{ title: "Memory of the controller", columns: ["MB", "resident", "of it anonymous"], rows }],
    targets: [
      {
        what: `resident memory: ${count} addresses in use`,
        wanted: `≤ ${LIMIT_MB} MB`,
        measured: `${formatFigure(rssMb)} MB`,
        isMet: rssMb <= LIMIT_MB,
      },
    ],
    notes: [
      `The addresses are of one pool and of one pod each, on ${ALLOCATIONS / PODS_OF_NODE} ready nodes and in ${NAMESPACES} namespaces. The figure is taken when the pool's status counts all of them and ten seconds have passed; the controller was started after they had been created, so it has read all of them at once, and compared the addresses of fifty nodes with their pods.`,
    ],
    versions: { Kubernetes: referenceTool("kubernetes").version },
    raw: figures,
  };
}

/** Ready nodes, and pods in many namespaces with an address each; the pods of one namespace are on many nodes. */
async function fillCluster(etcdUrl: string, count: number): Promise<void> {
  const nodes = Array.from({ length: count / PODS_OF_NODE }, (_, number) => `node-${number}`);
  await fillNodes(etcdUrl, nodes);
  let taken = 0;
  await fillPool(etcdUrl, {
    subnet: POOL.subnet,
    pool: POOL.name,
    isTaken: () => taken < count,
    place: () => {
      const number = taken++;
      return {
        namespace: `team-${Math.floor(number / PODS_OF_NODE) % NAMESPACES}`,
        node: `node-${number % nodes.length}`,
      };
    },
  });
}

/** Starts a controller, and reads its memory when the pool's status counts `count` addresses. */
async function readController(plane: ControlPlane, name: string, count: number): Promise<MemoryFigure> {
  requireUninterrupted();
  const controller = await startControllerProcess({ kubeconfig: plane.kubeconfig, name: "bench" });
  try {
    const isCounted = async (): Promise<boolean> => {
      requireUninterrupted();
      const { status } = await plane.client.get(`${POOLS}/${POOL.name}`);
      return status !== undefined && Number(status.used) === count;
    };
    await until(`the status counts ${count} addresses`, isCounted, COUNT_MS);
    await sleep(REST_MS);
    return readMemory(name, controller.pid);
  } finally {
    await controller.stop();
  }
}
