/**
 * The agent's part of generated pools on a real API server: the wait inside ADD, its refusal, and what holds once a
 * pod has its address.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { POOL_WAIT_MS } from "../../host/agent/request/add-deadline.ts";
import { type AgentNode, BERTH_PLUGIN } from "../lab/cluster/agent-node.ts";
import type * as lab from "../lab/cluster/objects.ts";
import type { World } from "../lab/cluster/world.ts";
import type { KubeObject } from "../lab/kube-client.ts";
import { beginWaiting, known, SubnetPools, type Workload } from "./subnet-pools.ts";

let pools: SubnetPools;
let world: World;
let node: AgentNode;
let serial = 0;
let web: Workload;
let name = "";
const BY = 'IPv4 of interface "eth0" (annotation "ipam.vendor.io/subnet")';

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

/** Returns an address that only this test uses. */
const address = (last: number): string => `10.6.0.${serial * 8 + last}`;

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
    expect(performance.now() - filledMs).toBeLessThan(POOL_WAIT_MS - 1_000);
    expect(calls()).toEqual(["POST ipallocations"]);
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

it("a pod that waited in vain is refused with what is in the way, in its event and by berthctl explain, too", async () => {
  const shortfall =
    'has 1 of 2 addresses wanted (1 replica and 1 more): Subnet "blue" has 0 free of 254, 254 assigned to 12 pools';
  await pools.pool(name, web, { ips: [address(1)] });
  await pools.reportShortfall(name, shortfall);
  await known(node, name, 1);
  await node.add(await pools.pod(node, `${name}-a`, { of: web }));
  const pod = await pools.pod(node, `${name}-b`, { of: web });
  const note = `No address is free for ${BY}: pool "${name}" has no free address (1 of 1 in use or cooling), ${shortfall}`;
  await expect(node.add(pod)).rejects.toMatchObject({ code: 101, message: note });
  const events = async () => {
    const { items } = await world.client.get("/apis/events.k8s.io/v1/namespaces/shop/events");
    const own = items.filter(({ regarding }: KubeObject) => regarding.uid === pod.uid);
    return own.map((event: KubeObject) => [event.reason, event.note]);
  };
  await expect.poll(events, { timeout: 10_000 }).toEqual([["PoolExhausted", note]]);
  const explained = await node.explain(pod);
  expect(explained).toContain(`eth0 IPv4 pool "${name}": fits, but its only address is not free, ${shortfall}`);
  expect(explained[0]).toMatch(/^an ADD of eth0 now would be refused with code 101: No address is free for IPv4 /);
});

it("a pod of a Subnet that does not exist is refused after the wait, in which it makes no calls; then the Subnet is read once", async () => {
  const pod = await pools.pod(node, `${name}-a`, { of: web, annotations: { subnet: { ipv4: ["nowhere"] } } });
  const { answer, calls } = await beginWaiting(node, pod);
  const message = expect.stringContaining('Subnet "nowhere" does not exist');
  await expect(answer).rejects.toMatchObject({ code: 11, message });
  expect(calls().filter((call) => !call.includes("events"))).toEqual(["GET subnets/nowhere"]);
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
});
