/**
 * The product's own code in this process on a real API server: its client, the agent of a node, and requests as the
 * agent gets them.
 */
import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import {
  type ClusterBackend,
  type ClusterBackendOptions,
  openClusterBackend,
} from "../../../host/agent/cluster/backend.ts";
import { type AttachRequest, decodeRequest } from "../../../host/cni/request.ts";
import { type KubeClient, openKubeClient } from "../../../host/kubernetes/client.ts";
import { loadCredentials } from "../../../host/kubernetes/credentials.ts";
import { createFaultCounter } from "../../../host/lib/fault.ts";
import { openLog } from "../../../host/lib/log.ts";
import { root } from "../../../scripts/setup/paths.mjs";
import { NO_AUDIT } from "../../world/no-audit.ts";
import type { ControlPlane } from "../control-plane.ts";
import type { LabPod } from "./objects.ts";
import { requestNodeToken, writeAgentKubeconfig } from "./rights.ts";

/** The caller closes it. */
export async function connectClient(kubeconfig: string, userAgent = "berth-test"): Promise<KubeClient> {
  return openKubeClient({ credentials: await loadCredentials({ kubeconfig }), userAgent, random: Math.random });
}

/** With the rights of that node's agent. The caller closes it. */
export async function connectAgentClient(plane: ControlPlane, node: string): Promise<KubeClient> {
  return connectClient(await writeAgentKubeconfig(plane, node), `berth-agent ${node}`);
}

/** A kubeconfig with the controller's account in the plane's folder; returns its path. */
export async function writeControllerKubeconfig(plane: ControlPlane): Promise<string> {
  const token = await requestNodeToken(plane.client, "", { account: "berth-controller", isBound: false });
  return plane.writeKubeconfig("controller", { token });
}

type Needed = "api" | "node" | "stateDirectory" | "cniConfDirectory";

/** The built core, a boot ID of its own, errors to stderr; throws fatal errors of the journal. The folders exist. */
export async function openBackend(
  options: Pick<ClusterBackendOptions, Needed> & Partial<ClusterBackendOptions>,
): Promise<ClusterBackend> {
  return openClusterBackend({
    coreWasm: await readFile(join(root, "dist", "core", "berth-core.wasm")),
    configNamespace: "kube-system",
    bootId: "boot",
    lockWaitMs: 5_000,
    nowMs: () => Number(process.hrtime.bigint() / 1_000_000n),
    random: Math.random,
    faultCounter: createFaultCounter(),
    log: openLog(`berth-agent ${options.node}`, "error"),
    audit: NO_AUDIT,
    onDeath: (error) => {
      throw error;
    },
    ...options,
  });
}

export interface AddCall {
  /** Default: eth0. */
  readonly ifName?: string | undefined;
  /** `name` of the configuration. Default: lan. */
  readonly network?: string | undefined;
  /** Default: a new one. */
  readonly containerId?: string | undefined;
  /** CNI_ARGS. Default: those of the pod; an empty UID is left out. */
  readonly args?: string | undefined;
  /** An address that the runtime requests. */
  readonly requested?: string | undefined;
  /** Added to the plugin's configuration. */
  readonly conf?: object | undefined;
}

/** The ADD of a pod's NIC as macvlan passes it on. */
export function addRequest(pod: Pick<LabPod, "namespace" | "name" | "uid">, call: AddCall = {}): AttachRequest {
  const { ifName = "eth0", network = "lan", containerId = randomUUID(), requested, conf } = call;
  const uid = pod.uid === "" ? [] : [`K8S_POD_UID=${pod.uid}`];
  const args = [`K8S_POD_NAMESPACE=${pod.namespace}`, `K8S_POD_NAME=${pod.name}`, ...uid].join(";");
  const headers = {
    "cni-command": "ADD",
    "cni-containerid": containerId,
    "cni-netns": "/run/netns/none",
    "cni-ifname": ifName,
    "cni-path": "/bin",
    "cni-args": call.args ?? args,
  };
  const runtime = requested === undefined ? {} : { runtimeConfig: { ips: [requested] } };
  const plugin = { cniVersion: "1.0.0", name: network, type: "macvlan", ipam: { type: "berth" }, ...runtime, ...conf };
  const request = decodeRequest("berth", headers, JSON.stringify(plugin));
  if (request?.command !== "ADD") throw new Error(`An ADD became ${request?.command}`);
  return request;
}
