/** The agent's part of generated pools on a real API server: the wait inside ADD, what it costs, and what holds once a pod has its address. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { POOL_WAIT_MS } from "../../host/agent/request/add-deadline.ts";
import { type AgentNode, BERTH_PLUGIN } from "../lab/cluster/agent-node.ts";
import * as lab from "../lab/cluster/objects.ts";
import type { World } from "../lab/cluster/world.ts";
import type { KubeObject } from "../lab/kube-client.ts";
import { beginWaiting, known, SubnetPools, type Workload } from "./subnet-pools.ts";

let pools: SubnetPools;
let world: World;
let node: AgentNode;
let serial = 0;
let web: Workload;
let name = "";

beforeAll(async () => {
  pools = await SubnetPools.open();
  ({ world } = pools);
});
afterAll(() => world?.stop());

beforeEach(async () => {
  // Nothing is claimed ahead: the node has no definition.
  node = await world.openAgent(`n${++serial}`);
  name = `web${serial}`;
  web = await pools.deployment(name);
});
afterEach(() => node.close());

/** Of each test its own. */
const address = (last: number): string => `10.6.0.${serial * 8 + last}`;
const say = (what: string, ms: number): void => console.log(`${what}: ${Math.round(ms)} ms`);

describe("an ADD waits", () => {
  it("for its pool, by the event, and asks nothing meanwhile", async () => {
    const pod = await pools.pod(node, `${name}-a`, { of: web });
    const { answer, calls } = await beginWaiting(node, pod);
    await pools.pool(name, web);
    await known(node, name, 0);
    expect(calls()).toEqual([]);
    await pools.fill(name, [address(1)]);
    const filledMs = performance.now();
    expect((await answer).addresses).toBe(address(1));
    const tookMs = performance.now() - filledMs;
    say("from the pool's addresses to the pod's", tookMs);
    expect(tookMs).toBeLessThan(POOL_WAIT_MS - 1_000);
    expect(calls()).toEqual(["POST ipallocations"]);
  });

  it("for a pool that grows", async () => {
    await pools.pool(name, web, { ips: [address(1)] });
    await known(node, name, 1);
    expect((await node.add(await pools.pod(node, `${name}-a`, { of: web }))).addresses).toBe(address(1));
    const { answer, calls } = await beginWaiting(node, await pools.pod(node, `${name}-b`, { of: web }));
    expect(calls()).toEqual([]);
    await pools.fill(name, [address(1), address(3)]);
    const filledMs = performance.now();
    expect((await answer).addresses).toBe(address(3));
    say("from the pool's growth to the pod's address", performance.now() - filledMs);
    expect(calls()).toEqual(["POST ipallocations"]);
  });

  it("for an address of its full pool that becomes free", async () => {
    await pools.pool(name, web, { ips: [address(1)], wanted: 1 });
    await known(node, name, 1);
    const first = await pools.pod(node, `${name}-a`, { of: web });
    await node.add(first);
    const { answer } = await beginWaiting(node, await pools.pod(node, `${name}-b`, { of: web }));
    await node.del(first);
    const freedMs = performance.now();
    await node.later(30_000);
    expect((await answer).addresses).toBe(address(1));
    say("from the free address to the pod's", performance.now() - freedMs);
  });

  it("with all its NICs, and nothing of them is claimed before", async () => {
    const subnets = ["eth0", "net1"].map((nic) => ({ interface: nic, ipv4: ["blue"] }));
    const annotations = { subnets, "k8s.v1.cni.cncf.io/networks": "second" };
    const pod = await pools.pod(node, `${name}-a`, { of: web, annotations });
    await pools.pool(`${name}-0`, web, { ips: [address(1)] });
    await known(node, `${name}-0`, 1);
    const { answer } = await beginWaiting(node, pod);
    expect(await allocations()).toEqual([]);
    await pools.pool(`${name}-1`, web, { ips: [address(3)], nic: "net1" });
    expect((await answer).addresses).toBe(address(1));
    expect(await allocations()).toEqual([`${name}-a eth0 Bound`, `${name}-a net1 Bound`]);
    expect((await node.add(pod, { ifName: "net1" })).addresses).toBe(address(3));
  });
});

const allocations = async (): Promise<readonly string[]> =>
  (await world.allocations())
    .flatMap(({ spec }) => spec.holders.map((holder: KubeObject) => `${holder.pod} ${holder.interface} ${spec.state}`))
    .filter((line) => line.startsWith(`${name}-`))
    .sort();

describe("what an ADD costs whose pool is there", () => {
  it("one question for the ReplicaSet, and the claim", async () => {
    await pools.pool(name, web, { ips: [address(1), address(3)] });
    await known(node, name, 2);
    const pods = [await pools.pod(node, `${name}-a`, { of: web }), await pools.pod(node, `${name}-b`, { of: web })];
    const before = node.api.calls.length;
    for (const pod of pods) await node.add(pod);
    expect(node.api.calls.slice(before)).toEqual([
      `GET namespaces/shop/replicasets/${name}-5d`,
      "POST ipallocations",
      "POST ipallocations",
    ]);
  });
});

describe("ahead of the ADD", () => {
  it("addresses of a generated pool are claimed, too, and the ADD asks nothing", async () => {
    const ahead = await world.openAgent(`p${serial}`, { plugin: BERTH_PLUGIN });
    await pools.pool(name, web, { ips: [address(1)] });
    await known(ahead, name, 1);
    const pod = await pools.pod(ahead, `${name}-a`, { of: web });
    await expect.poll(() => ahead.aheadOf(pod), { timeout: 10_000 }).toEqual([address(1)]);
    const before = ahead.api.calls.length;
    expect((await ahead.add(pod)).addresses).toBe(address(1));
    expect(ahead.api.calls.slice(before)).toEqual([]);
    await ahead.close();
  });

  it("a pod whose pool does not exist is left to its ADD at once, and delays no other pod", async () => {
    const ahead = await world.openAgent(`p${serial}`, { plugin: BERTH_PLUGIN });
    const other = await pools.deployment(`${name}x`);
    await pools.pool(`${name}x`, other, { ips: [address(1)] });
    await known(ahead, `${name}x`, 1);
    const pods: lab.LabPod[] = [];
    for (let index = 0; index < 20; index++) pods.push(await pools.pod(ahead, `${name}-${index}`, { of: web }));
    const served = await pools.pod(ahead, `${name}x-a`, { of: other });
    await expect.poll(() => ahead.aheadOf(served), { timeout: 4_000 }).toEqual([address(1)]);
    await expect.poll(() => ahead.stats.failed, { timeout: 4_000 }).toBe(20);
    const { answer } = await beginWaiting(ahead, pods[7] ?? served);
    await pools.pool(name, web, { ips: [address(3)] });
    expect((await answer).addresses).toBe(address(3));
    await ahead.close();
  });
});

describe("once a pod has its address", () => {
  it("it keeps it while its pool is replaced, and after the agent restarted", async () => {
    await pools.pool(name, web, { ips: [address(1)] });
    await known(node, name, 1);
    const old = await pools.pod(node, `${name}-a`, { of: web });
    expect((await node.add(old)).addresses).toBe(address(1));
    await pools.pool(`${name}-g`, web, { subnet: "green", network: "10.7.0.0/24", ips: [`10.7.0.${serial}`] });
    await known(node, `${name}-g`, 1);
    const annotations = { subnet: { ipv4: ["green"] } };
    const young = await pools.pod(node, `${name}-b`, { of: web, annotations });
    expect((await node.add(young)).addresses).toBe(`10.7.0.${serial}`);
    await pools.fill(name, []);
    await known(node, name, 0);
    expect((await node.add(old)).addresses).toBe(address(1));
    await node.crash();
    expect((await node.add(old)).addresses).toBe(address(1));
    expect((await node.add(young)).addresses).toBe(`10.7.0.${serial}`);
    await pools.remove(name);
    await expect.poll(() => node.snapshot.pools.has(name), { timeout: 10_000 }).toBe(false);
    const again = await node.add(old);
    expect(again.addresses).toBe(address(1));
    expect(again.tookMs).toBeLessThan(4_000);
  });

  it("a StatefulSet's pod has it again on another node", async () => {
    const set = await pools.statefulSet(`db${serial}`);
    await pools.pool(name, set, { ips: [`${address(0)}-${address(7)}`], wanted: 8 });
    const other = await world.openAgent(`q${serial}`);
    for (const each of [node, other]) await known(each, name, 1);
    const first = await pools.pod(node, `db${serial}-0`, { of: set });
    const { addresses } = await node.add(first);
    await lab.deletePod(world.client, first);
    await node.del(first);
    await node.later(30_000);
    const stateOf = async () => (await world.client.get(`${lab.ALLOCATIONS}/${addresses}`)).spec.state;
    await expect.poll(stateOf, { timeout: 10_000 }).toBe("Kept");
    const again = await pools.pod(other, `db${serial}-0`, { of: set });
    expect((await other.add(again)).addresses).toBe(addresses);
    await other.close();
  });
});

describe("two families", () => {
  afterEach(() => pools.settings({ enableIPv6: false }));

  it("come from one pool each, and the ADD waits for both", async () => {
    await pools.settings({ enableIPv6: true });
    const isOn = () => node.snapshot.vendorConf.enableIPv6;
    await expect.poll(isOn, { timeout: 10_000 }).toBe(true);
    const annotations = { subnet: { ipv4: ["blue"], ipv6: ["six"] } };
    const pod = await pools.pod(node, `${name}-a`, { of: web, annotations });
    await pools.pool(`${name}-4`, web, { ips: [address(1)] });
    await known(node, `${name}-4`, 1);
    const { answer } = await beginWaiting(node, pod);
    expect(await allocations()).toEqual([]);
    await pools.pool(`${name}-6`, web, { subnet: "six", network: "fd06::/64", ips: ["fd06::7"] });
    expect((await answer).addresses).toBe(`${address(1)} fd06::7`);
  });
});
