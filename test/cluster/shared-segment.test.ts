/**
 * Two clusters that share a segment of 30 addresses in blocks of eight: pods start in both until it is full, and no
 * address is given twice. The first cluster is the hub. The controllers' clock is fast: a block rests for 150 ms.
 */
import { afterAll, beforeAll, expect, it } from "vitest";
import { RANGES_MAP } from "../../host/blocks/own-ranges.ts";
import { startBlocks } from "../../host/controller/blocks/blocks-controller.ts";
import { startConditions } from "../../host/controller/conditions/conditions-controller.ts";
import type { KubeClient as ProductClient } from "../../host/kubernetes/client.ts";
import { formatIp } from "../../host/net/ip.ts";
import { runBerthctl } from "../lab/berthctl.ts";
import type { Add, AgentNode } from "../lab/cluster/agent-node.ts";
import type { LabController } from "../lab/cluster/controller.ts";
import { connectClient } from "../lab/cluster/in-process.ts";
import * as lab from "../lab/cluster/objects.ts";
import { createToken } from "../lab/cluster/rights.ts";
import { startWorld, type World } from "../lab/cluster/world.ts";
import { until } from "../lab/waiting.ts";
import { mac } from "../world/values.ts";
import { borrowPlane } from "./borrow-plane.ts";

const RANGES = "/apis/ipam.vendor.io/v1/addressranges";
const ROLES = "/apis/rbac.authorization.k8s.io/v1";
const SPEED = 400;
const OWN = mac("0a:00:00:00:00:01");

/** What was probed on the segment, and answered: a pod of either cluster had it. */
const answered: string[] = [];
const held = new Set<string>();

const DETECTION: NonNullable<Add["detection"]> = {
  links: {
    observe: () => ({ index: 1, mac: OWN, flags: 0, up: false, addresses: [] }),
    withdraw: () => undefined,
    findParentName: () => "uplink",
    findAskingLink: (link) => link,
  },
  withQuietLink: ({ netnsPath, ifName }, work) => work({ netnsPath, index: 1, name: ifName, mac: OWN }),
  detect: async ({ addresses }) => {
    answered.push(...addresses.map(formatIp).filter((address) => held.has(address)));
    return undefined;
  },
};

class Cluster {
  readonly name: string;
  readonly world: World;
  readonly agent: AgentNode;
  readonly controller: LabController;
  readonly hub: ProductClient;

  constructor(parts: Pick<Cluster, "name" | "world" | "agent" | "controller" | "hub">) {
    ({ name: this.name, world: this.world, agent: this.agent, controller: this.controller, hub: this.hub } = parts);
  }

  /** Returns the pod's address, or what the ADD was refused with. */
  async start(name: string): Promise<string> {
    const pod = await this.world.bindPod({ name, node: "n1", annotations: { ippool: { ipv4: ["lan"] } } });
    await until("the node knows the pod", () => this.agent.snapshot.pods.get(`shop/${name}`)?.uid === pod.uid);
    return this.agent.add(pod, { detection: DETECTION }).then(
      ({ addresses }) => {
        held.add(addresses);
        return addresses;
      },
      (error: Error) => `refused: ${error.message}`,
    );
  }
}

let east: Cluster;
let west: Cluster;

beforeAll(async () => {
  const worlds = await Promise.all([0, 1].map(() => startWorld({ startPlane: borrowPlane })));
  const [home] = worlds as [World, World];
  const names = ["east", "west"];
  await home.client.create(RANGES, {
    ...{ apiVersion: "ipam.vendor.io/v1", kind: "AddressRange", metadata: { name: "lan" } },
    spec: {
      subnet: "10.6.0.0/27",
      blockSize: 29,
      gateway: "10.6.0.1",
      members: names.map((name) => ({ name, user: `system:serviceaccount:kube-system:range-${name}`, maxBlocks: 3 })),
    },
  });
  [east, west] = (await Promise.all(names.map((name, at) => open(name, worlds[at] as World, home)))) as [
    Cluster,
    Cluster,
  ];
});
afterAll(async () => {
  for (const { hub, world } of [east, west]) {
    await world?.stop();
    await hub?.close();
  }
});

async function open(name: string, world: World, home: World): Promise<Cluster> {
  const account = { name: `range-${name}`, namespace: "kube-system" };
  await home.client.apply(`${lab.NAMESPACES}/kube-system/serviceaccounts/${account.name}`, {
    ...{ apiVersion: "v1", kind: "ServiceAccount", metadata: account },
  });
  await bind(home, "range-member", account);
  const token = await createToken(home.client, { account: account.name });
  const hub = await connectClient(await home.plane.writeKubeconfig(account.name, { token }));
  // As the chart does with the value hub.kubeconfigSecret.
  await world.client.apply(`${lab.NAMESPACES}/kube-system/configmaps/${RANGES_MAP}`, {
    ...{ apiVersion: "v1", kind: "ConfigMap", metadata: { name: RANGES_MAP } },
  });
  const rules = [
    { apiGroups: [""], resources: ["configmaps"], resourceNames: [RANGES_MAP], verbs: ["get", "patch"] },
    { apiGroups: [""], resources: ["namespaces"], resourceNames: ["kube-system"], verbs: ["get"] },
  ];
  await world.client.apply(`${ROLES}/clusterroles/berth-hub`, {
    ...{ apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole", metadata: { name: "berth-hub" }, rules },
  });
  await bind(world, "hub", { name: "berth-controller", namespace: "kube-system" });
  const agent = await world.openAgent("n1");
  await world.pool("lan", { subnet: "10.6.0.0/27", gateway: "10.6.0.1", source: { range: "lan" } });
  const clock = { nowMs: () => performance.now() * SPEED, now: () => new Date() };
  const access = { api: hub, member: name, namespace: "kube-system", checkMs: 300 };
  const parts = { blocks: startBlocks, conditions: startConditions };
  const controller = await world.lead(parts, { deps: { clock, hub: access } });
  return new Cluster({ name, world, agent, controller, hub });
}

async function bind({ client }: World, role: string, { name, namespace }: { name: string; namespace: string }) {
  await client.apply(`${ROLES}/clusterrolebindings/${name}-${role}`, {
    ...{
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRoleBinding",
      metadata: { name: `${name}-${role}` },
    },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: `berth-${role}` },
    subjects: [{ kind: "ServiceAccount", name, namespace }],
  });
}

it("pods start in both until the segment is full, no address is given twice, and the refusal says why", async () => {
  const given: string[] = [];
  const refusals = new Map<Cluster, string>();
  for (let round = 0; refusals.size < 2; round++)
    for (const cluster of [east, west].filter((each) => !refusals.has(each))) {
      const outcome = await cluster.start(`web-${round}`);
      if (outcome.startsWith("refused")) refusals.set(cluster, outcome);
      else given.push(outcome);
    }
  // Of /27 without its first and last address and the gateway.
  expect(given).toHaveLength(29);
  expect([new Set(given).size, answered]).toEqual([given.length, []]);
  const { leases } = (await east.world.client.get(`${RANGES}/lan`)).status;
  expect(Object.keys(leases)).toHaveLength(4);
  for (const refusal of refusals.values())
    expect(refusal).toMatch(
      /takes its blocks from AddressRange "lan": (?:no block is free: this cluster has \d, (?:east|west) \d|this cluster has as many .*; the pool has 3, other clusters: (?:east|west) 1)$/,
    );
});

it("each cluster's berthctl shows who has what, and whose block an address is in", async () => {
  const at = (cluster: Cluster, ...words: readonly string[]) =>
    runBerthctl("--kubeconfig", cluster.world.plane.kubeconfig, ...words);
  const list = async (cluster: Cluster) => JSON.parse((await at(cluster, "blocks", "-o", "json")).out);
  await until("both know of four blocks", async () => {
    const known = await Promise.all([east, west].map(list));
    return known.every(({ ranges: [lan] }) => lan.blocks + (lan.others[0]?.blocks ?? 0) === 4);
  });
  const { ranges, blocks } = await list(east);
  expect(ranges).toEqual([
    expect.objectContaining({
      name: "lan",
      member: "east",
      maxBlocks: 3,
      others: [expect.objectContaining({ member: "west" })],
    }),
  ]);
  expect(["RangeUsedUp", "ShareUsedUp"]).toContain(ranges[0].reason);
  const { conditions } = (await east.world.read("ippools", "lan")).status;
  const supplied = conditions.find(({ type }: { type: string }) => type === "Supplied");
  expect(supplied).toMatchObject({ status: "False", reason: ranges[0].reason });
  const other = blocks.find(({ member }: { member: string }) => member === "west");
  // Neither the network's address nor the gateway.
  const address = other.block.split("-")[0].replace(/\d+$/, (last: string) => String(Number(last) + 4));
  expect((await at(east, "ip", address)).out).toContain('its block of AddressRange "lan" is cluster "west"\'s');
});
