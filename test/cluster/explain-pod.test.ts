/** `explain` of pods on a real API server, which checks the dry run's writes: the ADD does what it said, and nothing was stored before. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { openSelecting, type Selecting } from "./selecting.ts";

let selecting: Selecting;
beforeAll(async () => {
  selecting = await openSelecting();
});
afterAll(() => selecting?.world.stop());

async function objects(): Promise<unknown> {
  const { items } = await selecting.node.api.call({ method: "GET", path: "/apis/ipam.vendor.io/v1/ipallocations" });
  return items;
}

it("says what the ADD of a new pod gets, and that the next one gets none", async () => {
  const { world, node } = selecting;
  await selecting.pool("one", { subnet: "10.6.9.0/24", ips: ["10.6.9.7"], default: true });
  await expect.poll(() => node.snapshot.pools.size, { timeout: 30_000 }).toBe(1);
  const first = await world.createPod({ namespace: "shop", name: "first", node: "n1" });
  const before = await objects();
  expect((await node.explain(first)).at(-1)).toBe(
    'an ADD of eth0 now would get 10.6.9.7 of pool "one", which is free, by pools with spec.default: true',
  );
  expect(await objects()).toEqual(before);
  expect((await selecting.add(first)).addresses).toEqual(["10.6.9.7"]);
  const second = await world.createPod({ namespace: "shop", name: "second", node: "n1" });
  const refused = (await node.explain(second)).at(-1) ?? "";
  expect(refused).toMatch(/^an ADD of eth0 now would be refused with code 101: /);
  const { message } = await selecting.add(second).then(
    () => expect.fail("it was not refused"),
    (error: Error) => error,
  );
  expect(refused.endsWith(message)).toBe(true);
  expect((await node.explain({ ...second, name: "nobody" })).at(-1)).toMatch(/with code 103: Pod shop\/nobody /);
});
