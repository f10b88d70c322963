/** Requests to the journal for one address: each call wakes the registry's thread. */
import { expect, it } from "vitest";
import { allocationLines, openClusterNode } from "../../../world/node.ts";
import { claim, proposal } from "../../../world/subjects.ts";
import { COOLDOWN_MS, held } from "../registry-suite.ts";

const NAME = "10.0.0.1";

it.each([
  ["large", 1_000, ["release", "findAddress"]],
  ["small", 256, ["release", "findAddress", "findAddress"]],
] as const)(
  "in a %s pool a row is read once for each write of its object in the background",
  async (_, poolSize, onRelease) => {
    const methods: string[] = [];
    const node = await openClusterNode({
      poolSize,
      around: (method, _args, run) => {
        methods.push(method);
        return run();
      },
    });
    const take = async (): Promise<string[]> => {
      await node.registry.objects.idle();
      return methods.splice(0).filter((method) => !["findDue", "expire", "list"].includes(method));
    };
    await take();
    await node.registry.claim(claim("a", [proposal(NAME)]));
    expect(await take()).toEqual(["claim", "record"]);
    await node.registry.release({ containerId: "c-a", ifName: "eth0" });
    expect(await take()).toEqual(onRelease);
    await node.pass(COOLDOWN_MS);
    expect(await take()).toEqual(["findAddress", "forget"]);
    expect([allocationLines(node.server), node.freed]).toEqual([[], [NAME]]);
  },
);

it("an address is answered when the journal knows that it is confirmed, and not before", async () => {
  const node = await openClusterNode();
  const confirming = Promise.withResolvers<void>();
  const go = Promise.withResolvers<void>();
  node.around = (method, _args, run) => {
    if (method !== "record") return run();
    confirming.resolve();
    return go.promise.then(run);
  };
  let isAnswered = false;
  const adding = node.registry.claim(claim("a", [proposal(NAME)])).finally(() => {
    isAnswered = true;
  });
  await confirming.promise;
  await new Promise(setImmediate);
  expect(isAnswered).toBe(false);
  go.resolve();
  expect(held(await adding)).toEqual([NAME]);
});

it("full-disk: a claim that cannot be confirmed is taken back", async () => {
  const node = await openClusterNode();
  // A release has room that is reserved for it.
  node.around = (method, _args, run) => (method === "record" ? Promise.reject(new Error("the disk is full")) : run());
  await expect(node.registry.claim(claim("a", [proposal(NAME)]))).rejects.toThrow("the disk is full");
  await node.pass(0);
  expect([allocationLines(node.server), await node.registry.findOwner("a")]).toEqual([[], []]);
});
