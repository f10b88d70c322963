import { expect, it } from "vitest";
import { OwnMachine } from "../../../../host/agent/liveness/own-machine.ts";
import { openLog } from "../../../../host/lib/log.ts";
import { machineOf } from "../../../../host/resources/machine.ts";
import { decodeNode, type Node } from "../../../../host/resources/node.ts";
import { MemoryApiServer } from "../../../fakes/memory-api-server.ts";

const NODES = "/api/v1/nodes";
const BOOT = "boot-1";

const nodeObject = (machineID: string, bootID = BOOT) => ({
  status: { nodeInfo: { machineID, systemUUID: "", bootID } },
});
const nodeOf = (machineId: string, bootId = BOOT): Node =>
  decodeNode({ metadata: { name: "n1" }, ...nodeObject(machineId, bootId) }, "");
const named = (machineId: string): string => machineOf({ systemUuid: "", machineId }) ?? "";

function open({ host, fails = false }: { host?: string; fails?: boolean } = {}) {
  const server = new MemoryApiServer({ serves: { [NODES]: { apiVersion: "v1", kind: "Node" } } });
  const clock = { nowMs: 0 };
  const known: string[] = [];
  const machine = new OwnMachine({
    ...{ api: server.client(), node: "n1", bootId: BOOT, host, nowMs: () => clock.nowMs },
    log: openLog("berth", "silent"),
  });
  const nodeRead = (node: Node | undefined) =>
    machine.nodeRead(node, async (name) => {
      known.push(name);
      if (fails) throw new Error("The disk is broken");
    });
  return { server, clock, known, machine, nodeRead };
}

it.each<[what: string, node: Node | undefined, host: string | undefined, machine: string | undefined]>([
  ["its Node of this boot", nodeOf("m1"), "host", named("m1")],
  ["its Node of this boot, where the host says nothing", nodeOf("m1"), undefined, named("m1")],
  ["the host, where the Node is of another boot, or another machine's", nodeOf("m1", "boot-0"), "host", "host"],
  ["the host, without a Node", undefined, "host", "host"],
  ["the host, where the Node says nothing", nodeOf(""), "host", "host"],
  ["nothing, where the Node is of another boot", nodeOf("m1", "boot-0"), undefined, undefined],
  ["nothing, without a Node", undefined, undefined, undefined],
])("which machine this is says %s", async (_what, node, host, wanted) => {
  const { machine, known, nodeRead } = open(host === undefined ? {} : { host });
  const identified = machine.identified();
  expect(machine.current).toBe(undefined);
  await nodeRead(node);
  await identified;
  expect(machine.identified()).toBe(undefined);
  expect(machine.current).toBe(wanted);
  expect(known).toEqual(wanted === undefined ? [] : [wanted]);
});

it("becomes known when the kubelet reports this boot, and stays the same", async () => {
  const { machine, known, nodeRead } = open();
  await nodeRead(nodeOf("m1", "boot-0"));
  await nodeRead(nodeOf("m2"));
  await nodeRead(nodeOf("m3"));
  expect(machine.current).toBe(named("m2"));
  expect(known).toEqual([named("m2")]);
});

it("is known although the journal cannot record it", async () => {
  const { machine, nodeRead } = open({ fails: true });
  await nodeRead(nodeOf("m1"));
  expect(machine.current).toBe(named("m1"));
});

it("proves that it is a machine only once it is known, and if no other node reports the same", async () => {
  const { machine, server, clock, nodeRead } = open();
  server.put(NODES, "n1", nodeObject("m1"));
  server.put(NODES, "n2", nodeObject("m2"));
  const waiting = machine.prove(named("m1"));
  await nodeRead(nodeOf("m1"));
  expect(await waiting).toBe(named("m1"));
  server.put(NODES, "n3", nodeObject("m1", "boot of the clone"));
  expect(await machine.prove(named("m1"))).toBe(named("m1"));
  clock.nowMs += 30_000;
  expect(await machine.prove(named("m1"))).toBe(undefined);
  expect(machine.problems).toEqual([expect.stringContaining('the same systemUUID and machineID as node "n3"')]);
  server.remove("n3", NODES);
  clock.nowMs += 30_000;
  expect(await machine.prove(named("m1"))).toBe(named("m1"));
  expect(machine.problems).toEqual([]);
});

it("of another machine's record it proves without a question which one it is", async () => {
  const { machine, server, nodeRead } = open();
  server.client = () => expect.unreachable();
  await nodeRead(nodeOf("m1"));
  expect(await machine.prove(named("m2"))).toBe(named("m1"));
});
