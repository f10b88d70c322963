/**
 * The rule prefetch on a real API server: who is claimed for ahead of the ADD, who is not, and what becomes of it. Many at once are in
 * prefetch-burst.test.ts.
 */

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { UNATTACHED_MS } from "../../host/agent/ipam/prefetch/prefetcher.ts";
import { type AgentNode, BERTH_PLUGIN, OTHER_PLUGIN } from "../lab/cluster/agent-node.ts";
import { applyDefinition, deletePod, type LabPod, setRunning } from "../lab/cluster/objects.ts";
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
    pools: [
      { name: "blue", subnet: "10.6.0.0/16" },
      { name: "green", subnet: "10.8.0.0/24", default: false },
      { name: "tiny", subnet: "10.7.0.0/30", ips: ["10.7.0.1"], default: false },
    ],
  });
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

/** What the API server has of a pod. */
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

/** In any state. */
const hasObject = async (address: string): Promise<boolean> => (await world.spec(address)) !== undefined;

/** The watch has come so far that it shows this one: those before it were seen, too. */
async function seen(): Promise<void> {
  const last = await bind("last");
  await claimed(last);
}

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

  it("finds it when the agent was killed and restarted in between: the journal has it", async () => {
    const pod = await bind("web");
    await claimed(pod);
    await node.crash();
    await until("it is found", () => node.stats.found === 1);
    const { addresses } = await node.add(pod);
    expect(addresses).toMatch(/^10\.6\./);
    expect(node.api.calls.filter((call) => call === "POST ipallocations")).toEqual([]);
    expect(await objectsOf(pod)).toEqual(["eth0 Bound"]);
    expect(node.stats).toMatchObject({ claimed: 0, used: 1 });
  });
});

describe("the ADD that arrives first waits for the claim under way instead of starting its own", () => {
  it("and there is one create", async () => {
    const claim = node.api.holdCall("POST", "before");
    const pod = await bind("web");
    await claim.reached;
    const adding = node.add(pod);
    await until("the ADD waits", () => node.stats.waited === 1);
    claim.open();
    await adding;
    expect(node.api.calls.filter((call) => call === "POST ipallocations")).toHaveLength(1);
    expect(await objectsOf(pod)).toEqual(["eth0 Bound"]);
    expect(node.stats).toMatchObject({ waited: 1, used: 1 });
  });

  it("one that comes right with the binding is served, once", async () => {
    const pod = await bind("web");
    const { addresses } = await node.add(pod);
    expect(addresses).toMatch(/^10\.6\./);
    await seen();
    expect(await objectsOf(pod)).toEqual(["eth0 Bound"]);
  });
});

describe("nothing is claimed", () => {
  it("for hostNetwork pods", async () => {
    const pod = await bind("web", { hostNetwork: true });
    await seen();
    expect([await objectsOf(pod), node.stats.wanted]).toEqual([[], 1]);
  });

  it("for running pods after an agent start", async () => {
    await node.stop();
    const [running, waiting] = [await bind("running"), await bind("waiting")];
    await setRunning(world.client, running, ["10.6.255.1"]);
    await node.crash();
    await claimed(waiting);
    expect([await objectsOf(running), node.stats.wanted]).toEqual([[], 1]);
  });

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

  it("when a pool is exhausted: one attempt, no waiting, and its ADD says why", async () => {
    const annotations = { ippool: { ipv4: ["tiny"] } };
    await claimed(await bind("first", { annotations }));
    const before = node.api.calls.length;
    const pod = await bind("second", { annotations });
    await until("it has failed", () => node.stats.failed === 1);
    // One of all that have an address, one of those that cool elsewhere as this pool's, one of those that cool as another pool's.
    const calls = node.api.calls.slice(before);
    expect(calls.filter((call) => call === "GET ipallocations").length).toBeLessThanOrEqual(3);
    expect(calls).not.toContain("POST ipallocations");
    await expect(node.add(pod)).rejects.toMatchObject({ code: 101 });
  });
});

describe("ippools", () => {
  it("with three NICs: all at once, one create each, and each ADD finds its own", async () => {
    const ippools = ["eth0", "net1", "net2"].map((name) => ({ interface: name, ipv4: ["blue"] }));
    const pod = await bind("web", { annotations: { ippools, "k8s.v1.cni.cncf.io/networks": "own, own" } });
    await claimed(pod, 3);
    const before = [...node.api.calls];
    expect(before.filter((call) => call === "POST ipallocations")).toHaveLength(3);
    const first = await node.add(pod);
    const second = await node.add(pod, { ifName: "net1", network: "net-own" });
    const third = await node.add(pod, { ifName: "net2", network: "net-own" });
    expect(new Set([first, second, third].map(({ addresses }) => addresses)).size).toBe(3);
    expect(node.api.calls).toEqual(before);
    expect(node.stats).toMatchObject({ claimed: 3, adds: 3, used: 3 });
  });
});

describe("prefetch: what does not fit when the ADD comes", () => {
  it("goes back at once, without a cooldown", async () => {
    const pod = await bind("web");
    await claimed(pod);
    const [address = ""] = node.aheadOf(pod);
    const path = `/api/v1/namespaces/shop/pods/${pod.name}`;
    const annotations = { "ipam.vendor.io/ippool": JSON.stringify({ ipv4: ["green"] }) };
    await world.client.patch(path, { metadata: { annotations } });
    await until("the watch has seen it", () => {
      const known = node.snapshot.pods.get(`shop/${pod.name}`);
      return known?.annotations["ipam.vendor.io/ippool"] !== undefined;
    });
    const { addresses } = await node.add(pod);
    expect(addresses).toMatch(/^10\.8\./);
    await until("the first is free", async () => !(await hasObject(address)));
    expect(await objectsOf(pod)).toEqual(["eth0 Bound"]);
    expect(node.stats).toMatchObject({ used: 0, discarded: 1 });
  });
});

describe("retention: a pod that keeps its address", () => {
  const owner = { apiVersion: "apps/v1", kind: "StatefulSet", name: "db", uid: "5d0e7f8a-0000-4000-8000-000000000001" };
  const stateOf = async (address: string): Promise<string> => (await world.spec(address))?.state;

  it("has it ahead of its ADD, and it is kept when the pod is deleted before that", async () => {
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

describe("static-pods: a static pod", () => {
  it("gets its address with its ADD, under the hash of its file: anyone may forge a mirror pod", async () => {
    const hash = "0123456789abcdef0123456789abcdef";
    const mirror = await bind("static", {
      annotations: { "kubernetes.io/config.hash": hash, "kubernetes.io/config.mirror": hash },
    });
    // The watch shows them in order.
    await claimed(await bind("web"));
    const { claimed: before } = node.stats;
    await node.add({ ...mirror, uid: hash });
    expect(node.stats).toMatchObject({ claimed: before, used: 0 });
  });
});

describe("a pod deleted before its ADD", () => {
  it("gives its address back at once", async () => {
    const pod = await bind("web");
    await claimed(pod);
    const [address = ""] = node.aheadOf(pod);
    expect(await hasObject(address)).toBe(true);
    await deletePod(world.client, pod);
    await until("it is free", async () => !(await hasObject(address)));
    expect(node.stats).toMatchObject({ claimed: 1, returned: 1 });
  });

  it("while its claim is under way: nothing of it stays", async () => {
    const claim = node.api.holdCall("POST", "before");
    const pod = await bind("web");
    await claim.reached;
    await deletePod(world.client, pod);
    await until("the watch has seen it", () => !node.snapshot.pods.has(`shop/${pod.name}`));
    claim.open();
    await until("it was counted", () => node.stats.withdrawn + node.stats.returned === 1);
    await until("nothing is left", async () => (await objectsOf(pod)).length === 0);
  });
});

describe("a pod that never comes gives its address back", () => {
  it("unattached: after two minutes, without a cooldown; when it comes later, it claims again", async () => {
    const pod = await bind("web");
    await claimed(pod);
    const [address = ""] = node.aheadOf(pod);
    await node.later(UNATTACHED_MS - 10_000);
    expect(await hasObject(address)).toBe(true);
    await node.later(10_000);
    await until("it is free", async () => !(await hasObject(address)));
    const { addresses } = await node.add(pod);
    expect(addresses).toMatch(/^10\.6\./);
    expect(await objectsOf(pod)).toEqual(["eth0 Bound"]);
    expect(node.stats).toMatchObject({ claimed: 1, timedOut: 1, used: 0 });
  });
});
