/**
 * The world of the cluster tests before Berth comes into it: pods that are bound, run, finish and go; what the audit
 * says of real objects; which rights agents have.
 */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ALLOCATIONS, boundObject, podPath } from "../../lab/cluster/objects.ts";
import { forceDelete } from "../../lab/cluster/rights.ts";
import { startWorld, type World } from "../../lab/cluster/world.ts";
import { createNetns } from "../../lab/netns.ts";

let world: World;

beforeAll(async () => {
  world = await startWorld({
    pools: [{ name: "blue", subnet: "10.6.0.0/24", ips: ["10.6.0.10-10.6.0.20"] }],
  });
});

afterAll(() => world?.stop());

const allocation = (address: string, podUID: string): object => boundObject({ address, node: "n1", podUID });

it("a pod is bound, runs with the ledger's addresses, finishes and goes", async () => {
  const pod = await world.createPod({ name: "web-0", node: "n1", annotations: { ippool: { ipv4: ["blue"] } } });
  expect(await world.client.get(podPath(pod))).toMatchObject({
    metadata: { uid: pod.uid, annotations: { "ipam.vendor.io/ippool": '{"ipv4":["blue"]}' } },
    spec: { nodeName: "n1" },
    status: { phase: "Pending" },
  });
  const attachment = { pod, ifName: "eth0", containerId: "c1", addresses: ["10.6.0.10"] };
  world.ledger.hold(attachment);
  await world.setRunning(pod);
  expect(await world.client.get(podPath(pod))).toMatchObject({
    status: { phase: "Running", podIP: "10.6.0.10", podIPs: [{ ip: "10.6.0.10" }] },
  });
  expect(await world.audit()).toEqual([
    expect.stringMatching(/^10\.6\.0\.10 is live at shop\/web-0 .* and has no object$/),
  ]);
  await world.client.create(ALLOCATIONS, allocation("10.6.0.10", pod.uid));
  expect(await world.audit()).toEqual([]);
  world.ledger.drop(attachment);
  await world.finishPod(pod);
  expect(await world.audit()).toEqual([expect.stringMatching(/^10\.6\.0\.10 is Bound to .*, which has finished$/)]);
  await world.deletePod(pod);
  await expect(world.client.get(podPath(pod))).rejects.toMatchObject({ status: 404 });
  await expect(world.untilClean(200)).rejects.toThrow(
    /Not within 200 ms: .*\n10\.6\.0\.10 is Bound to .*, which is gone/,
  );
  await forceDelete(world.client, "10.6.0.10");
  await world.untilClean();
});

it("agents find no namespace of the machine but that of their pods", async () => {
  const other = await createNetns(`bw-other-${process.pid}`);
  try {
    const { agent, runtime } = await world.addNode("n9");
    const folder = join("/proc", `${agent.pid}`, "root", "run", "netns");
    const pod = await world.createPod({ name: "web-3", node: "n9", annotations: { ippool: { ipv4: ["blue"] } } });
    expect((await runtime.attach(pod)).addresses).toHaveLength(1);
    expect(await readdir(folder)).toEqual([expect.stringMatching(/^bw-\d+-\d+$/)]);
  } finally {
    await other.delete();
  }
});
