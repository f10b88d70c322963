/** Requests to the journal for one address: each call wakes the registry's thread. */
import { expect, it } from "vitest";
import { allocationLines, openClusterNode } from "../../../world/node.ts";
import { claim, proposal } from "../../../world/subjects.ts";
import { COOLDOWN_MS } from "../registry-suite.ts";

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
      await node.registry.idle();
      return methods.splice(0).filter((method) => !["findDue", "expire", "list"].includes(method));
    };
    await take();
    await node.registry.claim(claim("a", [proposal(NAME)]));
    expect(await take()).toEqual(["claim", "confirm"]);
    await node.registry.release({ containerId: "c-a", ifName: "eth0" });
    expect(await take()).toEqual(onRelease);
    await node.pass(COOLDOWN_MS);
    expect(await take()).toEqual(["findAddress", "forget"]);
    expect([allocationLines(node.server), node.freed]).toEqual([[], [NAME]]);
  },
);
