/**
 * A control plane, and agents' nodes of it in this process, for the tests of the prefetch: pods are bound as the scheduler does it, their
 * ADDs are calls of addAddresses. Calls of the API server are counted.
 */

import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ClusterBackend } from "../../host/agent/cluster/backend.ts";
import { addAddresses } from "../../host/agent/ipam/add.ts";
import { type PrefetchStats, UNATTACHED_MS } from "../../host/agent/prefetch/prefetcher.ts";
import type { KubeApi, KubeCall } from "../../host/kubernetes/kube-api.ts";
import { formatIp } from "../../host/net/ip.ts";
import { type AddCall, addRequest, connectAgentClient, openBackend } from "../../scripts/lab/cluster/in-process.ts";
import * as objects from "../../scripts/lab/cluster/pods.ts";
import type { ControlPlane } from "../../scripts/lab/control-plane.ts";
import { borrowPlane } from "./borrow-plane.ts";

export const OWN = { type: "macvlan", master: "eth0", ipam: { type: "berth" } };
export const OTHERS = { type: "macvlan", master: "eth0", ipam: { type: "host-local" } };

export interface NodeOptions {
  /** The plugin of the node's own network "lan"; absent: the node has no definition, and nothing is claimed ahead. */
  readonly plugin?: object | undefined;
}

export interface TestNode {
  readonly name: string;
  readonly cluster: ClusterBackend;
  /** `POST ipallocations`, in the order in which they were made; watches are not in it. */
  readonly calls: readonly string[];
  /** Calls whose text this fits wait until the answer resolves. */
  hold: ((call: string) => Promise<void> | undefined) | undefined;
  stats(): PrefetchStats;
  /** `10.6.0.9` of what was claimed ahead for the pod's NIC. */
  aheadOf(pod: objects.LabPod): readonly string[];
  /** The clock goes on by so much, and the janitor looks. */
  later(milliseconds: number): Promise<void>;
  /** Rejects with what the agent refuses the ADD with; gives the addresses, and how long it took. */
  add(pod: objects.LabPod, call?: AddCall): Promise<{ readonly addresses: string; readonly tookMs: number }>;
  close(): Promise<void>;
}

export interface TestWorld {
  readonly plane: ControlPlane;
  openNode(name: string, options?: NodeOptions): Promise<TestNode>;
  /** Another agent on what is on the node's disk now, as after a `kill -9`. The one before is closed, and what that writes is lost. */
  restart(node: TestNode, options?: NodeOptions): Promise<TestNode>;
  /** Made without a node, and bound by a Binding. */
  bind(spec: objects.PodSpec): Promise<objects.LabPod>;
  /** `web-0 eth0 Bound` of each object that has a holder, sorted. */
  allocations(): Promise<readonly string[]>;
  /** Whether there is an object of the address, in any state. */
  hasObject(address: string): Promise<boolean>;
  stop(): Promise<void>;
}

const NAMESPACE = "shop";
const SETTINGS = { enableIPv6: false, allocationCooldown: "30s" };

export async function openWorld(pools: readonly objects.PoolSpec[]): Promise<TestWorld> {
  const plane = await borrowPlane();
  const directory = mkdtempSync(join(tmpdir(), "berth-prefetch-"));
  const open = new Set<TestNode>();
  const stop = async (): Promise<void> => {
    for (const node of open) await node.close();
    await plane.stop();
    rmSync(directory, { recursive: true, force: true });
  };
  let generation = 0;
  const start = async (name: string, stateDirectory: string, options: NodeOptions): Promise<TestNode> => {
    const node = await openNode(plane, { name, stateDirectory, ...options });
    open.add(node);
    return node;
  };
  const stateOf = (name: string): string => join(directory, `${name}-${generation++}`);
  const states = new Map<TestNode, string>();
  try {
    await furnish(plane, pools);
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    plane,
    openNode: async (name, options = { plugin: OWN }) => {
      await plane.client.apply(`${objects.NODES}/${name}`, objects.nodeObject(name));
      const state = stateOf(name);
      const node = await start(name, state, options);
      states.set(node, state);
      return node;
    },
    restart: async (node, options = { plugin: OWN }) => {
      const state = stateOf(node.name);
      cpSync(states.get(node) ?? "", state, { recursive: true });
      open.delete(node);
      await node.close();
      const next = await start(node.name, state, options);
      states.set(next, state);
      return next;
    },
    bind: (spec) => bindPod(plane, spec),
    allocations: async () => {
      const { items } = await plane.client.get(objects.ALLOCATIONS);
      return items
        .flatMap(({ spec }: { spec: { state: string; holders?: { pod: string; interface: string }[] } }) =>
          (spec.holders ?? []).map((holder) => `${holder.pod} ${holder.interface} ${spec.state}`),
        )
        .sort();
    },
    hasObject: async (address) => {
      const { items } = await plane.client.get(objects.ALLOCATIONS);
      return items.some(({ metadata }: { metadata: { name: string } }) => metadata.name === address);
    },
    stop,
  };
}

async function furnish({ client }: ControlPlane, pools: readonly objects.PoolSpec[]): Promise<void> {
  const definitions = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${objects.DEFINITIONS_CRD}`;
  await client.apply(definitions, objects.definitionsCrd());
  for (const name of ["kube-system", NAMESPACE]) {
    const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name } };
    await client.apply(`${objects.NAMESPACES}/${name}`, namespace);
  }
  await client.create(`${objects.NAMESPACES}/kube-system/configmaps`, objects.settingsObject(SETTINGS));
  for (const pool of pools) await client.create(objects.POOLS, objects.poolObject(pool));
}

async function bindPod({ client }: ControlPlane, spec: objects.PodSpec): Promise<objects.LabPod> {
  const pods = `${objects.NAMESPACES}/${NAMESPACE}/pods`;
  const made = objects.podObject(spec);
  const answer = (uid: string) => ({ namespace: NAMESPACE, name: spec.name, uid, node: spec.node });
  // The kubelet's mirror of a static pod is bound when it is made.
  if (spec.annotations?.["kubernetes.io/config.mirror"] !== undefined)
    return answer((await client.create(pods, made)).metadata.uid);
  const { metadata } = await client.create(pods, { ...made, spec: { ...specOf(made), nodeName: undefined } });
  const target = { apiVersion: "v1", kind: "Node", name: spec.node };
  await client.create(`${pods}/${spec.name}/binding`, {
    ...{ apiVersion: "v1", kind: "Binding", metadata: { name: spec.name }, target },
  });
  return answer(metadata.uid);
}

function specOf(pod: { readonly spec?: object }): object {
  return pod.spec ?? {};
}

interface Place extends NodeOptions {
  readonly name: string;
  readonly stateDirectory: string;
}

async function openNode(plane: ControlPlane, { name, stateDirectory, plugin }: Place): Promise<TestNode> {
  const cniConfDirectory = `${stateDirectory}-net.d`;
  for (const path of [stateDirectory, cniConfDirectory]) mkdirSync(path, { recursive: true });
  const network = { cniVersion: "1.0.0", name: "lan", plugins: [plugin] };
  if (plugin !== undefined) writeFileSync(join(cniConfDirectory, "10-lan.conflist"), JSON.stringify(network));
  const api = await connectAgentClient(plane, name);
  const calls: string[] = [];
  let aheadMs = 0;
  const nowMs = (): number => Number(process.hrtime.bigint() / 1_000_000n) + aheadMs;
  const watched = observed(api, calls, (call) => node.hold?.(call));
  const cluster = await openBackend({ api: watched, node: name, stateDirectory, cniConfDirectory, nowMs });
  const node: TestNode = {
    ...{ name, cluster, calls, hold: undefined },
    stats: () => cluster.prefetcher.stats(),
    aheadOf: ({ uid }) => cluster.prefetcher.claimedFor(uid, "eth0").map(({ ip }) => formatIp(ip)),
    later: async (milliseconds) => {
      aheadMs += milliseconds;
      await cluster.registry.releaseUnattached(nowMs() - UNATTACHED_MS);
      await cluster.registry.expire();
    },
    add: async (pod, call = {}) => {
      const request = addRequest(pod, { containerId: `c-${pod.name}`, conf: OWN, ...call });
      const startMs = performance.now();
      const { result } = await addAddresses(cluster.ipam, request, AbortSignal.timeout(30_000));
      const tookMs = performance.now() - startMs;
      return { addresses: result.ips.map(({ address }) => formatIp(address.ip)).join(" "), tookMs };
    },
    close: async () => {
      await cluster.close();
      await api.close();
    },
  };
  await cluster.synced(AbortSignal.timeout(30_000));
  return node;
}

/** The API as it is, with each call noted, and kept waiting where a test says so. */
function observed(api: KubeApi, calls: string[], hold: (call: string) => Promise<void> | undefined): KubeApi {
  return {
    call: async (call) => {
      const text = describeCall(call);
      calls.push(text);
      await hold(text);
      return api.call(call);
    },
    watch: (watch) => api.watch(watch),
    close: () => api.close(),
  };
}

/** `POST ipallocations`; a GET of a whole collection is a LIST. */
function describeCall({ method, path }: KubeCall): string {
  const [, resource = path, name] = /\/(ipallocations|pods|namespaces|nodes|ippools)(?:\/([^/]+))?$/.exec(path) ?? [];
  return `${method === "GET" && name === undefined ? "LIST" : method} ${resource}`;
}
