/**
 * A storm of pods against a pool with nothing leased, at the speed of a cluster: each block rests its minute, and no
 * ADD fails within its patience.
 */
import { afterAll, expect, it } from "vitest";
import { NetnsWorld } from "../../../../test/lab/netns/world.ts";
import { createRange } from "../lab/hub.ts";
import { LeasingCluster } from "../lab/leasing-cluster.ts";

const PODS = 100;
const SUBNET = "10.60.0.0/24";
/** The network's own machines. */
const NODES = ["10.60.0.0-10.60.0.31"];

const worlds: NetnsWorld[] = [];
afterAll(async () => {
  for (const world of worlds) await world.delete();
});

it("of 100 pods each has an address, with blocks of 64 addresses", () => storm(26));

it("the same with blocks of 16", () => storm(28));

async function storm(blockSize: number): Promise<void> {
  const world = new NetnsWorld(`storm${blockSize}`);
  worlds.push(world);
  const fabric = await world.addFabric();
  const machine = await fabric.addHost("control", 5);
  const network = `storm${blockSize}-${process.pid}`;
  const name = `east${blockSize}`;
  const place = { name, machine, address: "10.60.0.5", node: fabric.node1, network };
  const east = await LeasingCluster.open(world, place);
  await world.define(network, [{ type: "macvlan", master: "eth0", mode: "bridge", ipam: { type: "berth" } }]);
  await createRange(east.client, "lan", { subnet: SUBNET, blockSize, nodeIPs: NODES }, { [name]: 16 });
  await east.lease({ hub: east.plane, pool: { subnet: SUBNET }, speed: 1 });
  const started = await Promise.all(Array.from({ length: PODS }, (_, number) => east.start(`web-${number}`)));
  const times = started.map(({ tookMs }) => tookMs / 1_000);
  const [first, last] = [Math.min(...times), Math.max(...times)].map((seconds) => seconds.toFixed(1));
  console.log(`blocks of /${blockSize}: ${PODS} ADDs at once, the first after ${first} s, the slowest after ${last} s`);
  expect(started.flatMap(({ refusal = [] }) => refusal)).toEqual([]);
  const addresses = started.map(({ pod }) => pod?.address);
  expect(new Set(addresses).size).toBe(PODS);
}
