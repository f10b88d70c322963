/** When the comparison of this node's allocations is due because of its Node object. */
import { expect, it } from "vitest";
import { LostAddresses } from "../../../../host/agent/gc/lost-addresses.ts";
import { OwnAllocations } from "../../../../host/agent/reconcile/own-allocations.ts";
import { decodeNode, type Node } from "../../../../host/resources/node.ts";
import { ALLOCATIONS } from "../../../fakes/memory-api-server.ts";
import { until } from "../../../lab/waiting.ts";
import { openClusterNode } from "../../../world/node.ts";

const self = (uid: string, notice?: string): Node => {
  const annotations = notice === undefined ? {} : { "ipam.vendor.io/read-allocations": notice };
  return decodeNode({ metadata: { name: "n1", uid, annotations } }, "n1");
};

async function openOwn() {
  const { api, name: node, registry, log, calls, clock } = await openClusterNode();
  const own = new OwnAllocations(
    {
      ...{ api, node, registry, log, relists: () => 0, isTold: async () => true },
      ...{ collector: { isPodGone: async () => false, adopted: () => {} } },
      machine: { prove: async () => undefined },
      lost: new LostAddresses({ log, events: { emit: () => {} } }),
    },
    { graceMs: () => 60_000, nodeLostMs: () => 600_000, nowMs: clock.nowMs, random: () => 0.5 },
  );
  await own.reconciled(AbortSignal.timeout(30_000));
  const reads = async (key: string, value: Node, before?: Node): Promise<string[]> => {
    calls.length = 0;
    if (key === "set") own.nodeChanged({ kind: "set", key: node, value, before });
    else own.nodeChanged({ kind: "gone", key: node, before: value });
    // A read that is due begins with the worker's next turn.
    await until("the turn is over", () => calls.length > 0, 300).catch(() => {});
    return calls.map((call) => String(call));
  };
  return { own, reads };
}

const listed = expect.stringContaining(ALLOCATIONS);

it("recreate: with the first Node object all are read if it has a notice: it may not be the only one since the start", async () => {
  const { own, reads } = await openOwn();
  expect(await reads("set", self("u", "2 10.0.0.2"))).toEqual([`GET ${ALLOCATIONS}`]);
  await own.close();
});

it("recreate: a new notice has its allocations read, and a new Node object all", async () => {
  const { own, reads } = await openOwn();
  expect(await reads("set", self("u"))).toEqual([]);
  expect(await reads("set", self("u", "1 10.0.0.1"), self("u"))).toEqual([listed]);
  expect(await reads("set", self("u", "1 10.0.0.1"), self("u")), "the same again").toEqual([]);
  expect(await reads("set", self("u"), self("u")), "it has been removed").toEqual([]);
  expect(await reads("gone", self("u"))).toEqual([]);
  expect(await reads("set", self("u")), "it is there again").toEqual([listed]);
  expect(await reads("set", self("v"), self("u")), "a list missed its end").toEqual([listed]);
  expect(own.stats).toEqual({ lost: 0, notices: 1 });
  await own.close();
});
