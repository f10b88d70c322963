/**
 * Selection in a cluster: which pod a request is for, the text of its refusal, and when the agent does not trust its
 * own cache.
 */
import { execFileSync } from "node:child_process";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { deletePod, finishPod, podPath } from "../lab/cluster/objects.ts";
import type { World } from "../lab/cluster/world.ts";
import { deleteNamespaces, makeNamespaces, makeNic, type Nic, openWorld } from "../netns/coordinator-world.ts";
import { NODE, openSelecting, type Selecting } from "./selecting.ts";

let selecting: Selecting;
let world: World;
let pods = 0;

beforeAll(async () => {
  selecting = await openSelecting();
  ({ world } = selecting);
  const pools = { ippool: 2, default: 5, other: 6 };
  for (const [name, net] of Object.entries(pools)) {
    await selecting.pool(`p-${name}`, { subnet: `10.${net}.0.0/24`, default: name === "default" });
  }
});

afterAll(() => world?.stop());

afterEach(() => selecting.node.api.releaseEvents());

const only = (...names: string[]) => ({ ippool: { ipv4: names } });

/** A pod of its own, and where its address is from. */
async function poolOf(spec: object, options: object = {}): Promise<readonly string[]> {
  const pod = await world.createPod({ node: NODE, name: `p${++pods}`, ...spec });
  return (await selecting.add(pod, options)).pools;
}

describe("who asks", () => {
  it("a pool that was made just before the pod serves it", async () => {
    for (let round = 0; round < 5; round++) {
      await selecting.pool(`y-${round}`, { subnet: `10.3${round}.0.0/24` });
      expect(await poolOf({ annotations: only(`y-${round}`) })).toEqual([`y-${round}`]);
    }
  });

  it("no pod without a name", async () => {
    const pod = { namespace: "shop", name: "x", uid: "u" };
    await expect(selecting.add(pod, { args: "IgnoreUnknown=1" })).rejects.toMatchObject({
      code: 103,
      message: expect.stringContaining("CNI_ARGS has no K8S_POD_NAMESPACE"),
    });
  });

  it("a pod that the API server does not know is refused", async () => {
    const pod = { namespace: "shop", name: "ghost", uid: "6b6c2f2e-0000-4000-8000-000000000000" };
    await expect(selecting.add(pod)).rejects.toMatchObject({
      code: 103,
      message: `Pod shop/ghost with UID ${pod.uid} is unknown: the API server has no pod of that name`,
    });
  });

  it("another pod of that name is another pod", async () => {
    const pod = await world.createPod({ node: NODE, name: "same" });
    const uid = "6b6c2f2e-0000-4000-8000-000000000000";
    await expect(selecting.add({ ...pod, uid })).rejects.toMatchObject({
      code: 103,
      message: expect.stringContaining(`the API server has one with UID ${pod.uid}`),
    });
  });

  it("a runtime that gives no UID means the pod that has the name now", async () => {
    const pod = await world.createPod({ node: NODE, name: `p${++pods}` });
    expect((await selecting.add(pod, { uid: "" })).owner).toBe(pod.uid);
  });

  it("a finished pod gets nothing", async () => {
    const pod = await world.createPod({ node: NODE, name: `p${++pods}` });
    await finishPod(world.client, pod);
    await expect
      .poll(() => selecting.add(pod).catch((error: unknown) => error), { timeout: 30_000 })
      .toMatchObject({ code: 103, message: expect.stringContaining("is finished (phase Succeeded)") });
  });

  it("leak: a cache that is behind is not believed", async () => {
    const old = await world.createPod({ node: NODE, name: "again", annotations: only("p-ippool") });
    expect((await selecting.add(old)).pools).toEqual(["p-ippool"]);
    selecting.node.api.holdEvents("/api/v1/pods");
    await deletePod(world.client, old);
    const young = await world.createPod({ node: NODE, name: "again", annotations: only("p-other") });
    expect(await selecting.add(young)).toMatchObject({ pools: ["p-other"], owner: young.uid });
    selecting.node.api.releaseEvents();
    const again = () => selecting.add(old).catch((error: unknown) => error);
    await expect.poll(again, { timeout: 30_000 }).toMatchObject({ code: 103 });
  });

  it("an annotation of another IPAM is an event of the pod, once, that names the page to read", async () => {
    const pod = await world.createPod({
      ...{ node: NODE, name: "moved" },
      annotations: { "ipam.spidernet.io/ippool": '{"ipv4":["p-other"]}' },
    });
    for (let sandbox = 0; sandbox < 3; sandbox++) expect((await selecting.add(pod)).pools).toEqual(["p-default"]);
    const events = async () => {
      const { items } = await world.client.get("/apis/events.k8s.io/v1/namespaces/shop/events");
      return items
        .filter(({ regarding }: { regarding: { uid: string } }) => regarding.uid === pod.uid)
        .map(({ type, reason, note }: Record<string, string>) => `${type} ${reason} ${note}`);
    };
    await expect
      .poll(events, { timeout: 10_000 })
      .toEqual([
        expect.stringMatching(
          /^Warning AnnotationIgnored Annotation "ipam\.spidernet\.io\/ippool" is of Spiderpool and ignored by Berth, .*docs\/annotations\.html#annotations-of-other-ipams/,
        ),
      ]);
  });

  it("what is refused is an event of the pod, in the same words", async () => {
    const pod = await world.createPod({ node: NODE, name: `p${++pods}`, annotations: only("nowhere") });
    const error: unknown = await selecting.add(pod).catch((failure: unknown) => failure);
    const text = String(error).replace(/^\w+: /, "");
    expect(text).toContain('pool "nowhere" does not exist');
    const events = async () => {
      const { items } = await world.client.get("/apis/events.k8s.io/v1/namespaces/shop/events");
      return items.filter(({ regarding }: { regarding: { uid: string } }) => regarding.uid === pod.uid);
    };
    await expect
      .poll(events, { timeout: 10_000 })
      .toMatchObject([{ reason: "NoPoolMatches", note: text, type: "Warning", regarding: { name: pod.name } }]);
  });
});

describe("the coordinator of a pod that the watch does not know yet", () => {
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
      const known = () => selecting.node.snapshot.pods.get(`shop/${name}`)?.uid;
      await expect.poll(known, { timeout: 30_000 }).toBe(old.uid);
      selecting.node.api.holdEvents("/api/v1/pods");
      await deletePod(world.client, old);
      const young = await world.createPod({ node: NODE, name, annotations: route(routeNic) });
      let asking = young;
      const args = () => `K8S_POD_NAMESPACE=shop;K8S_POD_NAME=${name};K8S_POD_UID=${asking.uid}`;
      const { identifier } = selecting.node.cluster.ipam;
      await using coordinator = await openWorld(names, { identifier, args });
      for (const nic of [first, second]) {
        makeNic(names, nic);
        await coordinator.add(nic, {});
      }
      expect(known()).toBe(old.uid);
      const way = execFileSync("ip", ["-n", names.pod, "route", "get", "192.0.2.1"], { encoding: "utf8" });
      const explained = coordinator.explain("shop", name).join("\n");
      selecting.node.api.releaseEvents();
      await expect.poll(known, { timeout: 30_000 }).toBe(young.uid);
      asking = old;
      const refusal: unknown = await coordinator.add(first, {}).catch((error: unknown) => error);
      expect(refusal).toMatchObject({ code: 103, message: expect.stringContaining(`has one with UID ${young.uid}`) });
      return { nic: / dev (\S+)/.exec(way)?.[1], explained };
    } finally {
      deleteNamespaces(names);
    }
  }

  it("follows the young pod's default-route-nic, and refuses the earlier one", async () => {
    const { nic, explained } = await attach("route-0", "net1");
    expect(nic).toBe("net1");
    expect(explained).not.toContain("which is to carry the default route");
  });

  it("warns of a NIC that is neither in the pod nor announced", async () => {
    const { nic, explained } = await attach("route-1", "net9");
    expect(nic).toBe("eth0");
    expect(explained).toContain('Interface "net9", which is to carry the default route, is not in the pod');
  });
});

describe("static-pods: static pods", () => {
  const HASH = "0123456789abcdef0123456789abcdef";
  const OTHER = "fedcba9876543210fedcba9876543210";
  const MIRROR = { "kubernetes.io/config.hash": OTHER, "kubernetes.io/config.mirror": OTHER };

  it("without a mirror pod the default rules apply, and the hash is the owner", async () => {
    const pod = { namespace: "shop", name: "etcd-n1", uid: HASH };
    expect(await selecting.add(pod)).toMatchObject({ pools: ["p-default"], owner: HASH });
  });

  it("the mirror pod's annotations count, and the hash stays the owner", async () => {
    const mirror = await world.createPod({
      node: NODE,
      name: "proxy-n1",
      annotations: { ...MIRROR, ...only("p-other") },
    });
    expect(await selecting.add({ ...mirror, uid: OTHER })).toMatchObject({ pools: ["p-other"], owner: OTHER });
    expect((await world.client.get(podPath(mirror))).metadata.uid).not.toBe(OTHER);
  });

  it("an annotation does not make one pod another", async () => {
    const victim = await world.createPod({ node: NODE, name: `p${++pods}` });
    const annotations = { "kubernetes.io/config.hash": victim.uid, ...only("p-other") };
    const thief = await world.createPod({ node: NODE, name: `p${++pods}`, annotations });
    expect((await selecting.add(thief)).owner).toBe(thief.uid);
    await expect(selecting.add(thief, { uid: victim.uid })).rejects.toMatchObject({ code: 103 });
  });
});
