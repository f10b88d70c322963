/**
 * Blocks of a segment that two clusters share come back to its hub, and the other cluster gets them. In the
 * controllers' time, an hour is a second.
 */
import { afterAll, beforeAll, expect, it } from "vitest";
import * as lab from "../lab/cluster/objects.ts";
import { until } from "../lab/waiting.ts";
import { ip } from "../world/values.ts";
import { answered, openSharing, RANGES, type SharingCluster, shareRange } from "./sharing-clusters.ts";

let east: SharingCluster;
let west: SharingCluster;
let serial = 0;
let range = "";

beforeAll(async () => {
  ({ east, west } = await openSharing(["east", "west"], 3_600));
});
afterAll(async () => {
  for (const each of [east, west]) await each?.stop();
});

/** All four blocks of four addresses are east's, and some pod of it is in each. */
async function leaseAll(): Promise<void> {
  const net = ++serial;
  range = `lan${net}`;
  await shareRange([east, west], range, { subnet: `10.${net}.0.0/28`, blockSize: 30, gateway: `10.${net}.0.1` });
  await west.world.client.delete(`${lab.POOLS}/${range}`);
  for (let at = 0; (await leases("east")).length < 4; at++)
    expect(await east.start(`${range}-${at}`, range)).toMatch(/^10\./);
}

async function leases(member: string): Promise<readonly string[]> {
  const { leases = {} } = (await east.world.client.get(`${RANGES}/${range}`)).status ?? {};
  return Object.keys(leases).filter((block) => leases[block].member === member);
}

async function states(): Promise<readonly string[]> {
  const { status } = await east.world.read("ippools", range);
  return (status?.source?.blocks ?? []).map(({ state }: { state: string }) => state);
}

async function claims(): Promise<readonly string[]> {
  const all = [...(await east.world.allocations()), ...(await west.world.allocations())];
  return all.flatMap(({ metadata, spec }) => (spec.node === `hub/${range}` ? [metadata.name] : []));
}

it("what a cluster has free for long goes to the other one, and no address is given twice", async () => {
  const controllers = await Promise.all([east.lead(), west.lead()]);
  await leaseAll();
  await east.stopPods();
  const { subnet, gateway } = (await east.world.read("ippools", range)).spec;
  await until("a block is back", async () => (await leases("east")).length < 4);
  expect(await claims()).not.toEqual([]);
  await west.world.pool(range, { subnet, gateway, source: { range } });
  expect(await west.start(`${range}-a`, range)).toMatch(/^10\./);
  expect(answered).toEqual([]);
  await until("the claims are gone", async () => (await claims()).length === 0);
  await west.stopPods();
  await west.world.client.delete(`${lab.POOLS}/${range}`);
  await until("the blocks of a deleted pool are back", async () => (await leases("west")).length === 0);
  for (const each of controllers) await each.close();
});

it("a controller goes on where an earlier one was killed, between the claims and the hub's answer", async () => {
  let isCut = false;
  let answers = 0;
  const first = await east.lead(
    east.hubWith((method) => {
      if (isCut && method === "PATCH") throw new Error(`cut off ${++answers}`);
    }),
  );
  await leaseAll();
  isCut = true;
  await east.stopPods();
  await until("all addresses are claimed", async () => answers > 0 && (await claims()).length === 4);
  await first.close();
  expect(await leases("east")).toHaveLength(4);
  const second = await east.lead();
  await until("the block is back", async () => (await leases("east")).length === 3);
  await until("the claims are gone", async () => (await claims()).length === 0);
  await second.close();
});

it("a pod that claims an address meanwhile keeps the block", async () => {
  const controller = await east.lead();
  await leaseAll();
  const pod = await east.world.bindPod({ name: `${range}-late`, node: "n1" });
  let taken = "";
  controller.api.before = async ({ method, path, body }) => {
    if (method !== "POST" || !path.endsWith("/ipallocations") || taken !== "") return;
    // Claims of its block's other addresses are under way.
    taken = (body as { spec: { address: string } }).spec.address;
    const proposals = [{ space: "", ip: ip(taken), prefixLength: 28, pool: range, ifName: "eth0" }];
    await east.agent.claim(taken, pod, { proposals });
  };
  await east.stopPods();
  await until("a claim is refused", async () => taken !== "" && (await states()).includes("Draining"));
  await until("its other addresses are free again", async () => (await claims()).length === 0);
  expect(await leases("east")).toHaveLength(4);
  expect((await east.world.lines()).join()).toContain(`${taken} Bound`);
  await controller.close();
});
