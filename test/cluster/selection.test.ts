/**
 * Selection in a cluster, from objects that a real API server serves: each rule is fed from the right object, the pod
 * is that of the request, and a cache that is behind is not believed. The rules themselves are tested in
 * test/unit/ipam.
 */
import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { CniError } from "../../host/cni/error.ts";
import type { AgentNode } from "../lab/cluster/agent-node.ts";
import { berthObject, deletePod, type LabPod, NODES, nodeObject, POOLS } from "../lab/cluster/objects.ts";
import { startWorld, type World } from "../lab/cluster/world.ts";
import { deleteNamespaces, makeNamespaces, makeNic, type Nic, openWorld } from "../netns/coordinator-world.ts";
import { borrowPlane } from "./borrow-plane.ts";

const NODE = "n1";

let world: World;
let node: AgentNode;
let pods = 0;

beforeAll(async () => {
  world = await startWorld({ startPlane: borrowPlane, namespaces: ["shop", "infra"] });
  await world.settings({ enableIPv6: false });
  await world.client.create(NODES, nodeObject(NODE, { zone: "a" }));
  node = await world.openAgent(NODE);
  const pools = { ippool: 2, default: 5, other: 6 };
  for (const [name, net] of Object.entries(pools))
    await makePool(`p-${name}`, { subnet: `10.${net}.0.0/24`, default: name === "default" });
});

afterAll(() => world?.stop());

afterEach(() => node.api.releaseEvents());

const makePool = (name: string, spec: object): Promise<unknown> =>
  world.client.apply(`${POOLS}/${name}`, berthObject("IPPool", name, { default: false, ...spec }));

/** An ADD; gives the pools and the owner of the addresses. */
async function add(pod: Pick<LabPod, "namespace" | "name" | "uid">) {
  const containerId = randomUUID();
  const { ips } = await node.add(pod, { containerId, conf: { ipam: { type: "berth" } } });
  const held = [...(await node.registry.findAttachment({ containerId, ifName: "eth0" }))];
  return { pools: held.map(({ pool }) => pool), addresses: ips, owner: held[0]?.owner ?? "" };
}

const refusalOf = (pod: Parameters<typeof add>[0]): Promise<CniError> =>
  add(pod).then(
    () => expect.unreachable(),
    (error: CniError) => error,
  );

type PodSpec = Partial<Parameters<World["createPod"]>[0]>;

const createPod = (spec: PodSpec = {}): Promise<LabPod> => world.createPod({ node: NODE, name: `p${++pods}`, ...spec });

const only = (...names: string[]) => ({ ippool: { ipv4: names } });

/** A pod of its own, and where its address is from. */
const poolOf = async (spec: PodSpec): Promise<readonly string[]> => (await add(await createPod(spec))).pools;

const SOON = { timeout: 30_000 };

it("a namespace and a pool that were made just before their pod are known", async () => {
  await makePool("young", { subnet: "10.30.0.0/24" });
  await world.namespace("young", { annotations: { "ipam.vendor.io/default-ipv4-ippool": '["young"]' } });
  expect(await poolOf({ namespace: "young" })).toEqual(["young"]);
});

it("a pod whose pool has become bad keeps its address, and is not attached without its gateway", async () => {
  const good = { subnet: "10.21.0.0/24", gateway: "10.21.0.1", ips: ["10.21.0.5-10.21.0.20"] };
  await makePool("f-edit", good);
  const pod = await createPod({ annotations: only("f-edit") });
  const { addresses } = await add(pod);
  await makePool("f-edit", { ...good, ips: [...good.ips, "10.21.0.10"] });
  const again = () => add(pod).catch((error: unknown) => error);
  const refusal = `Interface "eth0" has ${addresses[0]} of pool "f-edit", which cannot be used: field "spec.ips`;
  await expect.poll(again, SOON).toMatchObject({ code: 11, message: expect.stringContaining(refusal) });
  await makePool("f-edit", good);
  await expect.poll(again, SOON).toMatchObject({ addresses });
});

describe("the identity of a request", () => {
  it("a runtime that gives no UID means the pod that has the name now", async () => {
    const pod = await createPod();
    expect((await add({ ...pod, uid: "" })).owner).toBe(pod.uid);
  });

  it("leak: a cache that is behind is not believed", async () => {
    const old = await world.createPod({ node: NODE, name: "again", annotations: only("p-ippool") });
    expect((await add(old)).pools).toEqual(["p-ippool"]);
    node.api.holdEvents("/api/v1/pods");
    await deletePod(world.client, old);
    const young = await world.createPod({ node: NODE, name: "again", annotations: only("p-other") });
    expect(await add(young)).toMatchObject({ pools: ["p-other"], owner: young.uid });
    node.api.releaseEvents();
    await expect.poll(() => add(old).catch((error: unknown) => error), SOON).toMatchObject({ code: 103 });
  });

  it("an annotation of another IPAM is an event of the pod, once, and so is a refusal, in its own words", async () => {
    const foreign = { "ipam.spidernet.io/ippool": '{"ipv4":["p-other"]}' };
    const moved = await createPod({ annotations: foreign });
    for (let sandbox = 0; sandbox < 3; sandbox++) expect((await add(moved)).pools).toEqual(["p-default"]);
    const refused = await createPod({ annotations: only("nowhere") });
    const { message } = await refusalOf(refused);
    expect(message).toContain('pool "nowhere" does not exist');
    const misspelt = await createPod({ annotations: { ipool: '{"ipv4":["p-other"]}' } });
    await refusalOf(misspelt);
    const eventsOf =
      ({ uid }: LabPod) =>
      async () => {
        const { items } = await world.client.get("/apis/events.k8s.io/v1/namespaces/shop/events");
        return items
          .filter(({ regarding }: { regarding: { uid: string } }) => regarding.uid === uid)
          .map(({ type, reason, note }: Record<string, string>) => `${type} ${reason} ${note}`);
      };
    await expect.poll(eventsOf(refused), SOON).toEqual([`Warning NoPoolMatches ${message}`]);
    const unknown = 'Annotation "ipam.vendor.io/ipool": found an unknown annotation, want "ipam.vendor.io/ippool"';
    await expect.poll(eventsOf(misspelt), SOON).toEqual([`Warning InvalidAnnotation ${unknown}`]);
    await expect
      .poll(eventsOf(moved), SOON)
      .toEqual([
        expect.stringMatching(
          /^Warning AnnotationIgnored Annotation "ipam\.spidernet\.io\/ippool" is of Spiderpool and ignored by Berth, .*docs\/annotations\.html#annotations-of-other-ipams/,
        ),
      ]);
  });
});

const first: Nic = { name: "eth0", net: 6, families: [4], gateway: true, kind: "macvlan" };
const second: Nic = { ...first, name: "net1", net: 7 };
const route = (nic: string) => ({ "default-route-nic": nic, "k8s.v1.cni.cncf.io/networks": "store" });

/**
 * Makes both NICs for the young pod `name`, of which the watch still has the earlier one of that name, and gives
 * the NIC of its default route.
 */
async function attach(name: string, routeNic: string) {
  const names = makeNamespaces("bsp");
  try {
    const old = await world.createPod({ node: NODE, name, annotations: route("eth0") });
    const known = () => node.snapshot.pods.get(`shop/${name}`)?.uid;
    await expect.poll(known, SOON).toBe(old.uid);
    node.api.holdEvents("/api/v1/pods");
    await deletePod(world.client, old);
    const young = await world.createPod({ node: NODE, name, annotations: route(routeNic) });
    let asking = young;
    const args = () => `K8S_POD_NAMESPACE=shop;K8S_POD_NAME=${name};K8S_POD_UID=${asking.uid}`;
    const { identifier } = node.cluster.ipam;
    await using coordinator = await openWorld(names, { identifier, args });
    for (const nic of [first, second]) {
      makeNic(names, nic);
      await coordinator.add(nic, {});
    }
    expect(known()).toBe(old.uid);
    const way = execFileSync("ip", ["-n", names.pod, "route", "get", "192.0.2.1"], { encoding: "utf8" });
    const explained = coordinator.explain("shop", name).join("\n");
    node.api.releaseEvents();
    await expect.poll(known, SOON).toBe(young.uid);
    asking = old;
    const refusal: unknown = await coordinator.add(first, {}).catch((error: unknown) => error);
    expect(refusal).toMatchObject({ code: 103, message: expect.stringContaining(`has one with UID ${young.uid}`) });
    return { nic: / dev (\S+)/.exec(way)?.[1], explained };
  } finally {
    deleteNamespaces(names);
  }
}

it("the coordinator of a pod that the watch does not know yet follows the young pod's default-route-nic, and refuses the earlier one", async () => {
  const { nic, explained } = await attach("route-0", "net1");
  expect(nic).toBe("net1");
  expect(explained).not.toContain("which is to carry the default route");
});
