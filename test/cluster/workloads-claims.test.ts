/** IPAMClaims: addresses of one NIC that outlive its pods (docs/workloads.md). */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { decodeIpamClaim } from "../../host/resources/workloads/ipam-claim.ts";
import { leadAddressOwners } from "../lab/cluster/collector.ts";
import type * as lab from "../lab/cluster/objects.ts";
import { CLAIMS, type ClaimSpec, INSTANCES, instance, ipamClaim } from "../lab/cluster/workload-kinds.ts";
import type { World } from "../lab/cluster/world.ts";
import { add, openAgents } from "./workloads.ts";

const NET1 = { ifName: "net1", network: "lan" };
let world: World;
let sweep: (() => Promise<void>) | undefined;

beforeAll(async () => {
  world = await openAgents(["n1", "n2"]);
  sweep = await leadAddressOwners(world);
});

afterEach(async () => {
  for (const { metadata } of (await world.client.get(CLAIMS)).items)
    await world.client.delete(`${CLAIMS}/${metadata.name}`);
  await world.clear();
});

afterAll(() => world?.stop());

async function claim(name: string, spec: Partial<ClaimSpec> = {}): Promise<string> {
  const object = ipamClaim(name, { network: "lan", interface: "net1", ...spec });
  return (await world.client.create(CLAIMS, object)).metadata.uid;
}

/** A pod whose second NIC refers to the claim. */
function podOf(name: string, node: string, reference: string, spec: Partial<lab.PodSpec> = {}): Promise<lab.LabPod> {
  const networks = [{ name: "lan", interface: "net1", "ipam-claim-reference": reference }];
  const annotations = { "k8s.v1.cni.cncf.io/networks": networks, ...spec.annotations };
  return world.createPod({ name, node, ...spec, annotations });
}

describe("an IPAMClaim", () => {
  it("keeps the address of the NIC that refers to it, of no other, until it goes", async () => {
    const uid = await claim("web.net1");
    const first = await podOf("a", "n1", "web.net1");
    await add(world, first);
    const [ip] = await add(world, first, NET1);
    await world.endPod(first);
    await world.untilStates([`${ip} Kept n1`], sweep);
    const [object] = await world.allocations();
    expect(object?.spec.workload).toEqual({
      ...{ kind: "IPAMClaim", namespace: "shop", name: "web.net1", uid, member: "web.net1", interface: "net1" },
    });
    const second = await podOf("b", "n2", "web.net1");
    const [eth0] = await add(world, second);
    expect([eth0 === ip, await add(world, second, NET1)]).toEqual([false, [ip]]);
    await world.client.delete(`${CLAIMS}/web.net1`);
    await world.endPod(second);
    await world.untilStates([], sweep);
  });

  it("says in its status which addresses it has been given, and which pod has them", async () => {
    await claim("web.net1");
    const statusOf = async () => (await world.client.get(`${CLAIMS}/web.net1`)).status;
    const pod = await podOf("a", "n1", "web.net1");
    const [ip] = await add(world, pod, NET1);
    const wanted = { ips: [`${ip}/24`], ownerPod: "a" };
    await expect.poll(statusOf, { timeout: 10_000 }).toEqual(wanted);
    await world.endPod(pod);
    await world.untilStates([`${ip} Kept n1`], sweep);
    const next = await podOf("b", "n2", "web.net1");
    expect(await add(world, next, NET1)).toEqual([ip]);
    await expect.poll(statusOf, { timeout: 10_000 }).toEqual({ ...wanted, ownerPod: "b" });
    expect(decodeIpamClaim(await world.client.get(`${CLAIMS}/web.net1`), "x").isGivenByBerth).toBe(true);
  });

  it("of a pod of a StatefulSet stands before the set", async () => {
    await claim("web.net1");
    const owner = { apiVersion: "apps/v1", kind: "StatefulSet", name: "none", uid: "set-1" };
    const pod = await podOf("none-0", "n1", "web.net1", { owner });
    await add(world, pod);
    const [ip] = await add(world, pod, NET1);
    await world.endPod(pod);
    await world.untilStates([`${ip} Kept n1`], sweep);
  });

  it("asks for the addresses of its spec, and once it has been given some for exactly these", async () => {
    await claim("asks", { ipRequests: ["10.6.0.77/24"] });
    const pod = await podOf("a", "n1", "asks");
    expect(await add(world, pod, NET1)).toEqual(["10.6.0.77"]);
    await claim("given");
    await world.client.patch(`${CLAIMS}/given/status`, { status: { ips: ["10.6.0.78/24"], ownerPod: "gone" } });
    const other = await podOf("b", "n1", "given");
    expect(await add(world, other, NET1)).toEqual(["10.6.0.78"]);
    await world.endPod(other);
    await world.untilStates(["10.6.0.77 Bound n1 a@n1", "10.6.0.78 Kept n1"], sweep);
    expect(await add(world, await podOf("b", "n2", "given"), NET1)).toEqual(["10.6.0.78"]);
  });

  it("whose status names what has become another pod's asks for it only if another than Berth wrote that", async () => {
    const holder = await podOf("holder", "n2", "holder");
    await claim("holder", { ipRequests: ["10.6.0.80"] });
    expect(await add(world, holder, NET1)).toEqual(["10.6.0.80"]);
    /** As the status stays when an ADD is undone while no controller leads. */
    const say = (name: string, ip: string, writer: string) =>
      world.client.patch(`${CLAIMS}/${name}/status?fieldManager=${writer}`, {
        status: { ips: [ip], ownerPod: "gone" },
      });
    const rows: [name: string, ip: string, writer: string, spec: Partial<ClaimSpec>][] = [
      ["told", "10.6.0.80/24", "berth-controller", {}],
      ["free", "10.6.0.81/24", "berth-controller", {}],
      ["requests", "10.6.0.80/24", "berth-controller", { ipRequests: ["10.6.0.80"] }],
      ["edited", "10.6.0.80/24", "kubectl-edit", {}],
    ];
    for (const [name, ip, writer, spec] of rows) {
      await claim(name, spec);
      await say(name, ip, writer);
    }
    const [other] = await add(world, await podOf("of-told", "n1", "told"), NET1);
    expect(other).not.toBe("10.6.0.80");
    const told = async () => (await world.client.get(`${CLAIMS}/told`)).status;
    await expect.poll(told, { timeout: 10_000 }).toEqual({ ips: [`${other}/24`], ownerPod: "of-told" });
    expect(await add(world, await podOf("of-free", "n1", "free"), NET1)).toEqual(["10.6.0.81"]);
    for (const name of ["requests", "edited"])
      await expect(add(world, await podOf(`of-${name}`, "n1", name), NET1)).rejects.toThrow(
        `requested by IPAMClaim "shop/${name}", status.ips is refused: 10.6.0.80: it is Bound to pod shop/holder`,
      );
  });

  it("that cannot be followed is refused with the reason, and leaves nothing", async () => {
    await claim("elsewhere", { network: "wan" });
    await claim("other-nic", { interface: "net2" });
    await claim("outside", { ipRequests: ["10.9.0.1/24"] });
    await claim("length", { ipRequests: ["10.6.0.9/16"] });
    await claim("taken", { ipRequests: ["10.6.0.80"] });
    await claim("used", { ipRequests: ["10.6.0.80"] });
    const holder = await podOf("holder", "n2", "taken");
    expect(await add(world, holder, NET1)).toEqual(["10.6.0.80"]);
    const rows: [reference: string, refusal: string][] = [
      ["absent", 'IPAMClaim "shop/absent" of interface "net1" does not exist'],
      ["elsewhere", 'cannot serve it: it is for network "wan", and interface "net1" is of network "lan"'],
      ["other-nic", 'cannot serve it: it is for interface "net2", not for "net1"'],
      ["outside", 'requested by IPAMClaim "shop/outside", spec.ipRequests is refused: 10.9.0.1'],
      ["length", '10.6.0.9/16: the subnet of pool "blue" has length 24'],
      ["used", "10.6.0.80: it is Bound to pod shop/holder"],
      ["taken", 'Address 10.6.0.80 is retained for IPAMClaim "shop/taken", and its pod shop/holder still has it'],
    ];
    for (const [reference, refusal] of rows) {
      const pod = await podOf(`of-${reference}`, "n1", reference);
      await expect(add(world, pod, NET1)).rejects.toThrow(refusal);
    }
    await world.untilStates(["10.6.0.80 Bound n2 holder@n2"], sweep);
  });

  it("against an address that the network selection asks for is refused", async () => {
    await claim("asks", { ipRequests: ["10.6.0.77"] });
    const pod = await podOf("a", "n1", "asks");
    await expect(add(world, pod, { ...NET1, requested: "10.6.0.99" })).rejects.toThrow(
      "10.6.0.99 and 10.6.0.77: a NIC gets one IPv4 address",
    );
  });

  it("retention: of a machine that migrates is shared", async () => {
    await claim("db.net1");
    const uid = (await world.client.create(INSTANCES, instance("db"))).metadata.uid;
    const labels = { "kubevirt.io": "virt-launcher" };
    const owner = { apiVersion: "kubevirt.io/v1", kind: "VirtualMachineInstance", name: "db", uid };
    const source = await podOf("launcher-a", "n1", "db.net1", { labels, owner });
    const target = await podOf("launcher-b", "n2", "db.net1", { labels, owner });
    const [ip] = await add(world, source, NET1);
    expect(await add(world, target, NET1)).toEqual([ip]);
    await world.untilStates([`${ip} Bound n2 launcher-a@n1 launcher-b@n2`], sweep);
    await world.endPod(source);
    await world.untilStates([`${ip} Bound n2 launcher-b@n2`], sweep);
    await world.endPod(target);
    await world.untilStates([`${ip} Kept n2`], sweep);
  });
});
