/**
 * Possible remains of an installation, as lines: files and network of a node, objects of the API server. Without the
 * writes of Kubernetes and the runtime: their folders, events, and neighbours that come and go.
 */
import { root } from "../../../scripts/setup/paths.mjs";
import type { KubeClient, KubeObject } from "../kube-client.ts";
import { readNetworkState } from "../network-state.ts";
import type { RealNode } from "./node.ts";

/** Folders of containerd, kubelet, the library of CNI, and this checkout, wherever it is. */
const FOREIGN = ["/run/containerd", "/var/lib/kubelet", "/var/lib/cni", "/var/log/pods", "/var/log/containers", root];
/** Namespace of the kubelets' heartbeats. */
const NODE_LEASES = "kube-node-lease";
const FOLDERS = ["/opt", "/etc/cni", "/run", "/var/lib", "/var/log"];
/** Type, mode, owner, path, target of a link; then the content of files that a runtime reads. */
const LIST_FILES = `find ${FOLDERS.join(" ")} \\( ${FOREIGN.map((path) => `-path ${path}`).join(" -o ")} \\) -prune -o -printf '%M %U %p %l\\n' | sort
find /opt/cni /etc/cni -type f -exec sha256sum {} + | sort`;

export async function readNodeFootprint({ name, machine }: RealNode): Promise<string[]> {
  const network = await readNetworkState(machine.netns, { neighbours: "permanent" });
  const files = await machine.run(["sh", "-ec", LIST_FILES]);
  return [...network, ...files.split("\n")].filter((line) => line !== "").map((line) => `${name}: ${line}`);
}

/** Names of all objects, of every kind that can be listed. */
export async function readApiFootprint(client: KubeClient): Promise<string[]> {
  const { groups } = await client.get("/apis");
  const versions: string[] = groups.map(({ preferredVersion }: KubeObject) => `apis/${preferredVersion.groupVersion}`);
  const lines: string[] = [];
  for (const version of ["api/v1", ...versions]) {
    const { resources } = await client.get(`/${version}`);
    for (const { name, verbs } of resources as { name: string; verbs: string[] }[]) {
      if (!verbs.includes("list") || name === "events") continue;
      const { items } = await client.get(`/${version}/${name}`);
      for (const { metadata } of items)
        if (metadata.namespace !== NODE_LEASES)
          lines.push(`${version}/${name} ${metadata.namespace ?? ""} ${metadata.name}`);
    }
  }
  return lines;
}

/** Returns the lines that only one of the two has, with a sign in front. */
export function differenceOf(before: readonly string[], after: readonly string[]): string[] {
  const [old, now] = [new Set(before), new Set(after)];
  const gone = before.filter((line) => !now.has(line)).map((line) => `- ${line}`);
  return [...gone, ...after.filter((line) => !old.has(line)).map((line) => `+ ${line}`)];
}
