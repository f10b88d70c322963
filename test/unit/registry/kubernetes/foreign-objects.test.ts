/** A node's memory of other nodes' objects, and its questions about them. */
import { expect, it } from "vitest";
import { WANTED_INTERVAL_MS } from "../../../../host/registry/kubernetes/foreign-objects.ts";
import { LIST_MAX_ADDRESSES } from "../../../../host/registry/kubernetes/kubernetes-registry.ts";
import { MemoryApiServer } from "../../../fakes/memory-api-server.ts";
import { openClusterNode } from "../../../world/node.ts";
import { claim, proposal } from "../../../world/subjects.ts";
import { spanOfTen } from "../registry-suite.ts";

it("cooling-visibility: a cooling address is as old as this node has seen it, whatever the clocks of others say", async () => {
  const server = new MemoryApiServer();
  const [one, other] = [
    await openClusterNode({ server, name: "n1", poolSize: 256 }),
    await openClusterNode({ server, name: "n2", poolSize: 256 }),
  ];
  const startMs = other.clock.nowMs();
  await one.registry.claim(claim("a", [proposal("10.0.0.1")]));
  await one.registry.release({ containerId: "c-a", ifName: "eth0" });
  await one.registry.objects.idle();
  const seen = async () => (await other.registry.findCooling([spanOfTen()], 9, "blue"))[0]?.sinceMs;
  expect(await seen()).toBe(startMs);
  other.clock.jump(2_000);
  expect(await seen()).toBe(startMs);
});

it("cooling-visibility: a pool is marked as wanted at most once in a while", async () => {
  const node = await openClusterNode();
  const marks = () => node.calls.filter((call) => call.startsWith("PATCH")).length;
  for (const wanted of [1, 1, 2]) {
    await node.registry.markWanted("blue");
    expect(marks()).toBe(wanted);
    node.clock.jump(WANTED_INTERVAL_MS / 2);
  }
});

it("exhaustion: surveys at once share a list, but none shares one that began before it", async () => {
  const gate = Promise.withResolvers<void>();
  const node = await openClusterNode({ gate: (_call, commit) => gate.promise.then(commit), poolSize: 9 });
  const surveys = Array.from({ length: 3 }, () => node.registry.listUsed(spanOfTen(), ["blue"]));
  gate.resolve();
  await Promise.all(surveys);
  expect(node.calls).toHaveLength(2);
});

it("exhaustion: pools of more addresses than a list may have are not surveyed", async () => {
  const node = await openClusterNode({ poolSize: LIST_MAX_ADDRESSES + 1 });
  expect(await node.registry.listUsed(spanOfTen(), ["blue"])).toBeUndefined();
  expect(node.calls).toEqual([]);
});
