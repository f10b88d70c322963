/** The coordinator's observations of a node before it plans, compared with the actual state. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { observeGateways, observeHost } from "../../host/agent/coordinator/observe.ts";
import { nameVeth } from "../../host/coordinator/plan/names.ts";
import { type NodeNamespace, openNode } from "../../host/kernel/open-namespace.ts";
import { formatIp } from "../../host/net/ip.ts";
import { formatPrefix } from "../../host/net/prefix.ts";
import { addVeth, createNetns, type Netns } from "../lab/netns.ts";
import { ip } from "../world/values.ts";

const TABLE = 500;

let [node, pod]: Netns[] = [];
let opened: NodeNamespace;

beforeEach(async () => {
  node = await createNetns(`cg-node-${process.pid}`);
  pod = await createNetns(`cg-pod-${process.pid}`);
  opened = openNode(node.path);
});

afterEach(async () => {
  opened[Symbol.dispose]();
  await pod?.delete();
  await node?.delete();
});

const lab = () => ({ node: node ?? expect.unreachable(), pod: pod ?? expect.unreachable() });

it("the node's gateways are those of all tables, each once, with those that share a route", async () => {
  const { node, pod } = lab();
  await addVeth({ netns: node, name: "v0" }, { netns: pod, name: "eth0" });
  for (const address of ["10.6.0.2/24", "fd06::2/64"]) await node.ip(`addr add ${address} dev v0`);
  for (const route of [
    "default via 10.6.0.1 dev v0",
    "10.8.0.0/16 via 10.6.0.1 dev v0",
    "10.9.0.0/16 nexthop via 10.6.0.8 dev v0 nexthop via 10.6.0.9 dev v0",
    "default via fd06::1 dev v0",
    "10.7.0.0/16 via 10.6.0.7 dev v0 table 700",
  ]) {
    await node.ip(`route add ${route}`);
  }
  const found = observeGateways(opened).map(formatIp);
  expect(found.sort()).toEqual(["10.6.0.1", "10.6.0.7", "10.6.0.8", "10.6.0.9", "fd06::1"]);
});

it("the routes of the node's table are those to the pod's addresses, over whatever link, and those of other software", async () => {
  const { node, pod } = lab();
  await addVeth({ netns: node, name: "v0" }, { netns: pod, name: "eth0" });
  await node.ip("addr add 10.6.0.2/24 dev v0");
  for (const route of [
    "10.6.0.21/32 dev v0 proto 98",
    "10.6.0.22/32 dev v0 proto 98",
    "10.9.0.0/16 dev v0 proto static",
    "fd06::21/128 dev v0 proto 98",
    "fd06::22/128 dev v0 proto 98",
  ]) {
    await node.ip(`route add ${route} table ${TABLE}`);
  }
  const addresses = ["10.6.0.21", "fd06::21"].map(ip);
  const { routes } = observeHost(opened, { pair: nameVeth("gathered"), tables: [TABLE], addresses, isUnderlay: true });
  expect(routes.map(({ destination }) => formatPrefix(destination)).sort()).toEqual([
    ...["10.6.0.21/32", "10.9.0.0/16", "fd06::21/128"],
  ]);
});
