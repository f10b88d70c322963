/** A pool gets another gateway while pods of two nodes route by the old one: built agents, and the controller. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { startConditions } from "../../host/controller/conditions/conditions-controller.ts";
import { POOLS } from "../lab/cluster/objects.ts";
import { startWorld, type World } from "../lab/cluster/world.ts";
import { borrowPlane } from "./borrow-plane.ts";

const POOL = `${POOLS}/lan`;
const LONG = { timeout: 30_000 };
const ANNOTATIONS = { "ipam.vendor.io/ippool": '{"ipv4":["lan"]}' };

let world: World;

beforeAll(async () => {
  const pools = [
    {
      name: "lan",
      subnet: "10.6.0.0/24",
      ips: ["10.6.0.1-10.6.0.9"],
      gateway: "10.6.0.1",
      selection: "ascending" as const,
    },
  ];
  const settings = { allocationCooldown: "0s" };
  world = await startWorld({ startPlane: borrowPlane, nodes: ["n1", "n2"], pools, settings });
  await world.lead({ conditions: startConditions });
});
afterAll(() => world?.stop());

async function start(name: string, node: string) {
  const pod = await world.createPod({ name, node, annotations: ANNOTATIONS });
  const { addresses } = await world.node(node).runtime.attach(pod, { limitMs: 5_000 });
  return { pod, address: addresses[0] };
}

async function conditionOf(type: string): Promise<string> {
  const { status } = await world.client.get(POOL);
  const found = status?.conditions?.find((each: { type: string }) => each.type === type);
  return `${found?.status} ${found?.reason} ${found?.message}`;
}

const routersOf = async () => (await world.client.get(POOL)).status?.routers;

it("no pod gets the former gateway until the last one that routes by it has ended, and the condition names these", async () => {
  await expect.poll(routersOf, LONG).toEqual(["10.6.0.1"]);
  const [old, other] = [await start("old-0", "n1"), await start("old-1", "n2")];
  expect([old.address, other.address]).toEqual(["10.6.0.2", "10.6.0.3"]);

  await world.client.patch(POOL, { spec: { gateway: "10.6.0.254" } });
  // Both agents know of the new gateway as soon as a pod gets it.
  const routersGiven = async (node: string) => {
    const { pod, address } = await start(`new-${node}-${Date.now()}`, node);
    expect(address, "the former gateway").not.toBe("10.6.0.1");
    const { routers } = (await world.spec(`${address}`)) ?? {};
    await world.node(node).runtime.detach(pod);
    await world.deletePod(pod);
    return routers;
  };
  for (const node of ["n1", "n2"]) await expect.poll(() => routersGiven(node), LONG).toEqual(["10.6.0.254"]);
  await expect
    .poll(() => conditionOf("OtherGateway"), LONG)
    .toBe(
      "True PodsWithOtherGateway Pods with 2 addresses of the pool route by 10.6.0.1, which it does not name any more: " +
        "10.6.0.2 (pod shop/old-0), 10.6.0.3 (pod shop/old-1); each gets the new routes when it starts the next time, " +
        "and until then no pod gets 10.6.0.1",
    );

  await world.node("n1").runtime.detach(old.pod);
  await world.deletePod(old.pod);
  await expect.poll(() => world.states(), LONG).toHaveLength(1);
  expect(await routersOf()).toEqual(["10.6.0.1", "10.6.0.254"]);
  await world.node("n2").runtime.detach(other.pod);
  await world.deletePod(other.pod);
  await expect.poll(routersOf, LONG).toEqual(["10.6.0.254"]);
  expect(await conditionOf("OtherGateway")).toMatch(/^False SameGateway /);
  await expect.poll(async () => (await start(`later-${Date.now()}`, "n1")).address, LONG).toBe("10.6.0.1");
});
