/**
 * A StatefulSet pod that moved off a node that does not answer: the earlier pod may run on. So it has its address at
 * once when the segment is silent, and not otherwise (node-lost). The segment is a table; the NICs are, too.
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { ClusterBackend } from "../../host/agent/cluster/backend.ts";
import { formatIp } from "../../host/net/ip.ts";
import * as lab from "../lab/cluster/objects.ts";
import { SETS, statefulSet } from "../lab/cluster/workload-kinds.ts";
import type { World } from "../lab/cluster/world.ts";
import { until } from "../lab/waiting.ts";
import { mac } from "../world/values.ts";
import { add, openAgents } from "./workloads.ts";

const [OWN, RIVAL] = [mac("0a:00:00:00:00:01"), mac("02:00:00:00:00:07")];
const UNREACHABLE = { key: "node.kubernetes.io/unreachable", effect: "NoExecute" };

let world: World;
let probed: string[] = [];
let isCut = false;

beforeAll(async () => {
  world = await openAgents(["n1", "n2"]);
});

afterEach(async () => {
  probed = [];
  await world.client.patch(`${lab.NODES}/n1`, { spec: { taints: [] } });
  await world.client.delete(`${SETS}/web`).catch(() => {});
  if (isCut) await world.agent("n1").start();
  isCut = false;
  // Addresses of earlier tests may stay: each has a workload of its own.
  await world.client.delete(`${lab.NAMESPACES}/shop/pods`, { gracePeriodSeconds: 0 });
});

afterAll(() => world?.stop());

/** A pod's NIC and the answers that it would receive; detection is switched off in the settings of these tests. */
function segment(answering: readonly string[]): Partial<ClusterBackend["ipam"]["detection"]> {
  const nic = { index: 1, mac: OWN, flags: 0, up: false, addresses: [] };
  return {
    links: {
      observe: () => nic,
      withdraw: () => undefined,
      findParentName: () => "uplink",
      findAskingLink: (link) => link,
    },
    withQuietLink: ({ netnsPath, ifName }, work) => work({ netnsPath, index: 1, name: ifName, mac: OWN }),
    detect: async ({ addresses }) => {
      probed.push(...addresses.map(formatIp));
      const found = addresses.find((address) => answering.includes(formatIp(address)));
      return found === undefined ? undefined : { ip: found, mac: RIVAL };
    },
  };
}

/** Beside what a node that is back writes down again of earlier tests. */
async function see(wanted: string): Promise<void> {
  await until(wanted, async () => (await world.states()).includes(wanted));
}

interface Moved {
  readonly address: string;
  readonly pod: lab.LabPod;
}

/** web-0 ran on n1, which is cut off; its next pod is on n2. */
async function move(how: "taken for lost" | "unreachable"): Promise<Moved> {
  const { uid } = (await world.client.create(SETS, statefulSet("web", 1))).metadata;
  const owner = { apiVersion: "apps/v1", kind: "StatefulSet", namespace: "shop", name: "web", uid };
  const before = await world.createPod({ name: "web-0", node: "n1", owner });
  const [address = ""] = await add(world, before);
  await world.agent("n1").stop();
  isCut = true;
  await lab.deletePod(world.client, before);
  const { client } = world;
  if (how === "unreachable") await client.patch(`${lab.NODES}/n1`, { spec: { taints: [UNREACHABLE] } });
  else {
    const path = `${lab.ALLOCATIONS}/${address}`;
    const [holder] = (await client.get(path)).spec.holders;
    await client.patch(path, {
      spec: { state: "Quarantined", holders: [], quarantine: { reason: "NodeLost", holder } },
    });
  }
  return { address, pod: await world.createPod({ name: "web-0", node: "n2", owner }) };
}

describe.each(["taken for lost", "unreachable"] as const)("an address of a node that is %s", (how) => {
  it("node-lost: is the moved pod's at once when no machine answers for it, whatever the detection settings say", async () => {
    const { address, pod } = await move(how);
    expect(await add(world, pod, { detection: segment([]) })).toEqual([address]);
    expect(probed).toEqual([address]);
    await see(`${address} Bound n2 web-0@n2`);
    const [row] = await world.agent("n2").registry.findOwner(pod.uid);
    expect(row?.quarantine).toBeUndefined();
    // And again: now it is known.
    expect(await add(world, pod, { detection: segment([]) })).toEqual([address]);
    expect(probed).toEqual([address]);
  });

  it("node-lost: is not while the earlier pod answers for it, and no other one either; nothing is written", async () => {
    const { address, pod } = await move(how);
    const path = `${lab.ALLOCATIONS}/${address}`;
    const { metadata } = await world.client.get(path);
    for (let times = 0; times < 2; times++) {
      const refusal = add(world, pod, { detection: segment([address]) });
      await expect(refusal).rejects.toMatchObject({ code: 11 });
      await expect(refusal).rejects.toThrow(`shop/web-0 was on node "n1", which is lost, and ${RIVAL} still answers`);
    }
    expect((await world.client.get(path)).metadata.resourceVersion).toBe(metadata.resourceVersion);
    expect(probed).toEqual([address, address]);
    expect(await world.agent("n2").registry.findOwner(pod.uid)).toEqual([]);
    expect(await add(world, pod, { detection: segment([]) })).toEqual([address]);
    await see(`${address} Bound n2 web-0@n2`);
  });

  it("node-lost: is not the pod's where no NIC can probe: the pod gets another one", async () => {
    const { address, pod } = await move(how);
    const unasked = segment([]);
    world.witness?.excuse(address);
    const links = unasked.links && { ...unasked.links, observe: () => undefined };
    const [next] = await add(world, pod, { detection: { ...unasked, ...(links === undefined ? {} : { links }) } });
    expect(next).not.toBe(address);
    expect(probed).toEqual([]);
    const { spec } = await world.client.get(`${lab.ALLOCATIONS}/${address}`);
    expect(spec.node).toBe("n1");
  });
});
