/**
 * Writes of pools, Subnets, Coordinators and IPAMClaims under deploy/policies.yaml: the controller may write all that
 * it generates and nothing made by hand; all other accounts the opposite, so that no address of a Subnet gets into a
 * second generated pool by hand. On a real API server (test/cluster/rights-pools.test.ts), and on the fake
 * (test/unit/fakes/admission/policies.test.ts).
 */
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { POOLS, poolObject } from "../../lab/cluster/objects.ts";
import { placeGeneratedPool } from "../../lab/cluster/rights.ts";
import { CLAIMS, ipamClaim } from "../../lab/cluster/workload-kinds.ts";
import type { KubeClient, KubeObject } from "../../lab/kube-client.ts";
import { outcomeOf } from "../rights-objects.ts";

const BERTH = "/apis/ipam.vendor.io/v1";
const SUBNETS = `${BERTH}/subnets`;

const APPLICATION = { apiVersion: "apps/v1", kind: "Deployment", namespace: "shop", name: "web", uid: "u1" };
const GENERATED = {
  ...{ subnet: "green", application: APPLICATION, interface: "eth0", reclaim: true },
  ...{ wanted: 3, reason: "2 replicas and 1 more" },
};

/** With addresses, as the controller leaves it. */
const generatedPool = (name: string, spec: object = {}): KubeObject => ({
  ...{ apiVersion: "ipam.vendor.io/v1", kind: "IPPool", metadata: { name } },
  spec: { subnet: "10.8.0.0/24", ips: ["10.8.0.2-10.8.0.4"], generated: GENERATED, ...spec },
});

/** The answer to all other writers of a generated pool. */
export const INSTEAD =
  /^403 .*IPPool made is generated for Deployment shop\/web out of Subnet green; change the annotations of the workload instead/;

/** `made` was generated, `blue` made by hand. */
export async function placePools(admin: KubeClient, controller: KubeClient): Promise<void> {
  for (const { metadata } of (await admin.get(POOLS)).items) {
    await admin.patch(`${POOLS}/${metadata.name}`, { metadata: { finalizers: [] } });
    await admin.delete(`${POOLS}/${metadata.name}`);
  }
  await admin.create(POOLS, poolObject({ name: "blue", subnet: "10.6.0.0/24", ips: ["10.6.0.1-10.6.0.9"] }));
  await placeGeneratedPool(controller, generatedPool("made"));
}

/** The kinds of other projects are there. */
export function describePools(clients: () => { readonly admin: KubeClient; readonly controller: KubeClient }): void {
  let admin: KubeClient;
  let controller: KubeClient;
  beforeAll(async () => {
    ({ admin, controller } = clients());
    const apiVersion = "ipam.vendor.io/v1";
    await admin.create(SUBNETS, {
      apiVersion,
      kind: "Subnet",
      metadata: { name: "green" },
      spec: { subnet: "10.8.0.0/24" },
    });
    const metadata = { name: "default" };
    await admin.create(`${BERTH}/coordinators`, { apiVersion, kind: "Coordinator", metadata, spec: {} });
  });
  beforeEach(() => placePools(admin, controller));

  const change = (client: KubeClient, name: string, body: object) => outcomeOf(client.patch(`${POOLS}/${name}`, body));

  const read = async (name: string): Promise<KubeObject> => (await admin.get(`${POOLS}/${name}`)).spec;

  describe("the controller, of a pool that it generates,", () => {
    it.each<[what: string, spec: object]>([
      ["ips", { ips: ["10.8.0.2", "10.8.0.7"] }],
      ["all of its ips", { ips: [] }],
      ["gateway", { gateway: "10.8.0.1" }],
      ["routes", { routes: [{ dst: "10.9.0.0/16", gw: "10.8.0.1" }] }],
      ["the size that is wanted", { generated: { wanted: 9, reason: "8 replicas and 1 more" } }],
      ["the workload", { generated: { application: { uid: "u2" } } }],
    ])("changes %s", async (_, spec) => {
      expect(await change(controller, "made", { spec })).toBe("done");
      expect(await read("made")).toMatchObject(spec);
    });

    it("changes labels, annotations, finalizers and the status, and deletes it", async () => {
      const metadata = { labels: { x: "y" }, annotations: { x: "y" }, finalizers: ["ipam.vendor.io/in-use"] };
      expect(await change(controller, "made", { metadata })).toBe("done");
      expect(await change(controller, "made", { metadata: { finalizers: [] } })).toBe("done");
      expect(await outcomeOf(controller.patch(`${POOLS}/made/status`, { status: { conditions: [] } }))).toBe("done");
      expect(await outcomeOf(controller.delete(`${POOLS}/made`))).toBe("done");
      expect(await outcomeOf(admin.get(`${POOLS}/made`))).toMatch(/^404 /);
    });

    it.each<[what: string, spec: object, wanted: RegExp]>([
      [
        "with addresses",
        {},
        /^403 .*IPPool other would begin with spec\.ips 10\.8\.0\.2-10\.8\.0\.4; the controller makes a pool with "ips: \[\]" and fills it when/,
      ],
      [
        "with all of the subnet",
        { ips: undefined },
        /^403 .*IPPool other would begin with no spec\.ips, which is all of 10\.8\.0\.0\/24/,
      ],
      [
        "for no workload",
        { ips: [], generated: undefined },
        /^403 .*IPPool other: the controller writes its status and its finalizers; the rest is the administrators'/,
      ],
    ])("makes none %s", async (_, spec, wanted) => {
      expect(await outcomeOf(controller.create(POOLS, generatedPool("other", spec)))).toMatch(wanted);
      expect(await outcomeOf(admin.get(`${POOLS}/other`))).toMatch(/^404 /);
    });

    const FOREIGN = (field: string) =>
      new RegExp(
        `^403 .*IPPool made would get another spec\\.${field}; of a generated pool the controller changes "ips", "gateway", "routes" and "generated" alone`,
      );

    it.each<[what: string, spec: object, wanted: RegExp]>([
      ["disable", { disable: true }, FOREIGN("disable")],
      ["excludeIPs", { excludeIPs: ["10.8.0.3"] }, FOREIGN("excludeIPs")],
      ["default", { default: true }, FOREIGN("default")],
      ["cooldown", { cooldown: "1m" }, FOREIGN("cooldown")],
      ["selection", { selection: "ascending" }, FOREIGN("selection")],
      ["nodeName beside ips", { ips: [], nodeName: ["a"] }, FOREIGN("nodeName")],
      ["podAffinity", { podAffinity: { matchLabels: { x: "y" } } }, FOREIGN("podAffinity")],
      ["the list itself", { ips: null }, /^403 .*IPPool made would lose spec\.ips and have all of 10\.8\.0\.0\/24/],
      [
        "generated, by removing it",
        { generated: null },
        /^403 .*IPPool made is generated and stays so; the controller may not remove spec\.generated/,
      ],
    ])("never changes %s", async (_, spec, wanted) => {
      const before = await read("made");
      expect(await change(controller, "made", { spec })).toMatch(wanted);
      expect(await read("made")).toEqual(before);
    });

    it("removes no field that is set", async () => {
      expect(await change(admin, "made", { spec: { cooldown: "1m" } })).toBe("done");
      expect(await change(controller, "made", { spec: { cooldown: null } })).toMatch(FOREIGN("cooldown"));
    });
  });

  describe("the controller, of objects made by hand,", () => {
    const REST =
      /^403 .*IPPool blue: the controller writes its status and its finalizers; the rest is the administrators'/;

    it("changes finalizers and status", async () => {
      expect(await change(controller, "blue", { metadata: { finalizers: ["ipam.vendor.io/in-use"] } })).toBe("done");
      expect(await change(controller, "blue", { metadata: { finalizers: [] } })).toBe("done");
      expect(await outcomeOf(controller.patch(`${POOLS}/blue/status`, { status: { conditions: [] } }))).toBe("done");
    });

    it("may come with labels and annotations of others, which a mutating webhook puts there", async () => {
      const others = { labels: { x: "y" }, annotations: { x: "y" } };
      expect(await change(controller, "blue", { metadata: others })).toBe("done");
      const none = { labels: { x: null }, annotations: { x: null } };
      expect(await change(controller, "blue", { metadata: none })).toBe("done");
    });

    it.each<[what: string, body: object, wanted: RegExp]>([
      ["ips", { spec: { ips: ["10.6.0.9"] } }, REST],
      ["gateway", { spec: { gateway: "10.6.0.1" } }, REST],
      ["disable", { spec: { disable: true } }, REST],
      [
        "labels",
        { metadata: { labels: { "ipam.vendor.io/x": "y" } } },
        /^403 .*IPPool blue would get other owners, or labels or annotations of Berth/,
      ],
      [
        "annotations",
        { metadata: { annotations: { "ipam.vendor.io/x": "y" } } },
        /^403 .*IPPool blue would get other owners/,
      ],
      [
        "owners",
        { metadata: { ownerReferences: [{ apiVersion: "v1", kind: "Node", name: "x", uid: "x" }] } },
        /^403 .*IPPool blue would get other owners/,
      ],
      [
        "for whom it is",
        { spec: { generated: GENERATED } },
        /^403 .*IPPool blue was made by hand and stays so; the controller may not add spec\.generated/,
      ],
    ])("never changes %s of a pool", async (_, body, wanted) => {
      const before = await read("blue");
      expect(await change(controller, "blue", body)).toMatch(wanted);
      expect(await read("blue")).toEqual(before);
    });

    it("deletes no pool", async () => {
      for (const options of [{}, { gracePeriodSeconds: 0 }, { dryRun: ["All"] }]) {
        expect(await outcomeOf(controller.delete(`${POOLS}/blue`, options))).toMatch(REST);
      }
    });

    it("changes finalizers and status of a Subnet, and nothing else", async () => {
      const green = `${SUBNETS}/green`;
      const patch = (body: object) => outcomeOf(controller.patch(green, body));
      expect(await patch({ metadata: { finalizers: ["ipam.vendor.io/in-use"] } })).toBe("done");
      expect(await patch({ metadata: { finalizers: [] } })).toBe("done");
      expect(await outcomeOf(controller.patch(`${green}/status`, { status: { pools: [] } }))).toBe("done");
      expect(await patch({ spec: { ips: [] } })).toMatch(/^403 .*Subnet green: the controller writes its status and/);
      expect(await patch({ metadata: { labels: { "ipam.vendor.io/x": "y" } } })).toMatch(
        /^403 .*Subnet green would get other owners/,
      );
    });
  });

  it('the controller makes the Coordinator "default" with nothing in it, and no other', async () => {
    const make = (name: string, spec: object) =>
      outcomeOf(
        controller.create(`${BERTH}/coordinators`, {
          apiVersion: "ipam.vendor.io/v1",
          kind: "Coordinator",
          metadata: { name },
          spec,
        }),
      );
    await admin.delete(`${BERTH}/coordinators/default`);
    const refusal = /^403 .*the controller writes its status and its finalizers; the rest is the administrators'/;
    expect(await make("default", { serviceCIDR: ["0.0.0.0/1"] })).toMatch(refusal);
    expect(await make("other", {})).toMatch(refusal);
    expect(await make("default", {})).toBe("done");
  });

  describe("the controller, of the cluster's networks,", () => {
    const path = `${BERTH}/coordinators/default`;
    const status = (networks: object) => ({ status: { phase: "Synced", reason: "", ...networks } });
    const write = (networks: object) => outcomeOf(controller.patch(`${path}/status`, status(networks)));
    /** `10.0.0.0/12`, `11.0.0.0/12`, … */
    const wide = (count: number) => Array.from({ length: count }, (_, at) => `${10 + at}.0.0.0/12`);
    const TOO_WIDE = (network: string) =>
      new RegExp(
        `^403 .*Coordinator default would get network "${network}"; the controller writes networks of unicast addresses with a prefix of 8 bits or more`,
      );

    it.each<[what: string, networks: object]>([
      [
        "of both families",
        { serviceCIDR: ["10.96.0.0/12", "fd00:96::/108"], overlayPodCIDR: ["10.0.0.0/8", "fd00::/16"] },
      ],
      [
        "many narrow ones",
        { overlayPodCIDR: Array.from({ length: 1_024 }, (_, at) => `10.${at >> 8}.${at & 255}.0/24`) },
      ],
      ["some wide ones", { overlayPodCIDR: wide(16), serviceCIDR: wide(16) }],
      ["none", { serviceCIDR: [], overlayPodCIDR: [] }],
    ])("writes %s", async (_, networks) => {
      expect(await write(networks)).toBe("done");
    });

    it.each<[what: string, networks: object, wanted: RegExp]>([
      ["half of all addresses", { serviceCIDR: ["10.96.0.0/16", "0.0.0.0/1"] }, TOO_WIDE("0.0.0.0/1")],
      ["the other half", { overlayPodCIDR: ["128.0.0.0/1"] }, TOO_WIDE("128.0.0.0/1")],
      ["more than a cluster has", { overlayPodCIDR: ["10.0.0.0/7"] }, TOO_WIDE("10.0.0.0/7")],
      ["half of all IPv6 addresses", { serviceCIDR: ["8000::/1"] }, TOO_WIDE("8000::/1")],
      ["all unique local ones", { overlayPodCIDR: ["fd00::/15"] }, TOO_WIDE("fd00::/15")],
      ["the cloud's metadata", { overlayPodCIDR: ["169.254.169.254/32"] }, TOO_WIDE("169.254.169.254/32")],
      ["a text that is no network", { serviceCIDR: ["everything"] }, TOO_WIDE("everything")],
      [
        "many halves",
        { serviceCIDR: wide(17) },
        /^403 .*would get more than 16 networks of pods, or of services, that are wider/,
      ],
    ])("never writes %s", async (_, networks, wanted) => {
      const before = (await admin.get(path)).status;
      expect(await write(networks)).toMatch(wanted);
      expect((await admin.get(path)).status).toEqual(before);
    });

    it("repeats the specification, however wide", async () => {
      await admin.patch(path, { spec: { serviceCIDR: ["8.0.0.0/6"] } });
      expect(await write({ serviceCIDR: ["8.0.0.0/6"] })).toBe("done");
      await admin.patch(path, { spec: { serviceCIDR: null } });
      expect(await write({ serviceCIDR: ["12.0.0.0/6"] })).toMatch(TOO_WIDE("12.0.0.0/6"));
      expect(await write({ serviceCIDR: [] })).toBe("done");
    });
  });

  describe("the controller, of an IPAMClaim,", () => {
    const path = `${CLAIMS}/seat`;
    const write = (status: object) => outcomeOf(controller.patch(`${path}/status`, { status }));

    beforeAll(async () => {
      await admin.create(CLAIMS, ipamClaim("seat", { interface: "net1", network: "store" }));
      await admin.patch(`${path}/status`, { status: { conditions: [{ type: "Ready" }] } });
    });

    it("writes the addresses and the pod", async () => {
      expect(await write({ ips: ["10.6.0.21/16", "fd00:6::21/64"], ownerPod: "db-0" })).toBe("done");
      expect(await write({ ips: ["fd00:6::21/64"], ownerPod: "db-1" })).toBe("done");
    });

    const NO_ADDRESS = /^403 .*IPAMClaim shop\/seat would get status\.ips that are not one unicast address of a family/;
    it.each<[what: string, status: object, wanted: RegExp]>([
      ["two of a family", { ips: ["10.6.0.21/16", "10.6.0.22/16"] }, NO_ADDRESS],
      ["three", { ips: ["10.6.0.21/16", "fd00:6::21/64", "fd00:6::22/64"] }, NO_ADDRESS],
      ["every address there is", { ips: ["10.6.0.21/0"] }, NO_ADDRESS],
      ["a text that is no address", { ips: ["gateway"] }, NO_ADDRESS],
      ["a loopback address", { ips: ["127.0.0.1/8"] }, NO_ADDRESS],
      [
        "another condition",
        { conditions: [{ type: "Stolen" }] },
        /^403 .*IPAMClaim shop\/seat: the controller writes status\.ips and status\.ownerPod, and nothing else/,
      ],
      ["no conditions", { conditions: null }, /^403 .*writes status\.ips and status\.ownerPod, and nothing else/],
    ])("never writes %s", async (_, status, wanted) => {
      const before = (await admin.get(path)).status;
      expect(await write(status)).toMatch(wanted);
      expect((await admin.get(path)).status).toEqual(before);
    });
  });

  describe("any other account, an administrator's too,", () => {
    it.each<[what: string, spec: object]>([
      ["more addresses", { ips: ["10.8.0.2-10.8.0.200"] }],
      ["fewer", { ips: ["10.8.0.2"] }],
      ["none", { ips: [] }],
      ["all of the subnet", { ips: null }],
      ["another size", { generated: { wanted: 100 } }],
      ["another workload", { generated: { application: { uid: "u2" } } }],
      ["to itself", { generated: null }],
    ])("gives a generated pool never %s", async (_, spec) => {
      const before = await read("made");
      expect(await change(admin, "made", { spec })).toMatch(INSTEAD);
      expect(await read("made")).toEqual(before);
    });

    it.each<[what: string, body: object]>([
      ["disables", { spec: { disable: true } }],
      ["lets addresses rest longer in", { spec: { cooldown: "1h" } }],
      ["chooses the order of", { spec: { selection: "ascending" } }],
      ["excludes an address of", { spec: { excludeIPs: ["10.8.0.3"] } }],
      ["labels", { metadata: { labels: { x: "y" }, annotations: { x: "y" } } }],
      ["gives a finalizer to", { metadata: { finalizers: ["example.com/x"] } }],
    ])("%s a generated pool", async (_, body) => {
      expect(await change(admin, "made", body)).toBe("done");
      expect(await admin.get(`${POOLS}/made`)).toMatchObject(body);
    });

    it("puts a generated pool back as it was read, and deletes it", async () => {
      expect(await outcomeOf(admin.put(`${POOLS}/made`, await admin.get(`${POOLS}/made`)))).toBe("done");
      expect(await outcomeOf(admin.delete(POOLS))).toBe("done");
      expect((await admin.get(POOLS)).items).toEqual([]);
    });

    it.each<[what: string, spec: object]>([
      ["addresses", {}],
      ["all of the subnet", { ips: undefined }],
    ])("makes no generated pool with %s", async (_, spec) => {
      expect(await outcomeOf(admin.create(POOLS, generatedPool("other", spec)))).toMatch(
        /^403 .*IPPool other is generated for Deployment shop\/web out of Subnet green; make it with "ips: \[\]", and the controller fills it/,
      );
    });

    it("makes an empty one, as a restored backup does", async () => {
      expect(await outcomeOf(admin.create(POOLS, generatedPool("other", { ips: [] })))).toBe("done");
    });

    it("makes no generated pool of one that was made by hand", async () => {
      expect(await change(admin, "blue", { spec: { generated: GENERATED } })).toMatch(
        /^403 .*IPPool blue was made by hand and would get spec\.generated; only the controller makes generated pools/,
      );
    });

    it("changes pools that were made by hand as before", async () => {
      expect(await change(admin, "blue", { spec: { ips: ["10.6.0.5"], gateway: "10.6.0.1" } })).toBe("done");
      expect(await outcomeOf(admin.delete(`${POOLS}/blue`))).toBe("done");
    });
  });
}
