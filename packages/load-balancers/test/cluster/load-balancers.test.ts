/** Services of the class on a real API server: two built controllers, one of which is killed, and refused requests. */
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { borrowPlane } from "../../../../test/cluster/borrow-plane.ts";
import { ALLOCATIONS, NAMESPACES } from "../../../../test/lab/cluster/objects.ts";
import { startWorld, type World } from "../../../../test/lab/cluster/world.ts";
import type { KubeClient, KubeObject } from "../../../../test/lab/kube-client.ts";
import { CLASS } from "../../service.ts";

const SERVICES = `${NAMESPACES}/shop/services`;
const PATIENCE = { timeout: 60_000 };
let world: World;
let client: KubeClient;

beforeAll(async () => {
  const settings = { enableIPv6: false, allocationCooldown: "1s", garbageCollection: { interval: "10s", grace: "3s" } };
  world = await startWorld({ startPlane: borrowPlane, nodes: ["n1"], settings });
  ({ client } = world);
  await world.pool("blue", { subnet: "10.6.0.0/24", default: true });
  await world.pool("elsewhere", { subnet: "10.6.0.0/24", addressSpace: "x" });
  await world.pool("small", { subnet: "10.7.0.0/24", ips: ["10.7.0.1-10.7.0.2"] });
  await world.pool("six", { subnet: "fd06::/64", default: true });
  await world.pool("bank", { subnet: "10.8.0.0/24", namespaceName: ["bank"] });
  await Promise.all(["a", "b"].map((name) => world.startController(name)));
}, 120_000);
afterEach(async () => {
  const { items } = await client.get(SERVICES);
  await Promise.all(items.map(({ metadata }: KubeObject) => client.delete(`${SERVICES}/${metadata.name}`)));
  await expect.poll(records, PATIENCE).toEqual([]);
});
afterAll(() => world?.stop());

/** `more`: of `spec`; the rest are annotations. */
async function make(name: string, { more = {}, ...own }: Record<string, unknown> = {}): Promise<string> {
  const annotations = Object.fromEntries(Object.entries(own).map(([key, text]) => [`ipam.vendor.io/${key}`, text]));
  const spec = { type: "LoadBalancer", loadBalancerClass: CLASS, ports: [{ port: 80 }], ...(more as object) };
  const object = { apiVersion: "v1", kind: "Service", metadata: { name, annotations }, spec };
  return (await client.create(SERVICES, object)).metadata.uid;
}

const ofPool = (...ipv4: string[]) => ({ ippool: JSON.stringify({ ipv4 }) });

const read = (name: string): Promise<KubeObject> => client.get(`${SERVICES}/${name}`);

const addressesOf = async (name: string): Promise<string> =>
  ((await read(name)).status.loadBalancer.ingress ?? []).map(({ ip }: KubeObject) => ip).join();

/** `STATUS REASON MESSAGE` */
async function condition(name: string): Promise<string> {
  const { status, reason, message } = (await read(name)).status.conditions?.[0] ?? {};
  return `${status} ${reason} ${message}`;
}

/** `ADDRESS NAME` of each record. */
async function records(): Promise<string[]> {
  const { items } = await client.get(ALLOCATIONS);
  return items.map(({ spec }: KubeObject) => `${spec.address} ${spec.workload?.name ?? spec.state}`).sort();
}

it("30 Services at once have one address each while the leader is killed twice, and none when they are gone", {
  timeout: 180_000,
}, async () => {
  const names = Array.from({ length: 30 }, (_, at) => `s${at}`);
  const making = Promise.all(names.map((name, at) => make(name, ofPool(at % 2 === 0 ? "blue" : "elsewhere"))));
  await world.replaceLeader("c");
  await making;
  await world.replaceLeader("d");
  const all = async () => (await Promise.all(names.map(addressesOf))).filter((text) => /^10\.6\.0\.\d+$/.test(text));
  await expect.poll(async () => new Set(await all()).size, PATIENCE).toBe(30);
  const addresses = await all();
  // An address that was claimed but is in no status cools by and by.
  const recorded = async () => [...new Set(await records())];
  await expect.poll(recorded, PATIENCE).toEqual(names.map((name, at) => `${addresses[at]} ${name}`).sort());
});

it("pools, fixed addresses and keys are followed, and refusals say why", { timeout: 180_000 }, async () => {
  await make("fixed", { ...ofPool("small"), ips: "10.7.0.2", "sharing-key": "one" });
  await expect.poll(() => addressesOf("fixed"), PATIENCE).toBe("10.7.0.2");
  await make("shares", { ...ofPool("small"), "sharing-key": "one", more: { ports: [{ port: 443 }] } });
  await expect.poll(() => addressesOf("shares"), PATIENCE).toBe("10.7.0.2");
  await make("second", ofPool("small"));
  await expect.poll(() => addressesOf("second"), PATIENCE).toBe("10.7.0.1");
  await make("third", ofPool("small"));
  await make("banks", ofPool("ba*"));
  await make("bad", { ips: "front" });
  await make("odd", { ip: "10.6.0.9" });
  await world.create("ReservedIP", "kept", { ips: ["10.6.0.88"], owner: { namespace: "bank", name: "vault" } });
  await make("hidden", { ips: "10.6.0.88" });
  await make("other", { more: { loadBalancerClass: "example.org/other" } });
  const refusals: [string, string][] = [
    ["third", 'False NoRoom No address is free in pool "small"; add addresses, or name other pools'],
    ["banks", "False NoPool No pool gives IPv4 addresses to this Service: 1 pool: "],
    ["bad", 'False InvalidAnnotation annotation "ipam.vendor.io/ips": found "front", want one address of each'],
    [
      "odd",
      'False InvalidAnnotation annotation "ipam.vendor.io/ip": found an unknown annotation, want "ipam.vendor.io/ips"',
    ],
    ["hidden", 'False NotOfPool annotation "ipam.vendor.io/ips": 10.6.0.88: pool "blue" may not give it: ReservedIP'],
  ];
  for (const [name, wanted] of refusals) await expect.poll(() => condition(name), PATIENCE).toContain(wanted);
  const noted = async (): Promise<string[]> => {
    const { items } = await client.get("/apis/events.k8s.io/v1/namespaces/shop/events");
    const own = items.filter(({ reason }: KubeObject) => reason === "AddressRefused");
    return own.map(({ regarding }: KubeObject) => regarding.name).sort();
  };
  await expect.poll(noted, PATIENCE).toEqual(refusals.map(([name]) => name).sort());
  expect(await condition("hidden")).not.toContain("vault");
  expect([await condition("fixed"), await condition("other")]).toEqual([
    "True Assigned 10.7.0.2; 10.7.0.2 was not probed",
    "undefined undefined undefined",
  ]);
  // The Service that shares keeps the address when the other one is deleted.
  await client.delete(`${SERVICES}/fixed`);
  await expect.poll(records, PATIENCE).toEqual(["10.7.0.1 second", "10.7.0.2 shares"]);
  expect(await addressesOf("shares")).toBe("10.7.0.2");
  // A waiting Service gets an address that another one gives up.
  await client.delete(`${SERVICES}/second`);
  await expect.poll(() => addressesOf("third"), PATIENCE).toBe("10.7.0.1");
});

it("a family that the settings disable gives no address, and the condition says so", async () => {
  const of = (ipFamilyPolicy: string, ...ipFamilies: string[]) => ({ more: { ipFamilyPolicy, ipFamilies } });
  await make("prefers", of("PreferDualStack", "IPv6", "IPv4"));
  await make("requires", of("RequireDualStack", "IPv4", "IPv6"));
  await make("single", of("SingleStack", "IPv6"));
  const disabled =
    "IPv6 is disabled, as enableIPv6 is false in vendor-conf; enable it, or name IPv4 alone in spec.ipFamilies";
  await expect.poll(() => condition("prefers"), PATIENCE).toMatch(/^True Assigned 10\.6\.0\.\d+; /);
  expect(await condition("prefers")).toMatch(`; ${disabled}`);
  await make("nowhere", { ippool: '{"ipv4":["nowhere"]}', ...of("PreferDualStack", "IPv6", "IPv4") });
  await expect.poll(() => condition("nowhere"), PATIENCE).toMatch(/^False NoPool .*"nowhere"/);
  for (const name of ["requires", "single"])
    await expect.poll(() => condition(name), PATIENCE).toBe(`False FamilyDisabled ${disabled}`);
  expect((await records()).filter((line) => line.startsWith("fd06"))).toEqual([]);
  await make("follows", of("PreferDualStack", "IPv4", "IPv6"));
  await expect.poll(() => condition("follows"), PATIENCE).toMatch(`; ${disabled}`);
  await client.patch(`${SERVICES}/follows`, { spec: of("SingleStack", "IPv4").more });
  await expect.poll(() => condition("follows"), PATIENCE).not.toMatch("disabled");
  await client.patch(`${SERVICES}/single/status`, { status: { loadBalancer: { ingress: [{ ip: "fd06::9" }] } } });
  await expect.poll(() => condition("single"), PATIENCE).toMatch(/^True Assigned fd06::9/);
  await client.patch(`${SERVICES}/single`, { metadata: { annotations: { "ipam.vendor.io/ips": "fd06::50" } } });
  await expect.poll(() => condition("single"), PATIENCE).toBe(`False FamilyDisabled ${disabled}`);
  expect((await records()).filter((line) => line.startsWith("fd06"))).toEqual(["fd06::9 single"]);
});

it("the controller writes no other Service, and nothing else of its own", async () => {
  await make("other", { more: { loadBalancerClass: "example.org/other" } });
  await make("front");
  const controller = await world.openClient("n1", { account: "berth-controller" });
  const ingress = { status: { loadBalancer: { ingress: [{ ip: "10.6.0.9" }] } } };
  const labelled = { metadata: { labels: { x: "y" } } };
  for (const [path, body] of [
    ["other/status", ingress],
    ["front/status", labelled],
    ["front", labelled],
  ] as const)
    await expect(controller.patch(`${SERVICES}/${path}`, body)).rejects.toThrow(/403/);
});
