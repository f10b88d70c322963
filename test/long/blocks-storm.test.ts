/**
 * A storm of pods against a pool with nothing leased: the built controller leases, each block rests its minute, and no
 * ADD fails within its patience.
 */
import { expect, it } from "vitest";
import { startControllerProcess } from "../lab/cluster/controller-process.ts";
import { addMember, applyHubRights, RANGES, rangeObject } from "../lab/cluster/hub.ts";
import { startWorld } from "../lab/cluster/world.ts";
import { inParallel } from "../lab/parallel.ts";

const PODS = 100;
const NODES = ["n1", "n2", "n3", "n4"];
const SUBNET = "10.6.0.0/24";

it.each([26, 28])("a storm of 100 pods, blocks of /%s", async (blockSize) => {
  const world = await startWorld({ nodes: NODES, isDirect: true });
  try {
    const { plane, client } = world;
    await client.create(RANGES, rangeObject("lan", { subnet: SUBNET, blockSize }, { east: 16 }));
    await applyHubRights(client);
    const hub = await plane.writeKubeconfig("hub", { token: await addMember(client, "east") });
    const args = ["--hub-kubeconfig", hub, "--hub-member", "east"];
    const controller = await startControllerProcess({
      kubeconfig: await world.controllerKubeconfig(),
      name: "a",
      args,
    });
    world.defer(() => controller.kill());
    const annotations = { ippool: { ipv4: ["lan"] } };
    const pods = await Promise.all(
      Array.from({ length: PODS }, (_, number) =>
        world.createPod({ name: `web-${number}`, node: NODES[number % NODES.length] as string, annotations }),
      ),
    );
    await world.pool("lan", { subnet: SUBNET, source: { range: "lan" } });
    const timesMs: number[] = [];
    const failures: string[] = [];
    await inParallel(pods, PODS, async (pod) => {
      const { runtime } = world.node(pod.node);
      const startMs = performance.now();
      const { exitCode, text } = await runtime.add(pod, runtime.newContainerId());
      timesMs.push(performance.now() - startMs);
      if (exitCode !== 0) failures.push(text);
    });
    const slowest = (Math.max(...timesMs) / 1_000).toFixed(1);
    const first = (Math.min(...timesMs) / 1_000).toFixed(1);
    console.log(`/${blockSize}: ${PODS} ADDs, the first after ${first} s, the slowest after ${slowest} s`);
    expect(failures).toEqual([]);
  } finally {
    await world.stop();
  }
});
