/** Tests of real nodes that take longer than the gate has time for. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { NAMESPACE, type RealCluster, startRealCluster } from "../lab/nodes/cluster.ts";
import { type Observer, observe } from "../lab/nodes/observe.ts";
import { deploymentOf, paths, statefulSetOf } from "../lab/nodes/workloads.ts";
import { untilDefined } from "../lab/waiting.ts";

const deployments = paths.deployments(NAMESPACE);

let cluster: RealCluster;
let seen: Observer;
beforeAll(async () => {
  cluster = await startRealCluster({ nodes: 3, isObserved: true });
  seen = observe(cluster);
});
afterAll(() => cluster?.stop());

async function remove(collection: string, name: string): Promise<void> {
  await cluster.client.delete(`${collection}/${name}`, { propagationPolicy: "Background" });
  await seen.untilGone(name);
}

it("nodes are killed one after the other, and all pods come back with addresses that fit", async () => {
  await cluster.client.create(deployments, deploymentOf({ name: "web", replicas: 12 }));
  await cluster.client.create(paths.statefulSets(NAMESPACE), statefulSetOf({ name: "db", replicas: 6 }));
  await seen.untilReady("web", 12);
  const kept = (await seen.untilReady("db", 6)).map(({ metadata, status }) => `${metadata.name} ${status.podIP}`);
  for (const node of cluster.nodes) {
    await node.crash();
    await node.boot();
    const isDone = async () => {
      const isAgain = (await seen.pods())
        .filter(({ spec }) => spec.nodeName === node.name)
        .every(({ status }) => status.containerStatuses?.[0].restartCount > 0);
      return (isAgain && (await seen.audit()).length === 0) || undefined;
    };
    await untilDefined(isDone, () => seen.audit().then(JSON.stringify), 120_000);
    await seen.untilReady("web", 12);
    const again = await seen.untilReady("db", 6);
    expect(again.map(({ metadata, status }) => `${metadata.name} ${status.podIP}`)).toEqual(kept);
    const [first] = again;
    await seen.reach(first, await seen.pods());
  }
  await remove(deployments, "web");
  await remove(paths.statefulSets(NAMESPACE), "db");
});
