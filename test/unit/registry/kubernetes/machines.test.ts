/** Two machines that have one node's name, one after the other: the second one and the first one's objects. */
import { expect, it } from "vitest";
import { ALLOCATIONS, type MemoryApiServer } from "../../../fakes/memory-api-server.ts";
import { copyDisk } from "../../../fakes/memory-journal.ts";
import { type ClusterNode, type ClusterNodeOptions, openClusterNode } from "../../../world/node.ts";
import { claim, proposal } from "../../../world/subjects.ts";

const WORKLOAD = { kind: "StatefulSet", namespace: "shop", name: "web", uid: "w", member: "web" };

/** `10.0.0.1: Bound web on m1 of n1` */
function objectsOf(server: MemoryApiServer): readonly string[] {
  return [...server.collection(ALLOCATIONS).values()].map(({ metadata, spec }) => {
    const { state, node, holders = [], lastHolder } = Object(spec);
    const [{ pod = "nothing", machine = "none" } = lastHolder ?? {}] = holders;
    return `${metadata.name}: ${state} ${pod} on ${machine} of ${node}`;
  });
}

function open(machine: string | undefined, options: ClusterNodeOptions = {}): Promise<ClusterNode> {
  return openClusterNode({ poolSize: 1_000, isLivePod: async () => true, machine: () => machine, ...options });
}

it.each([
  ["m1", "m1"],
  ["none", undefined],
])(
  "an object says which machine has the address, and who had it last on which, as it was written: %s",
  async (shown, of) => {
    const before = await open(of);
    const { server, disk } = before;
    await before.bind("10.0.0.1", "web", { workload: WORKLOAD });
    expect(objectsOf(server)).toEqual([`10.0.0.1: Bound web on ${shown} of n1`]);
    const { registry } = await open("m1", { server, disk });
    await registry.release({ containerId: "c-web", ifName: "eth0" });
    await registry.objects.idle();
    expect(objectsOf(server)).toEqual([`10.0.0.1: Kept web on ${shown} of n1`]);
  },
);

it("the same pod on another machine does not get the address by its UID", async () => {
  const node = await open("m1");
  const { server } = node;
  await node.bind("10.0.0.1", "web");
  const other = await open("m2", { server });
  const outcome = await other.registry.claim(claim("uid-web", [proposal("10.0.0.1")], { pod: "web" }));
  expect(outcome.kind).toBe("taken");
  expect(objectsOf(server)).toEqual(["10.0.0.1: Bound web on m1 of n1"]);
});

it("a member's pod on another machine gets the address only after a probe", async () => {
  const node = await open("m1");
  const { server } = node;
  await node.bind("10.0.0.1", "web", { workload: WORKLOAD });
  const readHolderStatus = async () => "gone" as const;
  const other = await open("m2", { server, readHolderStatus, readNodeStatus: async () => "lost" });
  const found = await other.registry.findRetained(WORKLOAD);
  expect(found).toMatchObject([{ owner: "uid-web", quarantine: { reason: "Conflict" } }]);
  const given = claim("uid-web", [proposal("10.0.0.1")], { pod: "web", workload: WORKLOAD });
  expect(await other.registry.claim(given)).toMatchObject({ kind: "taken", by: [{ quarantine: {} }] });
  expect(objectsOf(server)).toEqual(["10.0.0.1: Bound web on m1 of n1"]);
});

it("a copy of the journal on another machine releases nothing", async () => {
  const node = await open("m1");
  const { server, disk } = node;
  await node.bind("10.0.0.1", "web");
  const other = await open("m2", { server, disk: copyDisk(disk), bootId: "boot of m2" });
  expect(await other.stateOf("10.0.0.1")).toBe("Cooling");
  await other.pass(3_600_000);
  expect(objectsOf(server)).toEqual(["10.0.0.1: Bound web on m1 of n1"]);
});

it("rows of an earlier agent wait until it is known which machine this is", async () => {
  const node = await open(undefined);
  const { server, disk } = node;
  await node.bind("10.0.0.1", "web");
  const identified = Promise.withResolvers<void>();
  const other = await open("m1", { server, disk, bootId: "boot-2", identified: () => identified.promise });
  await other.pass(3_600_000);
  expect(objectsOf(server)).toEqual(["10.0.0.1: Bound web on none of n1"]);
  identified.resolve();
  await other.registry.expire();
  expect(objectsOf(server)).toEqual([]);
});
