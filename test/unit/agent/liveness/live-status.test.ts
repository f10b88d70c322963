import { expect, it } from "vitest";
import { readNodeStatus } from "../../../../host/agent/liveness/live-status.ts";
import type { NodeStatus } from "../../../../host/ipam/retention.ts";
import { machineOf } from "../../../../host/resources/machine.ts";
import { OUT_OF_SERVICE } from "../../../../host/resources/node.ts";
import { MemoryApiServer } from "../../../fakes/memory-api-server.ts";

const NODES = "/api/v1/nodes";
const UNREACHABLE = "node.kubernetes.io/unreachable";

const open = () => new MemoryApiServer({ serves: { [NODES]: { apiVersion: "v1", kind: "Node" } } });

function put(server: MemoryApiServer, name: string, machineID: string, taint?: string): void {
  const taints = taint === undefined ? [] : [{ key: taint, effect: "NoExecute" }];
  server.put(NODES, name, { spec: { taints }, status: { nodeInfo: { machineID, systemUUID: "" } } });
}

const named = (machineId: string): string => machineOf({ systemUuid: "", machineId }) ?? "";

it.each<[what: string, taint: string | undefined, machine: string | undefined, status: NodeStatus]>([
  ["is there", undefined, named("m1"), "there"],
  ["is there, and an older writer did not name it", undefined, undefined, "there"],
  ["is silent", UNREACHABLE, named("m1"), "lost"],
  ["is out of service", OUT_OF_SERVICE, named("m1"), "off"],
  ["has lost its name to another one", undefined, named("m2"), "lost"],
  ["has lost its name to one that is out of service", OUT_OF_SERVICE, named("m2"), "lost"],
])("node-lost: a machine that %s", async (_what, taint, machine, status) => {
  const server = open();
  put(server, "n1", "m1", taint);
  expect(await readNodeStatus(server.client(), "n1", machine)).toBe(status);
  expect(await readNodeStatus(server.client(), "n2", machine)).toBe("lost");
});
