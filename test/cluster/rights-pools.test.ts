/**
 * Pools, Subnets and other objects that the controller writes, on a real API server: the rights of its account, and the
 * policies of deploy/policies.yaml.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { POOLS } from "../lab/cluster/objects.ts";
import { openAsController } from "../lab/cluster/rights.ts";
import { applyWorkloadKinds, CLAIMS, ipamClaim } from "../lab/cluster/workload-kinds.ts";
import type { World } from "../lab/cluster/world.ts";
import type { KubeClient } from "../lab/kube-client.ts";
import { GARBAGE_COLLECTOR } from "./plane-pool.ts";
import { describePools, INSTEAD, placePools } from "./rights/pools-suite.ts";
import { openRights, outcomeOf } from "./rights-objects.ts";

const BERTH = "/apis/ipam.vendor.io/v1";

let world: World;
let admin: KubeClient;
let controller: KubeClient;

beforeAll(async () => {
  world = await openRights();
  admin = world.client;
  controller = await openAsController(world.plane);
  await applyWorkloadKinds(admin);
  await admin.create(`${BERTH}/reservedips`, {
    apiVersion: "ipam.vendor.io/v1",
    kind: "ReservedIP",
    metadata: { name: "printer" },
    spec: { ips: ["10.8.0.9"] },
  });
});
afterAll(async () => {
  controller?.close();
  await world?.stop();
});

describe("under policies", () => describePools(() => ({ admin, controller })));

describe("by the rights of its account, the controller", () => {
  it("deletes not all pools at once, and no Subnet", async () => {
    expect(await outcomeOf(controller.delete(POOLS))).toMatch(/^403 .*cannot deletecollection resource "ippools"/);
    expect(await outcomeOf(controller.delete(`${BERTH}/subnets/green`))).toMatch(
      /^403 .*cannot delete resource "subnets"/,
    );
  });

  it.each(["reservedips/printer", "coordinators/default"])("writes nothing but the status of %s", async (path) => {
    const outcome = await outcomeOf(controller.patch(`${BERTH}/${path}`, { metadata: { labels: { x: "y" } } }));
    expect(outcome).toMatch(/^403 .*cannot patch resource/);
    expect(await outcomeOf(controller.patch(`${BERTH}/${path}/status`, { status: { conditions: [] } }))).toBe("done");
  });

  it("changes neither the specification of an IPAMClaim nor the claim itself", async () => {
    const path = `${CLAIMS}/chair`;
    await admin.create(CLAIMS, ipamClaim("chair", { interface: "net1", network: "store" }));
    const forbidden = /^403 .*cannot \w+ resource "ipamclaims"/;
    expect(await outcomeOf(controller.patch(path, { spec: { network: "other" } }))).toMatch(forbidden);
    expect(await outcomeOf(controller.delete(path))).toMatch(forbidden);
  });
});

describe("of a generated pool", () => {
  const change = (client: KubeClient, name: string, body: object) => outcomeOf(client.patch(`${POOLS}/${name}`, body));
  beforeEach(() => placePools(admin, controller));

  /** With the rights that each API server gives it. */
  it("the garbage collector removes finalizers and owners", async () => {
    const collector = await world.plane.openClient(GARBAGE_COLLECTOR);
    const ownerReferences = [{ apiVersion: "v1", kind: "Node", name: "x", uid: "x" }];
    await change(admin, "made", { metadata: { finalizers: ["foregroundDeletion"], ownerReferences } });
    expect(await outcomeOf(collector.delete(`${POOLS}/made`))).toBe("done");
    expect(await change(collector, "made", { metadata: { ownerReferences: null } })).toBe("done");
    expect(await change(collector, "made", { spec: { ips: [] } })).toMatch(INSTEAD);
    expect(await change(collector, "made", { metadata: { finalizers: null } })).toBe("done");
    expect(await outcomeOf(admin.get(`${POOLS}/made`))).toMatch(/^404 /);
    collector.close();
  });
});
