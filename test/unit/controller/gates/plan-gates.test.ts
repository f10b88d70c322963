import { describe, expect, it } from "vitest";
import { DEFAULT_VENDOR_CONF } from "../../../../host/config/vendor-conf.ts";
import { decodeGatedPod, type GatedPod, reduceGatedPod } from "../../../../host/controller/gates/gated-pod.ts";
import { decideGate, type GatesView } from "../../../../host/controller/gates/plan-gates.ts";
import { ADDRESS_GATE } from "../../../../host/resources/address-gate.ts";
import { decodeNamespace } from "../../../../host/resources/namespace.ts";
import { cases } from "../../../world/rows.ts";
import { pool, poolsByName } from "../../../world/subjects.ts";
import { annotationsOf } from "../owners/workload-objects.ts";

const BLUE = pool("blue", "10.1.0.0/24", { default: true });
const GREEN = pool("green", "10.2.0.0/24");
const RACK_A = pool("rack-a", "10.3.0.0/24", { nodeName: ["n1"] });
const RACK_B = pool("rack-b", "10.4.0.0/24", { nodeAffinity: { matchLabels: { rack: "b" }, matchExpressions: [] } });

const NODE = { name: "n1", labels: {} };

interface PodOptions {
  readonly annotations?: Readonly<Record<string, unknown>>;
  readonly spec?: object;
  readonly metadata?: object;
}

function gatedPod({ annotations = {}, spec = {}, metadata = {} }: PodOptions = {}): GatedPod {
  const own = { namespace: "shop", name: "web-0", uid: "u1", resourceVersion: "5" };
  const pod = decodeGatedPod({
    ...{ apiVersion: "v1", kind: "Pod" },
    metadata: {
      ...own,
      creationTimestamp: "2026-11-20T04:00:00Z",
      annotations: annotationsOf(annotations),
      ...metadata,
    },
    spec: { schedulingGates: [{ name: "other" }, { name: ADDRESS_GATE }], ...spec },
    status: { phase: "Pending" },
  });
  if (pod === undefined) throw new Error("It has no gate");
  return pod;
}

/** `free`: of each pool; others are full. */
function view(free: Readonly<Record<string, number>>, more: Partial<GatesView> = {}): GatesView {
  return {
    ...{ pools: poolsByName(BLUE, GREEN, RACK_A, RACK_B), refused: new Map(), namespaces: new Map() },
    settings: { ...DEFAULT_VENDOR_CONF, enableIPv6: false },
    ...{ firstNic: "eth0", mode: "auto", network: () => undefined, isKept: () => false },
    nodes: [NODE, { name: "n2", labels: { rack: "b" } }],
    freeIn: (name) => free[name] ?? 0,
    ...more,
  };
}

const decide = (options: PodOptions, free: Readonly<Record<string, number>>, more: Partial<GatesView> = {}) =>
  decideGate(gatedPod(options), view(free, more));

const named = (...ipv4: string[]): PodOptions => ({ annotations: { ippool: { ipv4 } } });
const owner = { apiVersion: "apps/v1", kind: "StatefulSet", name: "web", uid: "s1", controller: true };
const metadata = { ownerReferences: [owner] };

describe("a pod is let through", () => {
  it("when the default pool has room, and takes of it", () =>
    expect(decide({}, { blue: 1 })).toEqual({ kind: "open", pools: ["blue"] }));

  it("when the second pool that it names has room", () =>
    expect(decide(named("green", "blue"), { blue: 1 })).toEqual({ kind: "open", pools: ["blue"] }));

  const networks = { "k8s.v1.cni.cncf.io/networks": "net/lan,net/lan" };
  const lan = { name: "lan-conf", ipamConf: { type: "berth" as const, default_ipv4_ippool: ["green"] } };
  const network: GatesView["network"] = (name) => (name === "net/lan" ? lan : undefined);
  it("when there is room for every NIC of Berth's, not for the first one, which another network provides", () => {
    const both = { kind: "open", pools: ["green", "green"] };
    expect(decide({ annotations: networks }, { green: 2 }, { network })).toEqual(both);
    expect(decide({ annotations: networks }, { green: 1 }, { network }).kind).toBe("hold");
    expect(decide({ annotations: networks }, { green: 2 }, { network, mode: "underlay" }).kind).toBe("hold");
    expect(decide({ annotations: networks }, {})).toMatchObject({ kind: "hold" });
    expect(decide({ annotations: networks }, {}, { mode: "overlay" })).toEqual({ kind: "open", pools: [] });
  });

  it("when the pool of one of the nodes that it selects has room", () => {
    const racks = named("rack-a", "rack-b");
    expect(decide(racks, { "rack-b": 1 })).toEqual({ kind: "open", pools: ["rack-b"] });
    const spec = { nodeSelector: { "kubernetes.io/hostname": "n1" } };
    expect(decide({ ...racks, spec }, { "rack-b": 1 }).kind).toBe("hold");
    expect(decide({ ...racks, spec }, { "rack-a": 1 }).kind).toBe("open");
  });

  const asking = { "k8s.v1.cni.cncf.io/networks": '[{"name":"lan","ips":["10.0.0.1"]}]' };
  const settings = { ...DEFAULT_VENDOR_CONF, enableSubnet: true };
  it.each<[string, PodOptions, Partial<GatesView>]>([
    ["it is a member that has an address", { metadata }, { isKept: ({ member }) => member === "web-0" }],
    ["it asks for addresses", { annotations: asking }, {}],
    ["its pools are made for it", { annotations: { subnet: { ipv4: ["any"] } } }, { settings }],
  ])("when %s, without a look at pools", (_, options, more) =>
    expect(decide(options, {}, more)).toEqual({ kind: "open", pools: [] }),
  );

  it("when there was no room for it in the controller's memory", () =>
    expect(decideGate(reduceGatedPod(gatedPod()), view({}))).toEqual({ kind: "open", pools: [] }));
});

describe("a pod waits, and is told why", () => {
  it.each(cases<PodOptions>`
    its pool is full ${{}} => NoRoom: No address is free for IPv4 of interface "eth0" … pool "blue" has no free address
    its pool does not exist ${named("x")} => NoPool: … pool "x" does not exist
    an annotation is wrong ${{ annotations: { ippool: "x" } }} => InvalidAnnotation: … annotation "ipam.vendor.io/ippool"
    it is a member without an address ${{ metadata }} => NoRoom: … has no free address
  `)("because %s", (_, options, wanted) => {
    const decision = decide(options, {});
    const text = decision.kind === "hold" ? `${decision.reason}: ${decision.message}` : "open";
    const [start = "", part = ""] = wanted.split(" … ");
    expect([text.slice(0, start.length), text.includes(part)]).toEqual([start, true]);
  });

  it("because its namespace's pool is full", () => {
    const annotations = { "ipam.vendor.io/default-ipv4-ippool": '["green"]' };
    const namespace = decodeNamespace({ metadata: { name: "shop", annotations } }, "test");
    expect(decide({}, { blue: 1 }, { namespaces: new Map([["shop", namespace]]) })).toMatchObject({ reason: "NoRoom" });
  });
});

it("a pod without the gate, that was not let through, takes no memory", () => {
  const metadata = { namespace: "shop", name: "a", uid: "u", resourceVersion: "1" };
  expect(decodeGatedPod({ metadata, spec: { schedulingGates: [{ name: "other" }] } })).toBeUndefined();
  const conditions = [{ type: "ipam.vendor.io/AddressAvailable", status: "True" }];
  expect(decodeGatedPod({ metadata, spec: {}, status: { conditions } })).toMatchObject({ hasGate: false });
  expect(gatedPod()).toMatchObject({ hasGate: true, otherGates: ["other"] });
});
