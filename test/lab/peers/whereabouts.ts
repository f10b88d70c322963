/**
 * whereabouts on real nodes whose default network is Multus with a network of its own (`overlay`): its kinds, its
 * plugin, and a macvlan network with it.
 *
 *   await installWhereabouts(cluster);
 *   await applyObject(cluster.client, whereaboutsNetwork("lan", { range: "10.99.64.0/18" }));
 *
 * Effects: objects in the API server; the plugin and its settings in the nodes' folder of plugins.
 */
import { symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { referenceTool } from "../../../scripts/setup/paths.mjs";
import { applyPeerKinds } from "../cluster/peer-kinds.ts";
import type { KubeObject } from "../kube-client.ts";
import { NAMESPACE, type RealCluster } from "../nodes/cluster.ts";

const settingsFile = (cluster: RealCluster): string => join(cluster.binDir, "whereabouts.conf");

export async function installWhereabouts(cluster: RealCluster): Promise<void> {
  await applyPeerKinds(cluster.client);
  // It wants a file, even an empty one.
  await writeFile(settingsFile(cluster), JSON.stringify({ kubernetes: { kubeconfig: cluster.plane.kubeconfig } }));
  await symlink(join(referenceTool("whereabouts").directory, "whereabouts"), join(cluster.binDir, "whereabouts"));
}

/** Returns a network of namespace `shop`: macvlan on the nodes' wire. `ipam`: keys of whereabouts. */
export function whereaboutsNetwork(cluster: RealCluster, name: string, ipam: object): KubeObject {
  const whereabouts = { type: "whereabouts", configuration_path: settingsFile(cluster), ...ipam };
  const plugins = [{ type: "macvlan", master: "eth0", mode: "bridge", ipam: whereabouts }];
  return {
    apiVersion: "k8s.cni.cncf.io/v1",
    kind: "NetworkAttachmentDefinition",
    metadata: { namespace: NAMESPACE, name },
    spec: { config: JSON.stringify({ cniVersion: "1.0.0", name, plugins }) },
  };
}
