/**
 * A pool that leases its addresses from a hub, as an agent in this process serves pods of it. The test is the
 * controller: it writes the pool's blocks into its status.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { BLOCK_WAIT_MS } from "../../host/agent/request/add-deadline.ts";
import type { LinkObservation } from "../../host/kernel/observe-link.ts";
import { formatIp } from "../../host/net/ip.ts";
import { encodeSourceStatus, type SourceBlock } from "../../host/resources/pool-source.ts";
import { EPOCH_MAP } from "../../host/resources/registry-epoch.ts";
import type { Add, AgentNode } from "../lab/cluster/agent-node.ts";
import * as lab from "../lab/cluster/objects.ts";
import { openAsController } from "../lab/cluster/rights.ts";
import { startWorld, type World } from "../lab/cluster/world.ts";
import type { KubeClient } from "../lab/kube-client.ts";
import { until } from "../lab/waiting.ts";
import { mac } from "../world/values.ts";
import { borrowPlane } from "./borrow-plane.ts";
import { beginWaiting } from "./subnet-pools.ts";

const EARLIER = "11111111-1111-4111-8111-111111111111";
const OWN = mac("0a:00:00:00:00:01");
const USED_UP = "has no block: the share of 4 blocks is used up, and 2 pods wait";

let world: World;
let controller: KubeClient;
let node: AgentNode;
let epoch: string;
let serial = 0;
let name = "";

beforeAll(async () => {
  world = await startWorld({ startPlane: borrowPlane });
  controller = await openAsController(world.plane);
  world.defer(() => controller.close());
  // Nothing is claimed ahead: the node has no definition.
  node = await world.openAgent("n1");
  const map = await world.client.get(`${lab.NAMESPACES}/${lab.SYSTEM}/configmaps/${EPOCH_MAP}`);
  epoch = map.data.epoch;
});
afterAll(() => world?.stop());

beforeEach(async () => {
  name = `seg${++serial}`;
  await world.pool(name, { subnet: `10.${serial}.0.0/24`, source: { range: "vlan7" }, selection: "ascending" });
});
afterEach(() => world.clear());

/** As the controller writes it: `16/28 Active`. Resolves when the node knows it. */
async function lease(blocks: readonly string[], of = epoch, asOf = new Date().toISOString()): Promise<void> {
  const listed = blocks.map((text) => {
    const [block, state] = text.split(" ");
    return { block: `10.${serial}.0.${block}`, state: state as SourceBlock["state"] };
  });
  const source = encodeSourceStatus({ epoch: of, asOf, blocks: listed });
  await controller.patch(`${lab.POOLS}/${name}/status`, { status: { source } });
  const known = () => {
    const known = node.snapshot.pools.get(name)?.source;
    return known !== undefined && JSON.stringify(encodeSourceStatus(known)) === JSON.stringify(source);
  };
  await until("the node knows the blocks", known);
}

async function reportShortfall(): Promise<void> {
  const condition = { type: "Supplied", status: "False", reason: "ShareUsedUp", message: USED_UP };
  const conditions = [{ ...condition, observedGeneration: 1, lastTransitionTime: "2026-11-20T20:00:00Z" }];
  await controller.patch(`${lab.POOLS}/${name}/status`, { status: { conditions } });
  await until("the node knows why", () => node.snapshot.pools.get(name)?.shortfall === USED_UP);
}

async function pod(suffix: string): Promise<lab.LabPod> {
  const made = await world.bindPod({
    ...{ name: `${name}-${suffix}`, node: node.name },
    annotations: { ippool: { ipv4: [name] } },
  });
  await until("the node knows the pod", () => node.snapshot.pods.get(`shop/${made.name}`)?.uid === made.uid);
  return made;
}

const given = async (suffix: string): Promise<string> => (await node.add(await pod(suffix))).addresses;

/** An ADD that waits until its time is over, and what it is refused with. */
async function refusedInVain(): Promise<string> {
  const { answer } = await beginWaiting(node, await pod("late"));
  node.advance(BLOCK_WAIT_MS);
  await reportShortfall();
  return answer.then(
    ({ addresses }) => `got ${addresses}`,
    ({ code, message }) => `${code}: ${message}`,
  );
}

describe("an ADD", () => {
  it("of a pool without a block marks it, waits, and is refused with the range and what is in the way", async () => {
    expect(await refusedInVain()).toBe(
      `101: No address is free for IPv4 of interface "eth0" (annotation "ipam.vendor.io/ippool"): pool "${name}" has leased no block yet, takes its blocks from AddressRange "vlan7": ${USED_UP}`,
    );
    expect((await world.read("ippools", name)).status.wanted).toMatch(/^20/);
  });

  it("waits while a block rests, and gets its address when that is active", async () => {
    await lease(["16/28 Resting"]);
    const { answer } = await beginWaiting(node, await pod("a"));
    await lease(["16/28 Active"]);
    expect((await answer).addresses).toBe(`10.${serial}.0.16`);
  });

  it("gets nothing of a block that goes back, and keeps what it has of one", async () => {
    await lease(["16/30 Active"]);
    const first = await pod("a");
    expect((await node.add(first)).addresses).toBe(`10.${serial}.0.16`);
    await lease(["16/30 Returning"]);
    expect((await node.add(first)).addresses).toBe(`10.${serial}.0.16`);
    expect(await refusedInVain()).toContain(`pool "${name}" has no block that gives addresses (1 Returning), takes`);
  });

  it("of an agent that hears nothing gives no address of a block that goes back, and leaves no record", async () => {
    await lease(["16/30 Active"]);
    const first = await pod("a");
    const late = await pod("b");
    expect((await node.add(first)).addresses).toBe(`10.${serial}.0.16`);
    node.api.holdEvents(lab.POOLS);
    const blocks = [{ block: `10.${serial}.0.16/30`, state: "Returning" as const }];
    const source = encodeSourceStatus({ epoch, asOf: new Date().toISOString(), blocks });
    await controller.patch(`${lab.POOLS}/${name}/status`, { status: { source } });
    const why = `Address 10.${serial}.0.17 is not given: pool "${name}" no longer gives addresses of its block; try again`;
    await expect(node.add(late)).rejects.toMatchObject({ code: 11, message: expect.stringContaining(why) });
    expect((await node.add(first)).addresses).toBe(`10.${serial}.0.16`);
    await until("nothing is recorded", async () => (await world.lines()).every((line) => !line.includes(".0.17")));
    await world.client.delete(`${lab.POOLS}/${name}`);
    await expect(node.add(late)).rejects.toMatchObject({ code: 11, message: expect.stringContaining(why) });
    node.api.releaseEvents();
  });

  it("gets an address of a block that is drained only when there is no other one", async () => {
    await lease(["16/31 Draining", "32/31 Active"]);
    const seen = [];
    for (const suffix of ["a", "b", "c"]) seen.push(await given(suffix));
    expect(seen).toEqual([`10.${serial}.0.32`, `10.${serial}.0.33`, `10.${serial}.0.16`]);
  });

  it("gets nothing of blocks that the hub has confirmed for an earlier registry, until it confirms them again", async () => {
    await lease(["16/28 Active"], EARLIER);
    const { answer } = await beginWaiting(node, await pod("a"));
    expect(await world.lines()).toEqual([]);
    await lease(["16/28 Active"]);
    expect((await answer).addresses).toBe(`10.${serial}.0.16`);
  });

  it("gets nothing in a cluster that was off for a while, until the hub has confirmed its blocks, and says so", async () => {
    const earlier = new Date(Date.now() - 500_000).toISOString();
    await lease(["16/28 Active"], epoch, earlier);
    expect(await refusedInVain()).toContain(
      `pool "${name}" gives no address until the hub has confirmed its blocks: the cluster was off, had no controller, or was out of this node's reach, since ${earlier}`,
    );
    const { answer } = await beginWaiting(node, await pod("a"));
    await lease(["16/28 Active"]);
    expect((await answer).addresses).toBe(`10.${serial}.0.16`);
  });

  it("of a new block is probed although detection is off, and refused while there is no NIC to probe on", async () => {
    await lease(["16/28 New"]);
    const probed: string[] = [];
    const on = (nic: LinkObservation | undefined): NonNullable<Add["detection"]> => ({
      links: {
        ...{ observe: () => nic, withdraw: () => undefined },
        ...{ findParentName: () => "uplink", findAskingLink: (link) => link },
      },
      withQuietLink: ({ netnsPath, ifName }, work) => work({ netnsPath, index: 1, name: ifName, mac: OWN }),
      detect: async ({ addresses }) => {
        probed.push(...addresses.map(formatIp));
        return undefined;
      },
    });
    const address = `10.${serial}.0.16`;
    const first = await pod("a");
    const message = expect.stringContaining(`its address of a new block ${address} must be probed`);
    await expect(node.add(first, { detection: on(undefined) })).rejects.toMatchObject({ code: 11, message });
    const nic = { index: 1, mac: OWN, flags: 0, up: false, addresses: [] };
    expect((await node.add(first, { detection: on(nic) })).addresses).toBe(address);
    expect(probed).toEqual([address]);
  });
});

it("an agent may not write the blocks", async () => {
  const body = { status: { source: { epoch, blocks: [] } } };
  const call = { method: "PATCH", path: `${lab.POOLS}/${name}/status`, body, lane: "pod" } as const;
  await expect(node.api.call(call)).rejects.toThrow("may change status.wanted and status.waiting, and nothing else");
});
