/** The refusals of pods that name Subnets and get no address, word for word, and `berthctl explain` for them. On a real API server. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { POOL_WAIT_MS } from "../../host/agent/request/add-deadline.ts";
import type { AgentNode } from "../lab/cluster/agent-node.ts";
import type { LabPod } from "../lab/cluster/objects.ts";
import type { World } from "../lab/cluster/world.ts";
import { beginWaiting, known, SubnetPools, type Workload } from "./subnet-pools.ts";

let pools: SubnetPools;
let world: World;
let node: AgentNode;

beforeAll(async () => {
  pools = await SubnetPools.open();
  ({ world } = pools);
  node = await world.openAgent("n1");
});
afterAll(async () => {
  await world?.stop();
});

const BY = 'IPv4 of interface "eth0" (annotation "ipam.vendor.io/subnet")';
/** This agent has no directory of network definitions. */
const NO_DEFINITION = "note: no definition of the network of eth0 is known here: its default pools are not considered";
const names = (...ipv4: string[]) => ({ annotations: { subnet: { ipv4 } } });

interface Refusal {
  readonly code: number;
  readonly message: string;
}

const refusalOf = async (pod: LabPod): Promise<Refusal> => {
  const error: unknown = await node.add(pod).then(
    () => expect.fail("served"),
    (reason: unknown) => reason,
  );
  const { code, message } = error as Refusal;
  return { code, message };
};

async function eventOf({ uid }: LabPod): Promise<object[]> {
  const { items } = await world.client.get("/apis/events.k8s.io/v1/namespaces/shop/events");
  const own = items.filter(({ regarding }: { regarding: { uid: string } }) => regarding.uid === uid);
  return own.map(({ reason, note }: { reason: string; note: string }) => ({ reason, note }));
}

describe("a pod that waited in vain is refused", () => {
  const shortfall =
    'has 1 of 2 addresses wanted (1 replica and 1 more): Subnet "blue" has 0 free of 254, 254 assigned to 12 pools';
  let web: Record<"none" | "empty" | "grow" | "full" | "lack", Workload>;

  beforeAll(async () => {
    const made = async (name: string) => pools.deployment(name);
    web = {
      none: await made("none"),
      empty: await made("empty"),
      grow: await made("grow"),
      full: await made("full"),
      lack: await made("lack"),
    };
    await pools.pool("empty", web.empty, { wanted: 10, reason: "9 replicas and 1 more" });
    await pools.pool("grow", web.grow, { ips: ["10.6.0.11"], wanted: 10, reason: "9 replicas and 1 more" });
    await pools.pool("full", web.full, { ips: ["10.6.0.21"], wanted: 1, reason: "1 fixed" });
    await pools.pool("lack", web.lack, { ips: ["10.6.0.31"] });
    await pools.reportShortfall("lack", shortfall);
    for (const name of ["grow", "full", "lack"] as const) {
      await known(node, name, 1);
      await node.add(await pools.pod(node, `${name}-a`, { of: web[name] }));
    }
  });

  it("what is there, what is wanted, and what is in the way; and so is its event", async () => {
    const pods: Record<string, LabPod> = {
      nowhere: await pools.pod(node, "none-a", { of: web.none, ...names("nowhere") }),
      unmade: await pools.pod(node, "none-b", { of: web.none }),
      family: await pools.pod(node, "none-c", { of: web.none, ...names("six", "blue") }),
      empty: await pools.pod(node, "empty-a", { of: web.empty }),
      grow: await pools.pod(node, "grow-b", { of: web.grow }),
      full: await pools.pod(node, "full-b", { of: web.full }),
      lack: await pools.pod(node, "lack-b", { of: web.lack }),
    };
    const refusals = Object.entries(pods).map(async ([what, pod]) => [what, await refusalOf(pod)] as const);
    const absent = (name: string) =>
      `No pool may serve ${BY}: no pool has been generated for Deployment shop/none out of Subnet ${name} yet`;
    const short = (name: string) => `No address is free for ${BY}: pool "${name}" has no`;
    const inUse = "free address (1 of 1 in use or cooling)";
    const wanted = "of 10 addresses wanted (9 replicas and 1 more): no more have come within 5 s";
    expect(Object.fromEntries(await Promise.all(refusals))).toEqual({
      nowhere: { code: 11, message: `${absent('"nowhere"')}: Subnet "nowhere" does not exist` },
      unmade: {
        code: 11,
        message: `${absent('"blue"')}: Subnet "blue" is there, and the controller has not made one; see whether berth-controller runs`,
      },
      family: { code: 11, message: `${absent('"six" or "blue"')}: Subnet "six" is an IPv6 Subnet, not IPv4` },
      empty: { code: 11, message: `${short("empty")} address that may be handed out, has 0 ${wanted}` },
      grow: { code: 11, message: `${short("grow")} ${inUse}, has 1 ${wanted}` },
      full: { code: 101, message: `${short("full")} ${inUse}, has 1 of 1 address wanted (1 fixed)` },
      lack: { code: 101, message: `${short("lack")} ${inUse}, ${shortfall}` },
    });
    const note = `${short("lack")} ${inUse}, ${shortfall}`;
    await expect
      .poll(() => eventOf(pods.lack ?? expect.fail()), { timeout: 10_000 })
      .toEqual([{ reason: "PoolExhausted", note }]);
  });

  it("after the wait, in which it made no calls; then the Subnet is read once", async () => {
    const pod = await pools.pod(node, "none-d", { of: web.none, ...names("nowhere") });
    const beganMs = performance.now();
    const { answer, calls } = await beginWaiting(node, pod);
    await expect(answer).rejects.toMatchObject({ code: 11 });
    const tookMs = performance.now() - beganMs;
    console.log(
      `refused after ${Math.round(tookMs)} ms, ${calls().length} calls since it waited: ${calls().join(", ")}`,
    );
    expect(tookMs).toBeGreaterThan(POOL_WAIT_MS - 100);
    expect(calls().filter((call) => !call.includes("events"))).toEqual(["GET subnets/nowhere"]);
  });

  it("the next time with what was found then: a ReplicaSet is read again", async () => {
    const before = node.api.calls.length;
    const pod = await pools.pod(node, "none-e", { of: web.none });
    const { answer } = await beginWaiting(node, pod);
    expect(node.api.calls.slice(before)).toContain("GET namespaces/shop/replicasets/none-5d");
    await pools.pool("none", web.none, { ips: ["10.6.0.41"] });
    expect((await answer).addresses).toBe("10.6.0.41");
  });

  it("the same by berthctl explain", async () => {
    const pod = await pools.pod(node, "lack-c", { of: web.lack });
    const uid = web.lack.application.uid;
    expect(await node.explain(pod)).toEqual([
      'eth0: by annotation "ipam.vendor.io/subnet"',
      `eth0 IPv4 pool "lack": fits, but its only address is not free, ${shortfall}`,
      `eth0 IPv4: out of Subnet "blue", for Deployment shop/lack, UID ${uid}`,
      NO_DEFINITION,
      expect.stringMatching(/^an ADD of eth0 now would be refused with code 101: No address is free for IPv4 /),
    ]);
    const lost = await pools.pod(node, "empty-c", { of: web.empty, ...names("nowhere") });
    expect(await node.explain(lost)).toEqual([
      'eth0: by annotation "ipam.vendor.io/subnet"',
      'eth0 IPv4: no pool has been generated for Deployment shop/empty out of Subnet "nowhere" yet',
      `eth0 IPv4: out of Subnet "nowhere", for Deployment shop/empty, UID ${web.empty.application.uid}`,
      'eth0 IPv4: Subnet "nowhere" does not exist',
      NO_DEFINITION,
      expect.stringMatching(/^an ADD of eth0 now would be refused with code 11: /),
    ]);
  });
});

describe("a pod is refused at once", () => {
  const none = (why: string) => ({
    code: 102,
    message: `Annotation "ipam.vendor.io/subnet" cannot be followed: generated pools belong to workloads, and ${why}; name pools with "ipam.vendor.io/ippool"`,
  });

  it("that it has no controller", async () => {
    expect(await refusalOf(await pools.pod(node, "alone"))).toEqual(none('pod "shop/alone" has no controller'));
  });

  it("that its controller is a Node", async () => {
    const { metadata } = await world.client.get("/api/v1/nodes/n1");
    const owner = { apiVersion: "v1", kind: "Node", name: "n1", uid: metadata.uid };
    const pod = await pools.pod(node, "static-n1", { owner });
    expect(await refusalOf(pod)).toEqual(none('the controller of pod "shop/static-n1" is Node "n1"'));
  });

  it("that its ReplicaSet is gone", async () => {
    const owner = { apiVersion: "apps/v1", kind: "ReplicaSet", name: "gone-5d", uid: "u-gone" };
    const pod = await pools.pod(node, "orphan", { owner });
    expect(await refusalOf(pod)).toEqual({
      code: 11,
      message: 'The workload that owns ReplicaSet "shop/gone-5d" and its pods is unknown: it does not exist any more',
    });
  });

  it("that the pool that it names is generated for a workload", async () => {
    const annotations = { ippool: { ipv4: ["grow"] } };
    const pod = await pools.pod(node, "thief", { annotations });
    expect(await refusalOf(pod)).toEqual({
      code: 100,
      message:
        'No pool may serve IPv4 of interface "eth0" (annotation "ipam.vendor.io/ippool"): pool "grow" is generated for Deployment shop/grow',
    });
  });
});
