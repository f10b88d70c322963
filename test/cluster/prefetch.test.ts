/**
 * The rule prefetch on a real API server: who is claimed for ahead of the ADD, who is not, and what becomes of it.
 */

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type AgentNode, BERTH_PLUGIN, OTHER_PLUGIN } from "../lab/cluster/agent-node.ts";
import { followWorld } from "../lab/cluster/followed-world.ts";
import { applyDefinition, deletePod, type LabPod } from "../lab/cluster/objects.ts";
import { SETS, statefulSet } from "../lab/cluster/workload-kinds.ts";
import { startWorld, type World } from "../lab/cluster/world.ts";
import type { KubeObject } from "../lab/kube-client.ts";
import { until } from "../lab/waiting.ts";
import { borrowPlane } from "./borrow-plane.ts";

let world: World;
let node: AgentNode;
let serial = 0;

beforeAll(async () => {
  world = await startWorld({
    startPlane: borrowPlane,
    settings: { allocationCooldown: "30s" },
    pools: [{ name: "blue", subnet: "10.6.0.0/16" }],
  });
  await followWorld(world, { endsWithPods: true });
  for (const [name, plugin] of Object.entries({ own: BERTH_PLUGIN, others: OTHER_PLUGIN }))
    await applyDefinition(world.client, "shop", name, {
      cniVersion: "1.0.0",
      name: `net-${name}`,
      plugins: [plugin],
    });
});
afterAll(() => world?.stop());

beforeEach(async () => {
  node = await world.openAgent(`n${++serial}`, { plugin: BERTH_PLUGIN });
});
afterEach(() => node.close());

const bind = (name: string, rest: object = {}): Promise<LabPod> =>
  world.bindPod({ name: `${name}-${serial}`, node: node.name, ...rest });

/** Returns the API server's objects of a pod. */
const objectsOf = async ({ name }: LabPod): Promise<string[]> =>
  (await world.allocations())
    .flatMap(({ spec }) => (spec.holders ?? []).map((holder: KubeObject) => ({ ...holder, state: spec.state })))
    .filter(({ pod }) => pod === name)
    .map((holder) => `${holder.interface} ${holder.state}`)
    .sort();

const claimed = (pod: LabPod, count = 1): Promise<number> =>
  until(
    `${count} claimed for ${pod.name}`,
    async () => node.stats.claimed >= count && (await objectsOf(pod)).length === count,
  );

describe("an ADD after a prefetch", () => {
  it("prefetch: asks the API server for nothing, and no other object is made", async () => {
    const pod = await bind("web");
    await claimed(pod);
    const before = [...node.api.calls];
    expect(before.filter((call) => call === "POST ipallocations")).toHaveLength(1);
    const { addresses } = await node.add(pod);
    expect(addresses).toMatch(/^10\.6\./);
    expect(node.api.calls).toEqual(before);
    expect(await objectsOf(pod)).toEqual(["eth0 Bound"]);
    expect(node.stats).toMatchObject({ wanted: 1, claimed: 1, adds: 1, used: 1 });
  });
});

describe("nothing is claimed", () => {
  it("for NICs of other IPAMs: of two NICs only Berth's", async () => {
    await node.stop();
    node.setNetwork(OTHER_PLUGIN);
    await node.crash();
    const pod = await bind("web", { annotations: { "k8s.v1.cni.cncf.io/networks": "others, own" } });
    await claimed(pod);
    expect(await objectsOf(pod)).toEqual(["net2 Bound"]);
    const before = [...node.api.calls];
    await node.add(pod, { ifName: "net2", network: "net-own" });
    expect(node.api.calls).toEqual(before);
    expect(node.stats).toMatchObject({ wanted: 1, used: 1 });
  });
});

describe("retention: a pod that keeps its address", () => {
  const stateOf = async (address: string): Promise<string> => (await world.spec(address))?.state;

  it("has it ahead of its ADD, and it is kept when the pod is deleted before that", async () => {
    const { metadata } = await world.client.create(SETS, statefulSet("db", 1));
    const owner = { apiVersion: "apps/v1", kind: "StatefulSet", name: "db", uid: metadata.uid };
    const first = await bind("db", { owner });
    const { addresses: address } = await node.add(first);
    await node.del(first);
    await deletePod(world.client, first);
    await until("it is kept", async () => (await stateOf(address)) === "Kept");

    const second = await bind("db", { owner });
    await until("it is claimed ahead", () => node.aheadOf(second).length > 0);
    expect(node.aheadOf(second)).toEqual([address]);
    await deletePod(world.client, second);
    await until("it is kept again", async () => (await stateOf(address)) === "Kept");

    const third = await bind("db", { owner });
    await until("it is claimed ahead again", () => node.aheadOf(third).length > 0);
    const before = [...node.api.calls];
    expect(await node.add(third)).toMatchObject({ addresses: address });
    expect(node.api.calls).toEqual(before);
    expect(await stateOf(address)).toBe("Bound");
  });
});
