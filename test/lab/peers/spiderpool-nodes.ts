/**
 * Spiderpool on real nodes whose default network is Multus with a network of its own (`overlay`): its kinds, its
 * controller, an agent on each node, its plugins under their own names, which Berth's `coordinator` and `ifacer`
 * leave to them, and a macvlan network for the first NIC of pods.
 *
 *   const spiderpool = await installSpiderpool(cluster, { ips: ["10.99.64.1-10.99.127.254"] });
 *   deploymentOf({ name: "web", annotations: { "v1.multus-cni.io/default-network": "kube-system/spider" } });
 *   await spiderpool.stop();
 *
 * Effects: objects in the API server; processes on the nodes; files in the nodes' folder of plugins.
 */
import { rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { referenceTool } from "../../../scripts/setup/paths.mjs";
import { applyObject } from "../apply.ts";
import { applyPeerKinds } from "../cluster/peer-kinds.ts";
import type { KubeObject } from "../kube-client.ts";
import type { RealCluster } from "../nodes/cluster.ts";
import { LAN } from "../nodes/networks.ts";
import { FIXED_SOCKET, type Spiderpool, startSpiderpool } from "./spiderpool.ts";

const API = "spiderpool.spidernet.io/v2beta1";
export const SPIDER_POOL = `/apis/${API}/spiderippools/lan`;

export async function installSpiderpool(
  cluster: RealCluster,
  { ips, serviceCIDR }: { readonly ips: readonly string[]; readonly serviceCIDR: string },
): Promise<AsyncDisposable> {
  const { client, plane, nodes, binDir } = cluster;
  await applyPeerKinds(client);
  for (const object of [poolOf(ips), COORDINATOR, NETWORK]) await applyObject(client, object);
  await client.patch(`/apis/${API}/spidercoordinators/default/status`, {
    status: { phase: "Synced", overlayPodCIDR: [], serviceCIDR: [serviceCIDR] },
  });
  for (const name of ["coordinator", "ifacer"]) await rm(join(binDir, name));
  for (const name of ["spiderpool", "coordinator"])
    await symlink(join(referenceTool("spiderpool").directory, name), join(binDir, name));
  const stack = new AsyncDisposableStack();
  for (const [index, { name, machine }] of nodes.entries()) {
    await machine.run(["mkdir", "-p", "/run/spidernet", "/var/log/spidernet"]);
    const place = { ...machine.netns, enter: (argv: readonly string[]) => machine.enter(argv) };
    const hasController = index === 0;
    const started: Spiderpool = await startSpiderpool({
      ...{ kubeconfig: plane.kubeconfig, node: name, machine: place, socket: FIXED_SOCKET, hasController },
    });
    stack.defer(() => started.stop());
  }
  return stack;
}

function poolOf(ips: readonly string[]): KubeObject {
  const { subnet, gateway } = LAN;
  const spec = { ipVersion: 4, subnet, gateway, ips, default: false, disable: false };
  return { apiVersion: API, kind: "SpiderIPPool", metadata: { name: "lan" }, spec };
}

const COORDINATOR: KubeObject = {
  ...{ apiVersion: API, kind: "SpiderCoordinator", metadata: { name: "default" } },
  spec: {
    ...{ mode: "underlay", podCIDRType: "none", hijackCIDR: [], tunePodRoutes: true },
    ...{ hostRuleTable: 500, podRPFilter: 0, txQueueLen: 0 },
  },
};

const NETWORK: KubeObject = {
  ...{ apiVersion: "k8s.cni.cncf.io/v1", kind: "NetworkAttachmentDefinition" },
  metadata: { namespace: "kube-system", name: "spider" },
  spec: {
    config: JSON.stringify({
      cniVersion: "1.0.0",
      name: "spider",
      plugins: [
        { type: "macvlan", master: "eth0", mode: "bridge", ipam: { type: "spiderpool", default_ipv4_ippool: ["lan"] } },
        { type: "coordinator" },
      ],
    }),
  },
};
