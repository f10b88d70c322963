/**
 * Selection in a cluster: who the pod of a request is, what its refusal looks like, and when the agent does not believe its own cache.
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { deletePod, finishPod, podPath } from "../../scripts/lab/cluster/pods.ts";
import { type SelectionWorld, startSelectionWorld } from "./selection-world.ts";

let world: SelectionWorld;
let pods = 0;

beforeAll(async () => {
  world = await startSelectionWorld();
  const pools = { ippool: 2, default: 5, other: 6 };
  for (const [name, net] of Object.entries(pools)) {
    await world.pool(`p-${name}`, { subnet: `10.${net}.0.0/24`, default: name === "default" });
  }
});

afterAll(() => world?.close());

afterEach(() => world.holdPods(false));

const only = (...names: string[]) => ({ ippool: { ipv4: names } });

/** A pod of its own, and where its address is from. */
async function poolOf(spec: object, wish: object = {}): Promise<readonly string[]> {
  const pod = await world.pod({ name: `p${++pods}`, ...spec });
  return (await world.add(pod, wish)).pools;
}

describe("who asks", () => {
  it("a pool that was made just before the pod serves it", async () => {
    for (let round = 0; round < 5; round++) {
      await world.pool(`y-${round}`, { subnet: `10.3${round}.0.0/24` });
      expect(await poolOf({ annotations: only(`y-${round}`) })).toEqual([`y-${round}`]);
    }
  });

  it("nobody without a name", async () => {
    const pod = { namespace: "shop", name: "x", uid: "u" };
    await expect(world.add(pod, { args: "IgnoreUnknown=1" })).rejects.toMatchObject({
      code: 103,
      message: expect.stringContaining("CNI_ARGS has no K8S_POD_NAMESPACE"),
    });
  });

  it("a pod that the API server does not know is refused", async () => {
    const pod = { namespace: "shop", name: "ghost", uid: "6b6c2f2e-0000-4000-8000-000000000000" };
    await expect(world.add(pod)).rejects.toMatchObject({
      code: 103,
      message: `Pod shop/ghost with UID ${pod.uid} is unknown: the API server has no pod of that name`,
    });
  });

  it("another pod of that name is another pod", async () => {
    const pod = await world.pod({ name: "twin" });
    const uid = "6b6c2f2e-0000-4000-8000-000000000000";
    await expect(world.add({ ...pod, uid })).rejects.toMatchObject({
      code: 103,
      message: expect.stringContaining(`the API server has one with UID ${pod.uid}`),
    });
  });

  it("a runtime that gives no UID means the pod that has the name now", async () => {
    const pod = await world.pod({ name: `p${++pods}` });
    expect((await world.add(pod, { uid: "" })).owner).toBe(pod.uid);
  });

  it("a finished pod gets nothing", async () => {
    const pod = await world.pod({ name: `p${++pods}` });
    await finishPod(world.client, pod);
    await expect
      .poll(() => world.add(pod).catch((error: unknown) => error), { timeout: 5_000 })
      .toMatchObject({ code: 103, message: expect.stringContaining("is finished (phase Succeeded)") });
  });

  it("rule 16: a cache that is behind is not believed", async () => {
    const old = await world.pod({ name: "again", annotations: only("p-ippool") });
    expect((await world.add(old)).pools).toEqual(["p-ippool"]);
    world.holdPods(true);
    await deletePod(world.client, old);
    const young = await world.pod({ name: "again", annotations: only("p-other") });
    expect(await world.add(young)).toMatchObject({ pools: ["p-other"], owner: young.uid });
    world.holdPods(false);
    const again = () => world.add(old).catch((error: unknown) => error);
    await expect.poll(again, { timeout: 5_000 }).toMatchObject({ code: 103 });
  });

  it("what is refused is an event of the pod, in the same words", async () => {
    const pod = await world.pod({ name: `p${++pods}`, annotations: only("nowhere") });
    const error: unknown = await world.add(pod).catch((failure: unknown) => failure);
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

describe("rule 9: static pods", () => {
  const HASH = "0123456789abcdef0123456789abcdef";
  const OTHER = "fedcba9876543210fedcba9876543210";
  const MIRROR = { "kubernetes.io/config.hash": OTHER, "kubernetes.io/config.mirror": OTHER };

  it("without a mirror pod the default rules apply, and the hash is the owner", async () => {
    const pod = { namespace: "shop", name: "etcd-n1", uid: HASH };
    expect(await world.add(pod)).toMatchObject({ pools: ["p-default"], owner: HASH });
  });

  it("the mirror pod's annotations count, and the hash stays the owner", async () => {
    const mirror = await world.pod({ name: "proxy-n1", annotations: { ...MIRROR, ...only("p-other") } });
    expect(await world.add({ ...mirror, uid: OTHER })).toMatchObject({ pools: ["p-other"], owner: OTHER });
    expect((await world.client.get(podPath(mirror))).metadata.uid).not.toBe(OTHER);
  });

  it("an annotation does not make one pod another", async () => {
    const victim = await world.pod({ name: `p${++pods}` });
    const annotations = { "kubernetes.io/config.hash": victim.uid, ...only("p-other") };
    const thief = await world.pod({ name: `p${++pods}`, annotations });
    expect((await world.add(thief)).owner).toBe(thief.uid);
    await expect(world.add(thief, { uid: victim.uid })).rejects.toMatchObject({ code: 103 });
  });
});
