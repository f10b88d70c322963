/**
 * Many agents of a cluster in one process: the product's code of each, on nodes that have no kernel work.
 *
 *   await using fleet = await openFleet({ plane, nodes: 50, hasNetwork: true });
 *   const pod = await fleet.pods.create({ name: "web-0", node: fleet.nodes[3] });
 *   const { addresses, tookMs } = await pod.add();
 *   await pod.del(); await pod.delete();
 *
 * Each agent has connections, journal and thread of its own. What the runtime and the shim would do is a call of the agent's functions.
 * Effects: objects in the API server; journals below the system's temporary folder.
 */

import { randomUUID } from "node:crypto";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ClusterBackend } from "../../../host/agent/cluster/backend.ts";
import { startMaintenance } from "../../../host/agent/maintenance.ts";
import { root } from "../../setup/paths.mjs";
import { connectClient, openBackend } from "../cluster/in-process.ts";
import type { ControlPlane } from "../control-plane.ts";
import { type CountedApi, countCalls } from "./counted-api.ts";

export interface FleetOptions {
  readonly plane: ControlPlane;
  readonly nodes: number;
  /** Whether the nodes have a network definition that names Berth: without one nothing is claimed ahead of an ADD. */
  readonly hasNetwork: boolean;
  /** Of the nodes' names. Default: n. */
  readonly prefix?: string;
}

export interface SimNode {
  readonly name: string;
  readonly cluster: ClusterBackend;
  readonly api: CountedApi;
  close(): Promise<void>;
}

export interface Fleet extends AsyncDisposable {
  readonly nodes: readonly SimNode[];
}

/** The network of all pods of a fleet. */
export const NETWORK = "lan";

const CONFLIST = {
  cniVersion: "1.0.0",
  name: NETWORK,
  plugins: [{ type: "macvlan", master: "eth0", ipam: { type: "berth" } }],
};

export function monotonicMs(): number {
  return Number(process.hrtime.bigint() / 1_000_000n);
}

/** Resolves when all agents know the cluster's resources. */
export async function openFleet(options: FleetOptions): Promise<Fleet> {
  const stack = new AsyncDisposableStack();
  try {
    const directory = await mkdtemp(join(tmpdir(), "berth-fleet-"));
    stack.defer(() => rm(directory, { recursive: true, force: true }));
    const coreWasm = await readFile(join(root, "dist", "core", "berth-core.wasm"));
    const bootId = randomUUID();
    const names = Array.from({ length: options.nodes }, (_, index) => `${options.prefix ?? "n"}${index + 1}`);
    const nodes: SimNode[] = [];
    for (const name of names) {
      const node = await openNode(name, { options, directory, coreWasm, bootId });
      stack.defer(() => node.close());
      nodes.push(node);
    }
    const signal = AbortSignal.timeout(60_000);
    await Promise.all(nodes.map(({ cluster }) => cluster.synced(signal)));
    return { nodes, [Symbol.asyncDispose]: () => stack.disposeAsync() };
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}

interface Place {
  readonly options: FleetOptions;
  readonly directory: string;
  readonly coreWasm: Uint8Array;
  readonly bootId: string;
}

async function openNode(name: string, { options, directory, coreWasm, bootId }: Place): Promise<SimNode> {
  const { plane, hasNetwork } = options;
  const labels = { "kubernetes.io/hostname": name };
  await plane.client.apply(`/api/v1/nodes/${name}`, { apiVersion: "v1", kind: "Node", metadata: { name, labels } });
  const stateDirectory = join(directory, name, "state");
  const cniConfDirectory = join(directory, name, "net.d");
  for (const path of [stateDirectory, cniConfDirectory]) await mkdir(path, { recursive: true });
  if (hasNetwork) await writeFile(join(cniConfDirectory, "10-lan.conflist"), JSON.stringify(CONFLIST));
  const api = countCalls(await connectClient(plane.kubeconfig, `berth-agent ${name}`));
  const cluster = await openBackend({ api, node: name, stateDirectory, cniConfDirectory, coreWasm, bootId });
  // Nobody's DEL is spooled here: each finds its agent.
  const { probeQuarantined } = cluster.ipam.detection;
  const { clock, log } = cluster.ipam;
  const spool = { drain: async () => {} };
  const janitor = startMaintenance({ registry: cluster.registry, spool, probeQuarantined, nowMs: clock.nowMs, log });
  const close = async (): Promise<void> => {
    janitor.close();
    await cluster.close();
    await api.close();
  };
  return { name, cluster, api, close };
}
