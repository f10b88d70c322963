/** EndpointSlices of Services for a second network (docs/services.md), written by the built controller. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { borrowPlane } from "../../../../test/cluster/borrow-plane.ts";
import { outcomeOf } from "../../../../test/cluster/rights-objects.ts";
import { type LabPod, NAMESPACES, podPath } from "../../../../test/lab/cluster/objects.ts";
import { startWorld, type World } from "../../../../test/lab/cluster/world.ts";
import type { KubeClient, KubeObject } from "../../../../test/lab/kube-client.ts";

const SERVICES = `${NAMESPACES}/shop/services`;
const SLICES = "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices";
const TARGET = { "ipam.vendor.io/service-network": "net/blue", "ipam.vendor.io/service-selector": "app=web" };

let world: World;
let client: KubeClient;

beforeAll(async () => {
  world = await startWorld({ startPlane: borrowPlane, namespaces: ["shop", "other"], settings: { enableIPv6: true } });
  ({ client } = world);
  await world.setNode("n1", "True");
  for (const [name, subnet] of [
    ["blue", "10.6.0.0/24"],
    ["blue6", "fd00:6::/64"],
  ] as const)
    await world.pool(name, { subnet });
  await world.startController("one");
});
afterAll(() => world?.stop());

/** A pod with a second NIC, and the records of that; ready. */
async function makePod(
  name: string,
  addresses: readonly string[],
  spec: { namespace?: string; app?: string } = {},
): Promise<LabPod> {
  const { namespace = "shop", app = "web" } = spec;
  const annotations = { "k8s.v1.cni.cncf.io/networks": "net/red,net/blue" };
  const pod = await world.createPod({ name, namespace, node: "n1", labels: { app }, annotations });
  for (const address of addresses) {
    const holder = { namespace, pod: name, podUid: pod.uid, ifName: "net2", node: "n1" };
    await world.allocate(address, { pool: address.includes(":") ? "blue6" : "blue", holders: [holder] });
  }
  await setReady(pod, "True");
  return pod;
}

const setReady = (pod: LabPod, status: string): Promise<KubeObject> =>
  client.patch(`${podPath(pod)}/status`, { status: { phase: "Running", conditions: [{ type: "Ready", status }] } });

async function makeService(name: string, spec: object = {}, annotations: object = TARGET): Promise<KubeObject> {
  const ports = [{ name: "http", port: 80, targetPort: 8080 }];
  return client.create(SERVICES, {
    ...{ apiVersion: "v1", kind: "Service", metadata: { name, annotations } },
    spec: { ipFamilyPolicy: "PreferDualStack", ports, ...spec },
  });
}

/** `IPv4 10.6.0.11 ready`, of all of the Service's slices, sorted. */
async function endpoints(service: string): Promise<string[]> {
  const { items } = await client.get(`${SLICES}?labelSelector=kubernetes.io%2Fservice-name%3D${service}`);
  const lines = items.flatMap(({ addressType, endpoints }: KubeObject) =>
    endpoints.map(({ addresses, conditions }: KubeObject) =>
      [addressType, ...addresses, ...Object.keys(conditions).filter((key) => conditions[key])].join(" "),
    ),
  );
  return lines.sort();
}

const expectEndpoints = (service: string, wanted: readonly string[]): Promise<void> =>
  expect.poll(() => endpoints(service), { timeout: 30_000 }).toEqual(wanted);

describe("a Service without a selector that names a network", () => {
  it("gets the addresses of its namespace's pods on that network, and follows them", async () => {
    const [a, b] = [await makePod("web-a", ["10.6.0.11", "fd00:6::11"]), await makePod("web-b", ["10.6.0.12"])];
    await makePod("db", ["10.6.0.13"], { app: "db" });
    await makePod("web-c", ["10.6.0.14"], { namespace: "other" });
    // An address of another NIC of the pod, and one of an earlier pod of its name.
    const holder = { namespace: "shop", pod: "web-a", podUid: a.uid, ifName: "net1", node: "n1" };
    await world.allocate("10.6.0.15", { holders: [holder] });
    await world.allocate("10.6.0.16", { holders: [{ ...holder, podUid: "earlier", ifName: "net2" }] });
    const { metadata } = await makeService("web");
    const both = ["IPv4 10.6.0.11 ready serving", "IPv4 10.6.0.12 ready serving", "IPv6 fd00:6::11 ready serving"];
    await expectEndpoints("web", both);
    const [slice] = (await client.get(SLICES)).items;
    expect(slice).toMatchObject({
      metadata: {
        name: "web-berth-v4-0",
        labels: { "endpointslice.kubernetes.io/managed-by": "berth", "kubernetes.io/service-name": "web" },
        ownerReferences: [{ kind: "Service", name: "web", uid: metadata.uid }],
      },
      endpoints: [{ nodeName: "n1", targetRef: { kind: "Pod", namespace: "shop", name: "web-a", uid: a.uid } }, {}],
      ports: [{ name: "http", port: 8080, protocol: "TCP" }],
    });
    await setReady(b, "False");
    await expectEndpoints("web", [both[0] ?? "", "IPv4 10.6.0.12", both[2] ?? ""]);
    await world.release("fd00-0006-0000-0000-0000-0000-0000-0011");
    await world.deletePod(b);
    await expectEndpoints("web", both.slice(0, 1));
  });

  it("gets its slices back when they are changed or removed, and others' stay", async () => {
    const foreign = { name: "web-by-hand", labels: { "kubernetes.io/service-name": "web" } };
    const kind = { apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice", addressType: "IPv4", ports: [] };
    await client.create(SLICES, { ...kind, metadata: foreign, endpoints: [{ addresses: ["192.0.2.7"] }] });
    await client.patch(`${SLICES}/web-berth-v4-0`, { endpoints: [{ addresses: ["192.0.2.8"] }] });
    const wanted = ["IPv4 10.6.0.11 ready serving", "IPv4 192.0.2.7"];
    await expectEndpoints("web", wanted);
    await client.delete(`${SLICES}/web-berth-v4-0`);
    await expectEndpoints("web", wanted);
  });
});

it("a Service with a selector gets one Event and nothing else", async () => {
  const { metadata } = await makeService("both", { selector: { app: "web" } });
  const events = async (): Promise<KubeObject[]> =>
    (await client.get("/apis/events.k8s.io/v1/namespaces/shop/events")).items.filter(
      // The API server has Events about addresses of Services, too.
      ({ regarding, reportingController: by }: KubeObject) =>
        regarding.uid === metadata.uid && by === "berth-controller",
    );
  await expect.poll(events, { timeout: 30_000 }).toMatchObject([{ type: "Warning", reason: "NoEndpointsFromNetwork" }]);
  await client.patch(`${SERVICES}/both`, { metadata: { labels: { other: "x" } } });
  await makeService("after");
  await expectEndpoints("after", ["IPv4 10.6.0.11 ready serving"]);
  expect([await endpoints("both"), (await events()).length]).toEqual([[], 1]);
});

const object = (metadata: object = {}, endpoint: object = {}) => ({
  ...{ apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice", addressType: "IPv4", ports: [] },
  metadata: {
    name: "x",
    labels: { "endpointslice.kubernetes.io/managed-by": "berth", "kubernetes.io/service-name": "web" },
    ownerReferences: [{ apiVersion: "v1", kind: "Service", name: "web", uid: "u" }],
    ...metadata,
  },
  endpoints: [{ addresses: ["10.6.0.9"], targetRef: { kind: "Pod", namespace: "shop", name: "a" }, ...endpoint }],
});

it("the controller's account writes no endpoints but of the namespace's pods, in slices of its own", async () => {
  const account = await world.openClient("n1", { account: "berth-controller" });
  const make = (...of: Parameters<typeof object>) => outcomeOf(account.create(SLICES, object(...of)));
  expect(await make({}, { targetRef: { kind: "Pod", namespace: "other", name: "a" } })).toMatch(
    /^403 .*no pod of namespace shop/,
  );
  expect(await make({}, { targetRef: undefined })).toMatch(/^403 .*no pod of namespace shop/);
  expect(await make({ ownerReferences: [] })).toMatch(/^403 .*must be owned/);
  expect(await make({ labels: { "kubernetes.io/service-name": "web" } })).toMatch(/^403 .*is not Berth's/);
  const path = `${SLICES}/web-by-hand`;
  expect(await outcomeOf(account.patch(path, { endpoints: [] }))).toMatch(/^403 .*is not Berth's/);
  expect(await outcomeOf(account.delete(path))).toMatch(/^403 .*is not Berth's/);
  expect(await outcomeOf(account.patch(`${SERVICES}/web`, { metadata: { labels: { a: "b" } } }))).toMatch(/^403 /);
});
