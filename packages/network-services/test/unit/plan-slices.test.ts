import { describe, expect, it } from "vitest";
import { parseIp } from "../../../../host/net/ip.ts";
import { decodeBackendPod } from "../../backend-pod.ts";
import { decodeSlice, encodeSlice, type KnownSlice } from "../../endpoint-slice.ts";
import { decodeNetworkService, type NetworkService } from "../../network-service.ts";
import { MAX_SLICE_ENDPOINTS, planSlices } from "../../plan-slices.ts";

const TARGET = { "ipam.vendor.io/service-network": "net/blue", "ipam.vendor.io/service-selector": "app=web" };

function service(spec: object = {}): NetworkService {
  const metadata = { namespace: "shop", name: "web", uid: "s1", annotations: TARGET };
  const ports = [{ name: "http", port: 80, targetPort: 8080 }];
  const found = decodeNetworkService({ metadata, spec: { ipFamilies: ["IPv4", "IPv6"], ports, ...spec } });
  if (found === undefined || found.fault !== undefined) throw new Error(found?.fault ?? "none");
  return found;
}

interface PodOptions {
  readonly addresses: Readonly<Record<string, readonly string[]>>;
  readonly networks?: string;
  readonly labels?: object;
  readonly ready?: boolean;
  readonly metadata?: object;
  readonly spec?: object;
}

/** Pods, and by pod and NIC the addresses of their records. */
function backendsOf(pods: Readonly<Record<string, PodOptions>>, firstNic = "eth0") {
  const decoded = Object.entries(pods).map(([name, { networks = "net/blue", labels, ready = true, ...own }]) =>
    decodeBackendPod({
      metadata: {
        ...{ namespace: "shop", name, uid: `${name}-uid`, labels: labels ?? { app: "web" } },
        annotations: { "k8s.v1.cni.cncf.io/networks": networks },
        ...own.metadata,
      },
      spec: { nodeName: "n1", containers: [], ...own.spec },
      status: { conditions: [{ type: "Ready", status: ready ? "True" : "False" }] },
    }),
  );
  return {
    pods: decoded.filter((each) => each !== undefined),
    addressesOf: ({ name }: { readonly name: string }, ifName: string) =>
      (pods[name]?.addresses[ifName] ?? []).flatMap((text) => parseIp(text) ?? []),
    firstNic,
  };
}

/** The slices after the plan, as the API server has them. */
function carriedOut(plan: ReturnType<typeof planSlices>, before: readonly KnownSlice[] = []): KnownSlice[] {
  const made = (name: string, family: string, content: Parameters<typeof encodeSlice>[0]) => {
    const { metadata, ...rest } = encodeSlice(content);
    const identity = { ...metadata, namespace: "shop", name, uid: name, resourceVersion: "1" };
    return decodeSlice(JSON.parse(JSON.stringify({ metadata: identity, addressType: family, ...rest })));
  };
  const gone = new Set([...plan.remove, ...plan.change.map(({ slice }) => slice)]);
  return [
    ...before.filter((slice) => !gone.has(slice)),
    ...plan.change.map(({ slice, ...content }) => made(slice.name, slice.addressType, content)),
    ...plan.create.map(({ name, family, ...content }) => made(name, `IPv${family}`, content)),
  ];
}

const addresses = ({ endpoints }: KnownSlice): string[] => endpoints.map((each) => each.split(" ")[0] ?? "");

/** `web-berth-v4-0 10.0.0.1 10.0.0.2` */
const lines = (slices: readonly KnownSlice[]): string[] =>
  slices.map((slice) => [slice.name, ...addresses(slice)].join(" ")).sort();

const plan = (pods: Readonly<Record<string, PodOptions>>, of = service(), slices: readonly KnownSlice[] = []) =>
  planSlices(of, backendsOf(pods), slices);

const A: PodOptions = { addresses: { net1: ["10.0.0.1", "fd00::1"], eth0: ["192.0.2.1"] } };
const B: PodOptions = { addresses: { net1: ["10.0.0.2"] } };

describe("the slices of a Service", () => {
  it.each([
    ["by position", "other,net/blue", "net2"],
    ["by the name that the pod gives it", "net/blue@data", "data"],
    ["in the JSON form", '[{"name":"blue","namespace":"net","interface":"data"}]', "data"],
  ])("find the NIC %s", (_, networks, nic) => {
    const slices = carriedOut(plan({ a: { networks, addresses: { [nic]: ["10.0.0.9"] } } }));
    expect(lines(slices)).toEqual(["web-berth-v4-0 10.0.0.9"]);
  });

  it("find the first NIC by the pod's own default network", () => {
    const annotations = { "v1.multus-cni.io/default-network": "net/blue" };
    const slices = carriedOut(plan({ a: { ...A, metadata: { annotations } } }));
    expect(lines(slices)).toEqual(["web-berth-v4-0 192.0.2.1"]);
  });

  it("have nothing of a pod whose annotation cannot be read", () =>
    expect(plan({ a: { ...A, networks: "[" } }).create).toEqual([]));

  const conditionsOf = (pod: Partial<PodOptions>, spec?: object) => {
    const endpoint = plan({ a: { ...B, ...pod } }, service(spec)).create[0]?.endpoints[0];
    return (["ready", "serving", "terminating"] as const).filter((each) => endpoint?.[each]).join();
  };
  const ending = { metadata: { deletionTimestamp: "2026-11-20T04:00:00Z" } };
  it.each([
    ["of a ready pod", {}, {}, "ready,serving"],
    ["of one that is not", { ready: false }, {}, ""],
    ["of one that ends", ending, {}, "serving,terminating"],
    ["with publishNotReadyAddresses", { ready: false }, { publishNotReadyAddresses: true }, "ready"],
  ])("have the conditions %s", (_, pod, spec, wanted) => expect(conditionsOf(pod, spec)).toBe(wanted));

  it("have the hostname of a pod below this Service", () => {
    const spec = { hostname: "a", subdomain: "web" };
    expect(plan({ a: { ...B, spec } }).create[0]?.endpoints[0]).toMatchObject({ hostname: "a", node: "n1" });
    expect(plan({ a: { ...B, spec: { ...spec, subdomain: "x" } } }).create[0]?.endpoints[0]?.hostname).toBeUndefined();
  });

  it("have ports by number and by the name in the pod, and one slice more for pods with another number", () => {
    const http = { name: "web", port: 80, targetPort: "http" };
    const ports = [http, { name: "udp", port: 5, protocol: "UDP" }];
    const named = (containerPort: number) => ({ spec: { containers: [{ ports: [{ name: "http", containerPort }] }] } });
    const pods = { a: { ...A, ...named(8080) }, b: { ...B, ...named(9090) } };
    const slices = plan(pods, service({ ports, ipFamilies: ["IPv4"] }));
    const textOf = (ports: readonly { name: string; port: number }[]) =>
      ports.map(({ name, port }) => `,${name} ${port}`);
    const texts = slices.create.map(({ name, ports }) => [name, ...textOf(ports)].join(""));
    expect(texts).toEqual(["web-berth-v4-0,web 8080,udp 5", "web-berth-v4-1,web 9090,udp 5"]);
    expect(plan({ a: A }, service({ ports })).create[0]?.ports.map(({ name }) => name)).toEqual(["udp"]);
  });

  it("have at most 100 endpoints, and change one by one", () => {
    const many = Array.from({ length: 250 }, (_, at) => [`p${at}`, { addresses: { net1: [`10.0.1.${at}`] } }]);
    const pods = Object.fromEntries(many);
    const slices = carriedOut(plan(pods));
    expect(slices.map(({ endpoints }) => endpoints.length)).toEqual([MAX_SLICE_ENDPOINTS, MAX_SLICE_ENDPOINTS, 50]);
    const { p7: _, ...less } = pods;
    const removal = plan(less, service(), slices);
    // The last slice's endpoints stay there, though there is room before.
    const first = "web-berth-v4-0";
    expect([removal.create, removal.remove, removal.change.map(({ slice }) => slice.name)]).toEqual([[], [], [first]]);
    const addition = plan({ ...less, new: B }, service(), carriedOut(removal, slices));
    expect(addition.change.map(({ slice, endpoints }) => [slice.name, endpoints.length])).toEqual([[first, 100]]);
  });

  it("give an address of two pods, while a machine migrates, to the ready one", () => {
    const pods = { old: { ...B, ready: false }, new: B, third: { ...B, ready: false } };
    expect(plan(pods).create.flatMap(({ endpoints }) => endpoints.map(({ pod }) => pod.name))).toEqual(["new"]);
  });

  it("are kept with new ports, owned by the Service that was made again, and removed with it", () => {
    const slices = carriedOut(plan({ a: A, b: B }));
    const ports = [{ name: "http", port: 80, targetPort: 9090 }];
    const changed = plan({ a: A, b: B }, service({ ports }), slices);
    expect([changed.create, changed.remove, changed.change.length]).toEqual([[], [], 2]);
    expect(plan({ a: A, b: B }, { ...service(), uid: "s2" }, slices).change.length).toBe(2);
    expect(planSlices(undefined, backendsOf({ a: A }), slices).remove).toEqual(slices);
    expect(plan({}, service(), slices).remove).toEqual(slices);
  });
});

describe("a Service", () => {
  const decode = (annotations: object, spec: object = {}) =>
    decodeNetworkService({ metadata: { namespace: "shop", name: "web", uid: "s1", annotations }, spec });

  it("without the annotations takes no memory", () => expect(decode({ other: "x" })).toBeUndefined());

  const { "ipam.vendor.io/service-selector": _, ...one } = TARGET;
  it.each<[string, object, object, RegExp]>([
    ["with a selector", TARGET, { selector: { app: "web" } }, /^It has spec\.selector/],
    ["of another name", TARGET, { type: "ExternalName" }, /^Of type ExternalName/],
    ["with one annotation", one, {}, /service-selector".*found nothing, want a label/],
    ["with a bare network", { ...TARGET, "ipam.vendor.io/service-network": "blue" }, {}, /NAMESPACE\/NAME/],
    ["with an empty selector", { ...TARGET, "ipam.vendor.io/service-selector": "" }, {}, /label selector/],
  ])("%s gets none, and says why", (_, annotations, spec, wanted) =>
    expect(decode(annotations, spec)?.fault).toMatch(wanted),
  );
});
