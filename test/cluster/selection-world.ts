/** One node's agent in this process, on a real API server, and calls of its ADD as the plugins of any network make them. */

import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import type { ClusterBackend } from "../../host/agent/cluster/backend.ts";
import { addAddresses } from "../../host/agent/ipam/add.ts";
import type { KubeApi, WatchEvent } from "../../host/kubernetes/kube-api.ts";
import { formatIp } from "../../host/net/ip.ts";
import { type AddCall, addRequest, connectAgentClient, openBackend } from "../../scripts/lab/cluster/in-process.ts";
import * as objects from "../../scripts/lab/cluster/pods.ts";
import type { ControlPlane } from "../../scripts/lab/control-plane.ts";
import type { KubeClient } from "../../scripts/lab/kube-client.ts";
import { borrowPlane } from "./borrow-plane.ts";

export const NODE = "n1";
const SETTINGS = `${objects.NAMESPACES}/kube-system/configmaps/vendor-conf`;
const DEFINITIONS = "/apis/k8s.cni.cncf.io/v1/namespaces";

export interface AddWish extends Pick<AddCall, "ifName" | "network" | "args"> {
  readonly ipam?: object;
  /** Default: the pod's; "": the runtime gives none. */
  readonly uid?: string;
}

export interface Given {
  /** `blue 10.6.0.7`, IPv4 first. */
  readonly pools: readonly string[];
  readonly addresses: readonly string[];
  readonly owner: string;
  readonly containerId: string;
}

export interface SelectionWorld {
  readonly client: KubeClient;
  readonly node: ClusterBackend;
  /** While true the agent hears nothing new of its pods. */
  holdPods(isHeld: boolean): void;
  pool(name: string, spec: object): Promise<void>;
  /** Resolves when the agent knows them. */
  settings(settings: { readonly enableIPv6?: boolean; readonly enableSubnet?: boolean }): Promise<void>;
  badSettings(settings: Readonly<Record<string, unknown>>): Promise<void>;
  namespace(name: string, options?: { labels?: object; annotations?: object }): Promise<void>;
  /** A NetworkAttachmentDefinition. */
  definition(namespace: string, name: string, config: object): Promise<void>;
  pod(spec: Omit<objects.PodSpec, "node">): Promise<objects.LabPod>;
  /** Rejects as the plugin would be refused. */
  add(pod: Pick<objects.LabPod, "namespace" | "name" | "uid">, wish?: AddWish): Promise<Given>;
  /** The network definitions of the node: file name and content. */
  write(file: string, content: object): Promise<void>;
  close(): Promise<void>;
}

/** With the pools of networks 10.1 to 10.9, as `pool` makes them. */
export async function startSelectionWorld(): Promise<SelectionWorld> {
  const stack = new AsyncDisposableStack();
  try {
    const plane = await borrowPlane();
    stack.defer(() => plane.stop());
    await furnish(plane.client);
    const directory = await mkdtemp(join(tmpdir(), "berth-selection-"));
    stack.defer(() => rm(directory, { recursive: true, force: true }));
    const cniConfDirectory = join(directory, "net.d");
    await mkdir(cniConfDirectory);
    const holding = await openHolding(plane);
    stack.defer(() => holding.api.close());
    const stateDirectory = join(directory, "state");
    const node = await openBackend({ api: holding.api, node: NODE, stateDirectory, cniConfDirectory, lockWaitMs: 0 });
    stack.defer(() => node.close());
    await node.synced(AbortSignal.timeout(20_000));
    const all = stack.move();
    return worldOf(plane.client, { node, cniConfDirectory, hold: holding.hold, close: () => all.disposeAsync() });
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}

async function furnish(client: KubeClient): Promise<void> {
  const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  await client.apply(`${crds}/${objects.DEFINITIONS_CRD}`, objects.definitionsCrd());
  for (const name of ["kube-system", "shop", "infra"])
    await client.apply(`${objects.NAMESPACES}/${name}`, { apiVersion: "v1", kind: "Namespace", metadata: { name } });
  await client.create(objects.NODES, objects.nodeObject(NODE, { zone: "a" }));
  await client.apply(SETTINGS, objects.settingsObject({ enableIPv6: false }));
}

/** An API whose news of pods can be held back: a cache that is behind. */
async function openHolding(plane: ControlPlane): Promise<{ api: KubeApi; hold: (isHeld: boolean) => void }> {
  const api = await connectAgentClient(plane, NODE);
  let isHeld = false;
  const waiting: (() => void)[] = [];
  const tell = (deliver: () => void): void => void (isHeld ? waiting.push(deliver) : deliver());
  return {
    api: {
      call: (call) => api.call(call),
      watch: (watch) => {
        if (watch.path !== "/api/v1/pods") return api.watch(watch);
        return api.watch({ ...watch, onEvent: (event: WatchEvent) => tell(() => watch.onEvent(event)) });
      },
      close: () => api.close(),
    },
    hold: (held) => {
      isHeld = held;
      if (!held) for (const deliver of waiting.splice(0)) deliver();
    },
  };
}

interface WorldParts {
  readonly node: ClusterBackend;
  readonly cniConfDirectory: string;
  readonly hold: (isHeld: boolean) => void;
  readonly close: () => Promise<void>;
}

function worldOf(client: KubeClient, { node, cniConfDirectory, hold, close }: WorldParts): SelectionWorld {
  return {
    client,
    node,
    holdPods: hold,
    pool: async (name, spec) => {
      await client.apply(`${objects.POOLS}/${name}`, objects.poolObject({ name, subnet: "", default: false, ...spec }));
    },
    settings: async (settings) => {
      const wanted = { enableIPv6: false, enableSubnet: true, ...settings };
      await client.apply(SETTINGS, objects.settingsObject(wanted));
      await expect.poll(() => node.resources.state.snapshot.vendorConf, { timeout: 5_000 }).toMatchObject(wanted);
    },
    badSettings: async (settings) => void (await client.apply(SETTINGS, objects.settingsObject(settings))),
    namespace: async (name, options = {}) => {
      const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name, ...options } };
      await client.apply(`${objects.NAMESPACES}/${name}`, namespace);
    },
    definition: async (namespace, name, config) => {
      const path = `${DEFINITIONS}/${namespace}/network-attachment-definitions/${name}`;
      const metadata = { name, namespace };
      const spec = { config: JSON.stringify(config) };
      await client.apply(path, {
        apiVersion: "k8s.cni.cncf.io/v1",
        kind: "NetworkAttachmentDefinition",
        metadata,
        spec,
      });
    },
    pod: (spec) => objects.createPod(client, { ...spec, node: NODE }),
    add: async (pod, wish = {}) => {
      const { uid = pod.uid, ipam, ...call } = wish;
      const conf = { ipam: { type: "berth", ...ipam } };
      const request = addRequest({ ...pod, uid }, { ...call, conf });
      const { result } = await addAddresses(node.ipam, request, AbortSignal.timeout(30_000));
      const { containerId, ifName } = request;
      const rows = await node.registry.findAttachment({ containerId, ifName });
      const held = [...rows].sort((a, b) => a.ip.family - b.ip.family);
      return {
        pools: held.map(({ pool }) => pool),
        addresses: result.ips.map(({ address }) => formatIp(address.ip)),
        owner: held[0]?.owner ?? "",
        containerId,
      };
    },
    write: (file, content) => writeFile(join(cniConfDirectory, file), JSON.stringify(content)),
    close,
  };
}
