/** The agent's part of generated pools on a real API server: the wait inside ADD, what it costs, and what holds once a pod has its address. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import * as lab from "../../scripts/lab/cluster/pods.ts";
import { OWN, type TestNode } from "./prefetch-world.ts";
import { beginWaiting, known, SubnetsWorld, type Workload } from "./subnets-agent-world.ts";

let world: SubnetsWorld;
let node: TestNode;
let serial = 0;
let web: Workload;
let name = "";

beforeAll(async () => {
  world = await SubnetsWorld.start();
});
afterAll(() => world?.stop());

beforeEach(async () => {
  // Nothing is claimed ahead: the node has no definition.
  node = await world.base.openNode(`n${++serial}`, {});
  name = `web${serial}`;
  web = await world.deployment(name);
});
afterEach(() => node.close());

/** Of each test its own. */
const address = (last: number): string => `10.6.0.${serial * 8 + last}`;
const say = (what: string, ms: number): void => console.log(`${what}: ${Math.round(ms)} ms`);

describe("an ADD waits", () => {
  it("for its pool, by the event, and asks nothing meanwhile", async () => {
    const pod = await world.pod(node, `${name}-a`, { of: web });
    const { answer, calls } = await beginWaiting(node, pod);
    await world.pool(name, web);
    await known(node, name, 0);
    expect(calls()).toEqual([]);
    await world.fill(name, [address(1)]);
    const filledMs = performance.now();
    expect((await answer).addresses).toBe(address(1));
    const tookMs = performance.now() - filledMs;
    say("from the pool's addresses to the pod's", tookMs);
    expect(tookMs).toBeLessThan(2_000);
    expect(calls()).toEqual(["POST ipallocations"]);
  });

  it("for a pool that grows", async () => {
    await world.pool(name, web, { ips: [address(1)] });
    await known(node, name, 1);
    expect((await node.add(await world.pod(node, `${name}-a`, { of: web }))).addresses).toBe(address(1));
    const { answer, calls } = await beginWaiting(node, await world.pod(node, `${name}-b`, { of: web }));
    expect(calls()).toEqual([]);
    await world.fill(name, [address(1), address(3)]);
    const filledMs = performance.now();
    expect((await answer).addresses).toBe(address(3));
    say("from the pool's growth to the pod's address", performance.now() - filledMs);
    expect(calls()).toEqual(["POST ipallocations"]);
  });

  it("for an address of its full pool that becomes free", async () => {
    await world.pool(name, web, { ips: [address(1)], wanted: 1 });
    await known(node, name, 1);
    const first = await world.pod(node, `${name}-a`, { of: web });
    await node.add(first);
    const { answer } = await beginWaiting(node, await world.pod(node, `${name}-b`, { of: web }));
    await node.cluster.registry.release({ containerId: `c-${first.name}`, ifName: "eth0" });
    const freedMs = performance.now();
    await node.later(30_000);
    expect((await answer).addresses).toBe(address(1));
    say("from the free address to the pod's", performance.now() - freedMs);
  });

  it("with all its NICs, and nothing of them is claimed before", async () => {
    const subnets = ["eth0", "net1"].map((nic) => ({ interface: nic, ipv4: ["blue"] }));
    const annotations = { subnets, "k8s.v1.cni.cncf.io/networks": "second" };
    const pod = await world.pod(node, `${name}-a`, { of: web, annotations });
    await world.pool(`${name}-0`, web, { ips: [address(1)] });
    await known(node, `${name}-0`, 1);
    const { answer } = await beginWaiting(node, pod);
    expect(await allocations()).toEqual([]);
    await world.pool(`${name}-1`, web, { ips: [address(3)], nic: "net1" });
    expect((await answer).addresses).toBe(address(1));
    expect(await allocations()).toEqual([`${name}-a eth0 Bound`, `${name}-a net1 Bound`]);
    expect((await node.add(pod, { ifName: "net1" })).addresses).toBe(address(3));
  });
});

const allocations = async (): Promise<readonly string[]> =>
  (await world.base.allocations()).filter((line) => line.startsWith(`${name}-`));

describe("what an ADD costs whose pool is there", () => {
  it("one question for the ReplicaSet, and the claim", async () => {
    await world.pool(name, web, { ips: [address(1), address(3)] });
    await known(node, name, 2);
    const pods = [await world.pod(node, `${name}-a`, { of: web }), await world.pod(node, `${name}-b`, { of: web })];
    const before = node.calls.length;
    for (const pod of pods) await node.add(pod);
    expect(node.calls.slice(before)).toEqual([
      `LIST /apis/apps/v1/namespaces/shop/replicasets/${name}-5d`,
      "POST ipallocations",
      "POST ipallocations",
    ]);
  });
});

describe("ahead of the ADD", () => {
  it("addresses of a generated pool are claimed, too, and the ADD asks nothing", async () => {
    const ahead = await world.base.openNode(`p${serial}`, { plugin: OWN });
    await world.pool(name, web, { ips: [address(1)] });
    await known(ahead, name, 1);
    const pod = await world.pod(ahead, `${name}-a`, { of: web });
    await expect.poll(() => ahead.aheadOf(pod), { timeout: 10_000 }).toEqual([address(1)]);
    const before = ahead.calls.length;
    expect((await ahead.add(pod)).addresses).toBe(address(1));
    expect(ahead.calls.slice(before)).toEqual([]);
    await ahead.close();
  });

  it("a pool that is not there is left to the ADD at once, and holds up nobody", async () => {
    const ahead = await world.base.openNode(`p${serial}`, { plugin: OWN });
    const other = await world.deployment(`${name}x`);
    await world.pool(`${name}x`, other, { ips: [address(1)] });
    await known(ahead, `${name}x`, 1);
    const pods: lab.LabPod[] = [];
    for (let index = 0; index < 20; index++) pods.push(await world.pod(ahead, `${name}-${index}`, { of: web }));
    const served = await world.pod(ahead, `${name}x-a`, { of: other });
    await expect.poll(() => ahead.aheadOf(served), { timeout: 4_000 }).toEqual([address(1)]);
    await expect.poll(() => ahead.stats().failed, { timeout: 4_000 }).toBe(20);
    const { answer } = await beginWaiting(ahead, pods[7] ?? served);
    await world.pool(name, web, { ips: [address(3)] });
    expect((await answer).addresses).toBe(address(3));
    await ahead.close();
  });
});

describe("once a pod has its address", () => {
  it("it keeps it while its pool is replaced, and after the agent began anew", async () => {
    await world.pool(name, web, { ips: [address(1)] });
    await known(node, name, 1);
    const old = await world.pod(node, `${name}-a`, { of: web });
    expect((await node.add(old)).addresses).toBe(address(1));
    await world.pool(`${name}-g`, web, { subnet: "green", network: "10.7.0.0/24", ips: [`10.7.0.${serial}`] });
    await known(node, `${name}-g`, 1);
    const annotations = { subnet: { ipv4: ["green"] } };
    const young = await world.pod(node, `${name}-b`, { of: web, annotations });
    expect((await node.add(young)).addresses).toBe(`10.7.0.${serial}`);
    await world.fill(name, []);
    await known(node, name, 0);
    expect((await node.add(old)).addresses).toBe(address(1));
    node = await world.base.restart(node, {});
    expect((await node.add(old)).addresses).toBe(address(1));
    expect((await node.add(young)).addresses).toBe(`10.7.0.${serial}`);
    await world.remove(name);
    await expect.poll(() => node.cluster.resources.state.snapshot.pools.has(name), { timeout: 10_000 }).toBe(false);
    const again = await node.add(old);
    expect(again.addresses).toBe(address(1));
    expect(again.tookMs).toBeLessThan(4_000);
  });

  it("a StatefulSet's pod has it again on another node", async () => {
    const set = await world.statefulSet(`db${serial}`);
    await world.pool(name, set, { ips: [`${address(0)}-${address(7)}`], wanted: 8 });
    const other = await world.base.openNode(`q${serial}`, {});
    for (const each of [node, other]) await known(each, name, 1);
    const first = await world.pod(node, `db${serial}-0`, { of: set });
    const { addresses } = await node.add(first);
    await lab.deletePod(world.base.plane.client, first);
    await node.cluster.registry.release({ containerId: `c-${first.name}`, ifName: "eth0" });
    await node.later(30_000);
    const stateOf = async () => (await world.base.plane.client.get(`${lab.ALLOCATIONS}/${addresses}`)).spec.state;
    await expect.poll(stateOf, { timeout: 10_000 }).toBe("Kept");
    const again = await world.pod(other, `db${serial}-0`, { of: set });
    expect((await other.add(again)).addresses).toBe(addresses);
    await other.close();
  });
});

describe("two families", () => {
  afterEach(() => world.settings({ enableIPv6: false }));

  it("come from one pool each, and the ADD waits for both", async () => {
    await world.settings({ enableIPv6: true });
    const isOn = () => node.cluster.resources.state.snapshot.vendorConf.enableIPv6;
    await expect.poll(isOn, { timeout: 10_000 }).toBe(true);
    const annotations = { subnet: { ipv4: ["blue"], ipv6: ["six"] } };
    const pod = await world.pod(node, `${name}-a`, { of: web, annotations });
    await world.pool(`${name}-4`, web, { ips: [address(1)] });
    await known(node, `${name}-4`, 1);
    const { answer } = await beginWaiting(node, pod);
    expect(await allocations()).toEqual([]);
    await world.pool(`${name}-6`, web, { subnet: "six", network: "fd06::/64", ips: ["fd06::7"] });
    expect((await answer).addresses).toBe(`${address(1)} fd06::7`);
  });
});
