/**
 * Partial claims: the part that an ADD has got stays claimed if other pods have the rest, and is undone if nothing
 * replaces the rest.
 */

import { expect, it } from "vitest";
import { allocateAddresses } from "../../../../host/agent/ipam/allocate.ts";
import { formatIp } from "../../../../host/net/ip.ts";
import { TestClock } from "../../../world/clock.ts";
import { clusterIpam } from "../../../world/cluster-ipam.ts";
import { type ClusterNode, openClusterNode } from "../../../world/node.ts";
import { claim, pool, proposal, snapshotOf } from "../../../world/subjects.ts";

const BLUE = pool("blue", "10.6.0.0/24", { ips: ["10.6.0.1-10.6.0.9"] });
const SIX = pool("six", "fd00::/64", { ips: ["fd00::1-fd00::8"] });
const ALL = ["1", "2", "3", "4", "5", "6", "7", "8"].map((each) => `fd00::${each}`);
const DB = { kind: "StatefulSet", namespace: "shop", name: "db", uid: "set", member: "db-0" };

const NIC = [{ ifName: "eth0", pools: [["blue"], ["six"]] }];
const attempt = (node: ClusterNode, workload?: typeof DB, signal?: AbortSignal) =>
  allocateAddresses(
    { registry: node.registry, poolCache: node.poolCache, cluster: clusterIpam({ records: node.registry }) },
    node.demand("db-0", NIC, { workload, ...(signal === undefined ? {} : { signal }) }),
  );

/**
 * Another node has all addresses of the second pool but one, of which this node does not know, and which it does not
 * try first.
 */
async function nodes(): Promise<{ readonly node: ClusterNode; readonly calls: string[]; readonly left: string }> {
  const snapshot = snapshotOf(BLUE, SIX);
  const first = (await attempt(await openClusterNode({ snapshot }))).held.map(({ ip }) => formatIp(ip));
  const left = ALL.find((each) => !first.includes(each)) ?? expect.fail("There is one");
  const other = await openClusterNode({ name: "n2", snapshot });
  for (const address of ALL.filter((each) => each !== left))
    await other.registry.claim(claim(`other ${address}`, [proposal(address, { prefixLength: 64, pool: "six" })]));
  const calls: string[] = [];
  const clock = new TestClock({ isHasty: true });
  const node = await openClusterNode({ server: other.server, snapshot, clock });
  node.gate = async (call, commit) => {
    const name = String(Object(call.body).metadata?.name ?? call.path.replace(/.*\//, ""));
    if (call.method !== "GET" && name.startsWith("10.6.")) calls.push(call.method);
    return commit();
  };
  return { node, calls, left };
}

it.each([
  ["no workload", undefined],
  ["a member of a StatefulSet", DB],
])("the address of one family is recorded once, however many of the other are missed: %s", async (_, workload) => {
  const { node, calls, left } = await nodes();
  const { held, created } = await attempt(node, workload);
  for (const rows of [held, created])
    expect(rows.map(({ ip }) => formatIp(ip)).sort()).toEqual([expect.stringMatching(/^10\.6\.0\./), left]);
  expect(calls).toEqual(["POST"]);
  // The answer could not be delivered.
  await node.registry.undo(created);
  await node.pass(0);
  expect(calls).toEqual(["POST", "DELETE"]);
  expect(await node.registry.findOwner("uid-db-0")).toEqual([]);
});

it("nothing of it remains when the caller hangs up before the rest is found", async () => {
  const { node, calls } = await nodes();
  const controller = new AbortController();
  const { gate } = node;
  node.gate = async (call, commit) => {
    // The missed change is read.
    if (call.method === "GET") controller.abort(new Error("The caller hung up"));
    return gate(call, commit);
  };
  await expect(attempt(node, undefined, controller.signal)).rejects.toThrow("The caller hung up");
  await node.pass(0);
  expect(calls.at(-1)).toBe("DELETE");
  expect(await node.registry.findOwner("uid-db-0")).toEqual([]);
});

it("nor when there is nothing in its place", async () => {
  const { node, calls, left } = await nodes();
  const third = await openClusterNode({ server: node.server, name: "n3" });
  await third.registry.claim(claim("third", [proposal(left, { prefixLength: 64, pool: "six" })]));
  await expect(attempt(node)).rejects.toThrow("No address is free for IPv6");
  await node.pass(0);
  expect(calls).toEqual(["POST", "DELETE"]);
  expect(await node.registry.findOwner("uid-db-0")).toEqual([]);
});
