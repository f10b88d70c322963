/** One node's agent in this process, on a real API server, and calls of its ADD as the plugins of any network make them. */
import { randomUUID } from "node:crypto";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { type ClusterBackend, openClusterBackend } from "../../host/agent/cluster/backend.ts";
import { addAddresses } from "../../host/agent/ipam/add.ts";
import { decodeRequest } from "../../host/cni/request.ts";
import { openKubeClient } from "../../host/kubernetes/client.ts";
import { loadCredentials } from "../../host/kubernetes/credentials.ts";
import type { KubeApi, WatchEvent } from "../../host/kubernetes/kube-api.ts";
import { createFaultCounter } from "../../host/lib/fault.ts";
import { openLog } from "../../host/lib/log.ts";
import { formatIp } from "../../host/net/ip.ts";
import * as objects from "../../scripts/lab/cluster/pods.ts";
import { writeAgentKubeconfig } from "../../scripts/lab/cluster/rights.ts";
import type { ControlPlane } from "../../scripts/lab/control-plane.ts";
import type { KubeClient } from "../../scripts/lab/kube-client.ts";
import { root } from "../../scripts/setup/paths.mjs";
import { borrowPlane } from "./borrow-plane.ts";

export const NODE = "n1";
const SETTINGS = `${objects.NAMESPACES}/kube-system/configmaps/vendor-conf`;
const DEFINITIONS = "/apis/k8s.cni.cncf.io/v1/namespaces";

export interface AddWish {
  readonly ifName?: string;
  /** `name` of the configuration. Default: lan. */
  readonly network?: string;
  readonly ipam?: object;
  /** Default: the pod's; "": the runtime gives none. */
  readonly uid?: string;
  readonly args?: string;
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
    const node = await openClusterBackend({
      ...{ api: holding.api, node: NODE, configNamespace: "kube-system", random: Math.random },
      ...{ stateDirectory: join(directory, "state"), cniConfDirectory, bootId: "b", lockWaitMs: 0 },
      coreWasm: await readFile(join(root, "dist", "core", "berth-core.wasm")),
      nowMs: () => Math.floor(performance.now()),
      faultCounter: createFaultCounter(),
      log: openLog("berth-agent", "error"),
      onDeath: (error) => {
        throw error;
      },
    });
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
  for (const name of ["kube-system", "shop", "infra"]) await client.apply(`${objects.NAMESPACES}/${name}`, { apiVersion: "v1", kind: "Namespace", metadata: { name } }); // biome-ignore format: one thought
  await client.create(objects.NODES, objects.nodeObject(NODE, { zone: "a" }));
  await client.apply(SETTINGS, objects.settingsObject({ enableIPv6: false }));
}

/** An API whose news of pods can be held back: a cache that is behind. */
async function openHolding(plane: ControlPlane): Promise<{ api: KubeApi; hold: (isHeld: boolean) => void }> {
  const credentials = await loadCredentials({ kubeconfig: await writeAgentKubeconfig(plane, NODE) });
  const api = openKubeClient({ credentials, userAgent: "berth-agent", random: Math.random });
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
      const request = requestOf(pod, wish);
      const { result } = await addAddresses(node.tools, request, AbortSignal.timeout(30_000));
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

function requestOf({ namespace, name, uid }: Pick<objects.LabPod, "namespace" | "name" | "uid">, wish: AddWish) {
  const given = wish.uid ?? uid;
  const args = wish.args ?? [`K8S_POD_NAMESPACE=${namespace}`, `K8S_POD_NAME=${name}`, ...(given === "" ? [] : [`K8S_POD_UID=${given}`])].join(";"); // biome-ignore format: one thought
  const headers = {
    ...{ "cni-command": "ADD", "cni-containerid": randomUUID(), "cni-netns": "/run/netns/none" },
    ...{ "cni-ifname": wish.ifName ?? "eth0", "cni-path": "/bin", "cni-args": args },
  };
  const conf = { cniVersion: "1.0.0", name: wish.network ?? "lan", type: "macvlan" };
  const request = decodeRequest("berth", headers, JSON.stringify({ ...conf, ipam: { type: "berth", ...wish.ipam } }));
  if (request.command !== "ADD") throw new Error("This is no ADD");
  return request;
}
