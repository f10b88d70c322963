/** Memory of a cluster's agents when ten thousand addresses are in use: of fifty in one process, and of a built one by itself. */
import { expect, it } from "vitest";
import { startAgent } from "../lab/agent.ts";
import { runPlugin } from "../lab/cnitool.ts";
import { createNetns } from "../lab/netns.ts";
import { eventually } from "../lab/netns-world.ts";
import { inParallel } from "../lab/parallel.ts";
import { mebibytes, printTable } from "../lab/scale/figures.ts";
import { fillPool } from "../lab/scale/fill.ts";
import { NAMESPACE } from "../lab/scale/pods.ts";
import { attachAll, countReasons, createPods, endPods } from "../lab/scale/scenarios.ts";
import { openWorld } from "../lab/scale/world.ts";
import { daemonRssMib } from "../lab/statistics.ts";

const NODES = 50;
const ALLOCATIONS = 10_000;
/** As many as a kubelet runs by default. */
const OWN_PODS = 110;
const EMPTY_MS = 120_000;
/** Of one agent with its pods (design, targets): printed whether it is met. */
const WANTED_MIB = 120;
/** More is a fault. What of a cluster is in it and not in an embedded agent: the client with TLS, the library of kubeconfigs, its watches. */
const MAX_MIB = 130;

function usedBytes(): number {
  globalThis.gc?.();
  return process.memoryUsage.rss();
}

it("fifty agents in one process with ten thousand addresses", async () => {
  const pools = { wide: { subnet: "10.132.0.0/16" } };
  const startBytes = usedBytes();
  await using world = await openWorld({ nodes: NODES, hasNetwork: false, pools });
  const idleBytes = usedBytes();
  const pods = await createPods(world, ALLOCATIONS);
  const { attached, refused } = await attachAll(world, pods);
  expect(countReasons(refused)).toEqual({});
  const fullBytes = usedBytes();
  printTable(`${NODES} agents in one process`, [
    ["an agent without a pod", mebibytes((idleBytes - startBytes) / NODES)],
    [`an agent with ${ALLOCATIONS / NODES} of ${ALLOCATIONS} addresses`, mebibytes((fullBytes - startBytes) / NODES)],
    ["the whole process, with the test", mebibytes(fullBytes)],
  ]);
  await endPods(world, attached);
  await world.empty(EMPTY_MS);
  expect(world.history.checker.breaches).toEqual([]);
});

it("a built agent with 110 pods of its own among ten thousand addresses", async () => {
  const subnet = "10.133.0.0/16";
  await using world = await openWorld({ nodes: 0, hasNetwork: false, pools: { wide: { subnet } } });
  let left = ALLOCATIONS - OWN_PODS;
  await fillPool(world.plane.etcdUrl, { subnet, pool: "wide", isTaken: () => left-- > 0 });
  const { client, kubeconfig } = world.plane;
  await client.create("/api/v1/nodes", { apiVersion: "v1", kind: "Node", metadata: { name: "built" } });
  const netns = await createNetns(`memory-${process.pid}`);
  const agent = await startAgent({ config: {}, kubeconfig, args: ["--node", "built"] });
  try {
    await eventually(
      () => agent.request("/v1/health"),
      ({ status }) => status === 200,
    );
    const idleMib = daemonRssMib(agent.pid);
    const numbers = Array.from({ length: OWN_PODS }, (_, number) => number);
    const outcomes = await inParallel(numbers, 4, async (number) => {
      const name = `own-${number}`;
      await client.create(`/api/v1/namespaces/${NAMESPACE}/pods`, {
        ...{ apiVersion: "v1", kind: "Pod", metadata: { name } },
        spec: { nodeName: "built", containers: [{ name: "main", image: "example/main:1" }] },
      });
      return runPlugin({
        ...{ plugin: "berth", command: "ADD", containerId: name, netns: netns.path, ifName: "eth0" },
        args: `IgnoreUnknown=1;K8S_POD_NAMESPACE=${NAMESPACE};K8S_POD_NAME=${name}`,
        stdin: { cniVersion: "1.0.0", name: "lan", type: "macvlan", ipam: { type: "berth" } },
        env: agent.env,
      });
    });
    expect(outcomes.filter(({ exitCode }) => exitCode !== 0).map(({ text }) => text)).toEqual([]);
    const fullMib = daemonRssMib(agent.pid);
    printTable(`A built agent, ${ALLOCATIONS} addresses in use in the cluster`, [
      ["without a pod", `${idleMib.toFixed(1)} MiB`],
      [
        `with ${OWN_PODS} pods`,
        `${fullMib.toFixed(1)} MiB, target ${WANTED_MIB}: ${fullMib <= WANTED_MIB ? "met" : "MISSED"}`,
      ],
    ]);
    expect(fullMib).toBeLessThanOrEqual(MAX_MIB);
  } finally {
    await agent.delete();
    await netns.delete();
  }
});
