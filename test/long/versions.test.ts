/**
 * Real nodes with other versions of users' software: containerd 2 and CRI-O, which call STATUS of CNI 1.1, and the
 * oldest Kubernetes that is promised.
 */
import { readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { KubernetesVersion } from "../lab/cluster/plane-parts.ts";
import { berthBin } from "../lab/cnitool.ts";
import { NAMESPACE, type RealCluster, startRealCluster } from "../lab/nodes/cluster.ts";
import type { Runtime } from "../lab/nodes/containerd.ts";
import { observe } from "../lab/nodes/observe.ts";
import { deploymentOf, paths } from "../lab/nodes/workloads.ts";

const deployments = paths.deployments(NAMESPACE);
const PODS = 12;

const rows: [runtime: Runtime, kubernetes: KubernetesVersion][] = [
  ["containerd-1", "1.31"],
  ["containerd-2", "1.31"],
  ["containerd-2", "1.34"],
  ["crio", "1.34"],
];

const NAMES: Readonly<Record<Runtime, RegExp>> = {
  "containerd-1": /^containerd:\/\/1[.]/,
  "containerd-2": /^containerd:\/\/2[.]/,
  crio: /^cri-o:\/\/1[.]34[.]/,
};

/** Puts a program before a plugin that writes each call's command into a file, then becomes the plugin. */
async function recordCalls({ binDir }: RealCluster, plugin: string): Promise<() => Promise<string[]>> {
  const [path, calls] = [join(binDir, plugin), join(binDir, `.${plugin}.calls`)];
  await writeFile(calls, "");
  const script = `#!/bin/sh\necho "$CNI_COMMAND" >> ${calls}\nexec ${join(berthBin, plugin)}\n`;
  await writeFile(`${path}.tmp`, script, { mode: 0o755 });
  await rename(`${path}.tmp`, path);
  return async () => (await readFile(calls, "utf8")).split("\n").filter((line) => line !== "");
}

describe.each(rows)("%s with Kubernetes %s", (runtime, kubernetes) => {
  it("runs 12 pods on two nodes, keeps them over restarts of runtime and kubelet, and gets every address back", async () => {
    // The library in containerd 1.6 refuses CNI 1.1.
    const network = runtime === "containerd-1" ? "berth" : "current";
    await using cluster = await startRealCluster({ nodes: 2, network, runtime, kubernetes });
    const nodes = (await cluster.client.get("/api/v1/nodes")).items;
    const infos = nodes.map(({ status }: { status: { nodeInfo: Record<string, string> } }) => status.nodeInfo);
    for (const info of infos) {
      expect(info.containerRuntimeVersion).toMatch(NAMES[runtime]);
      expect(info.kubeletVersion).toContain(`v${kubernetes}.`);
    }
    expect((await cluster.client.get("/version")).gitVersion).toContain(`v${kubernetes}.`);
    const calls = await recordCalls(cluster, "coordinator");
    const seen = observe(cluster);
    const startMs = performance.now();
    await cluster.client.create(deployments, deploymentOf({ name: "web", replicas: PODS }));
    const pods = await seen.untilReady("web", PODS);
    const readyMs = performance.now() - startMs;
    await seen.untilConsistent();
    await seen.reach(pods[0], pods.slice(1));
    const addresses = pods.map(({ status }) => status.podIP).sort();
    for (const node of cluster.nodes)
      for (const program of ["containerd", "kubelet"] as const) await node.restart(program);
    await cluster.ready();
    // A kubelet whose runtime does not answer yet reports pods without addresses.
    const again = await seen.untilReady("web", PODS, ({ status }) => status.podIP !== undefined);
    expect(again.map(({ status }) => status.podIP).sort()).toEqual(addresses);
    await seen.untilConsistent();
    // The kubelet asks for the runtime's status every few seconds; only a runtime that knows CNI 1.1 asks the plugins.
    const isAsked = async (): Promise<boolean> => (await calls()).includes("STATUS");
    if (runtime !== "containerd-1") await expect.poll(isAsked, { timeout: 30_000 }).toBe(true);
    await cluster.client.delete(`${deployments}/web`, { propagationPolicy: "Background" });
    await seen.untilGone("web");
    const returnedMs = await seen.untilReturned();
    const made = await calls();
    const counts = ["ADD", "DEL", "STATUS", "GC"].map(
      (verb) => `${verb} ${made.filter((each) => each === verb).length}`,
    );
    console.log(
      `${infos[0]?.containerRuntimeVersion}, kubelet ${infos[0]?.kubeletVersion}: ${PODS} pods Ready after ${(readyMs / 1000).toFixed(1)} s, ` +
        `addresses back ${(returnedMs / 1000).toFixed(1)} s after the last pod; the coordinator was called: ${counts.join(", ")}`,
    );
    expect(made.filter((each) => each === "ADD").length).toBeGreaterThanOrEqual(PODS);
    expect(made.includes("STATUS")).toBe(runtime !== "containerd-1");
    // go-cni 1.1.14 has no call of GC: Berth's own garbage collection frees leaks under containerd.
    expect(made.includes("GC")).toBe(runtime === "crio");
  });
});
