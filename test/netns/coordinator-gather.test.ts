/** The coordinator's observations of a pod and its node before it plans, compared with the actual state. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { knownAddresses, observeGateways, observeHost, observePod } from "../../host/agent/coordinator/observe.ts";
import { nameVeth } from "../../host/coordinator/plan/names.ts";
import { type NodeNamespace, type OpenNamespace, openNamespace, openNode } from "../../host/kernel/open-namespace.ts";
import { formatIp } from "../../host/net/ip.ts";
import { formatPrefix } from "../../host/net/prefix.ts";
import type { NamespaceState } from "../../host/plan/state.ts";
import { addVeth, createNetns, type Netns } from "../lab/netns.ts";
import { ip } from "../world/values.ts";
import { sysctlIn } from "./kernel-scene.ts";

const TABLE = 500;
const pair = nameVeth("gathered");
const host = pair.host.name;

let [node, pod]: Netns[] = [];
let opened: { readonly node: NodeNamespace; readonly pod: OpenNamespace };

beforeEach(async () => {
  node = await createNetns(`cg-node-${process.pid}`);
  pod = await createNetns(`cg-pod-${process.pid}`);
  opened = { node: openNode(node.path), pod: openNamespace(pod.path) };
});

afterEach(async () => {
  opened.node[Symbol.dispose]();
  opened.pod[Symbol.dispose]();
  await pod?.delete();
  await node?.delete();
});

const lab = () => ({ node: node ?? expect.unreachable(), pod: pod ?? expect.unreachable() });
const podState = () => observePod(opened.pod, "eth0", "eth0");
const hostState = (...addresses: string[]) =>
  observeHost(opened.node, { pair, tables: [TABLE], addresses: addresses.map(ip), isUnderlay: true });
it("settings of a pair that is not there yet are unknown", async () => {
  const { node, pod } = lab();
  const settingsOf = ({ sysctls }: NamespaceState, link: string) =>
    [`ipv4/conf/${link}/rp_filter`, `ipv6/conf/${link}/disable_ipv6`].map((key) => sysctls.get(key));
  await pod.ip("addr add fd00::9/128 dev lo");
  expect(settingsOf(hostState("fd00::9"), host)).toEqual([undefined, undefined]);
  expect(settingsOf(podState(), "veth0")).toEqual([undefined, undefined]);
  await addVeth({ netns: node, name: host }, { netns: pod, name: "veth0" });
  sysctlIn(node.name, "net.ipv4.conf.default.rp_filter=2");
  expect(settingsOf(hostState("fd00::9"), host)).toEqual(["2", "0"]); // rp_filter follows what links get by default until it is set
  sysctlIn(pod.name, "net.ipv6.conf.veth0.disable_ipv6=1");
  expect(settingsOf(podState(), "veth0")[1]).toBe("1");
});

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
  const found = observeGateways(opened.node).map(formatIp);
  expect(found.sort()).toEqual(["10.6.0.1", "10.6.0.7", "10.6.0.8", "10.6.0.9", "fd06::1"]);
});

describe("routes of the node's table", () => {
  it("are those to the pod's addresses, over whatever link, and those of other software", async () => {
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
    const found = hostState("10.6.0.21", "fd06::21").routes.map(({ destination }) => formatPrefix(destination));
    expect(found.sort()).toEqual(["10.6.0.21/32", "10.9.0.0/16", "fd06::21/128"]);
  });

  it("of a pod are found by what it was given, and by what is on its links except the link's own", async () => {
    const { node, pod } = lab();
    await addVeth({ netns: node, name: "v0" }, { netns: pod, name: "eth0" });
    await pod.ip("addr add 10.6.0.21/24 dev eth0");
    await pod.ip("addr add fd06::21/64 dev eth0 nodad");
    const known = knownAddresses([ip("10.6.0.21"), ip("10.6.0.30")], podState());
    expect(known.map(formatIp)).toEqual(["10.6.0.21", "10.6.0.30", "fd06::21"]);
  });
});
