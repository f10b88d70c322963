/**
 * A kubelet on a node's machine, and the two programs that give it work: the controller manager and the scheduler.
 * Effects: files below the machine's folder; processes.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { referenceTool } from "../../../scripts/setup/paths.mjs";
import type { KubernetesVersion } from "../cluster/plane-parts.ts";
import { type Daemon, startDaemon } from "../daemon.ts";
import type { Netns } from "../netns.ts";
import { runtimeSocket } from "./containerd.ts";
import type { Machine, MachineProcess } from "./machine.ts";

/** Returns the folder of the kubelet and the managers of a version. */
function binOf(version: KubernetesVersion): string {
  return referenceTool(version === "1.34" ? "nodes" : `kubernetes-${version}`).directory;
}

export interface KubeletOptions {
  readonly node: string;
  readonly address: string;
  /** Kubeconfig of the account `system:node:<node>`. */
  readonly kubeconfig: string;
  /** Cgroup of cgroups.ts. */
  readonly cgroup: string;
  readonly kubernetes: KubernetesVersion;
}

/** Manifests of static pods go here. */
export function staticPodFolder({ directory }: Pick<Machine, "directory">): string {
  return join(directory, "manifests");
}

/** It registers its node by itself; nothing is waited for. */
export async function startKubelet(machine: Machine, options: KubeletOptions): Promise<MachineProcess> {
  const { directory } = machine;
  await mkdir(staticPodFolder(machine), { recursive: true });
  await writeFile(join(directory, "resolv.conf"), "nameserver 10.96.0.10\n");
  const config = join(directory, "kubelet.json");
  await writeFile(config, JSON.stringify(kubeletConfiguration(machine, options)));
  return machine.start("kubelet", [
    join(binOf(options.kubernetes), "kubelet"),
    `--config=${config}`,
    `--kubeconfig=${options.kubeconfig}`,
    `--cert-dir=${join(directory, "certificates")}`,
    `--hostname-override=${options.node}`,
    `--node-ip=${options.address}`,
  ]);
}

/** kubelet.config.k8s.io/v1beta1 */
function kubeletConfiguration(machine: Machine, { cgroup }: KubeletOptions): object {
  return {
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    kind: "KubeletConfiguration",
    containerRuntimeEndpoint: `unix://${runtimeSocket(machine)}`,
    staticPodPath: staticPodFolder(machine),
    fileCheckFrequency: "1s",
    clusterDNS: ["10.96.0.10"],
    resolvConf: join(machine.directory, "resolv.conf"),
    cgroupDriver: "cgroupfs",
    cgroupRoot: `/${cgroup}`,
    failCgroupV1: false,
    // Any client that reaches it may read logs: the API server does, without a certificate.
    authentication: { anonymous: { enabled: true }, webhook: { enabled: false } },
    authorization: { mode: "AlwaysAllow" },
    failSwapOn: false,
    enforceNodeAllocatable: [],
    makeIPTablesUtilChains: false,
    oomScoreAdj: 0,
    readOnlyPort: 0,
    healthzPort: 0,
    serializeImagePulls: false,
    // The lab asks one node in seconds.
    nodeStatusUpdateFrequency: "2s",
    nodeLeaseDurationSeconds: 8,
    kubeAPIQPS: 500,
    kubeAPIBurst: 1_000,
    maxPods: 250,
    // All nodes share the machine's disk and memory.
    evictionHard: { "memory.available": "50Mi" },
    imageGCHighThresholdPercent: 100,
    imageMinimumGCAge: "1000h",
  };
}

/** In which time a silent node is NotReady. */
export const NODE_GRACE_S = 12;

/** Both ask as the administrator, and there is one of each. */
export async function startManagers(place: {
  kubeconfig: string;
  accountKey: string;
  ca: string;
  machine: Netns;
  kubernetes: KubernetesVersion;
}) {
  const { kubeconfig, accountKey, ca, machine, kubernetes } = place;
  const common = [
    `--kubeconfig=${kubeconfig}`,
    "--leader-elect=false",
    "--secure-port=0",
    "--kube-api-qps=500",
    "--kube-api-burst=1000",
  ];
  const managers: Daemon[] = [];
  const start = async (name: string, ...args: string[]): Promise<void> => {
    managers.push(await startDaemon(name, [join(binOf(kubernetes), name), ...common, ...args], machine));
  };
  await start(
    "kube-controller-manager",
    `--service-account-private-key-file=${accountKey}`,
    `--root-ca-file=${ca}`,
    `--node-monitor-grace-period=${NODE_GRACE_S}s`,
    "--node-monitor-period=1s",
    "--concurrent-deployment-syncs=10",
    "--concurrent-replicaset-syncs=10",
  );
  await start("kube-scheduler");
  return managers;
}
