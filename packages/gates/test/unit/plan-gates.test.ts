import { describe, expect, it, vi } from "vitest";
import { DEFAULT_VENDOR_CONF } from "../../../../host/config/vendor-conf.ts";
import { hashUid } from "../../../../host/controller/cached-allocation.ts";
import { decodeNamespace } from "../../../../host/resources/namespace.ts";
import { ADDRESS_GATE } from "../../../../host/resources/pod.ts";
import { allocationSpec } from "../../../../test/lab/cluster/objects.ts";
import { annotationsOf } from "../../../../test/unit/controller/owners/workload-objects.ts";
import { cases } from "../../../../test/world/rows.ts";
import { pool, poolsByName } from "../../../../test/world/subjects.ts";
import { decodeGatedPod, type GatedPod, reduceGatedPod } from "../../gated-pod.ts";
import { type GatesView, inTurn, KnownDemands, openPass } from "../../plan-gates.ts";
import { Promises } from "../../promises.ts";

const BLUE = pool("blue", "10.1.0.0/24", { default: true });
const GREEN = pool("green", "10.2.0.0/24");
const RACK_A = pool("rack-a", "10.3.0.0/24", { nodeName: ["n1"] });
const RACK_B = pool("rack-b", "10.4.0.0/24", { nodeAffinity: { matchLabels: { rack: "b" }, matchExpressions: [] } });

type PodOptions = Partial<Record<"annotations" | "spec" | "metadata" | "status", Readonly<Record<string, unknown>>>>;

function gatedPod({ annotations = {}, spec = {}, metadata = {}, status = {} }: PodOptions = {}): GatedPod {
  const own = {
    namespace: "shop",
    name: "web-0",
    uid: "u1",
    resourceVersion: "5",
    annotations: annotationsOf(annotations),
  };
  const pod = decodeGatedPod({
    metadata: { ...own, ...metadata },
    spec: { schedulingGates: [{ name: ADDRESS_GATE }], ...spec },
    status: { phase: "Pending", ...status },
  });
  if (pod === undefined) throw new Error("It has no gate");
  return pod;
}

/** `free`: of each pool; others are full. */
function view(free: Readonly<Record<string, number>>, more: Partial<GatesView> = {}): GatesView {
  return {
    ...{ pools: poolsByName(BLUE, GREEN, RACK_A, RACK_B), refused: new Map(), reserved: [], namespaces: new Map() },
    settings: { ...DEFAULT_VENDOR_CONF, enableIPv6: false },
    ...{ firstNic: "eth0", mode: "auto", network: () => undefined, isKept: () => false },
    ...{ freeIn: (name: string) => free[name] ?? 0, labelKeys: [], known: new KnownDemands() },
    ...more,
  };
}

const decideAlone = (pod: GatedPod, seen: GatesView) => openPass(seen, new Promises(), [])(pod);

const decide = (options: PodOptions, free: Readonly<Record<string, number>>, more: Partial<GatesView> = {}) =>
  decideAlone(gatedPod(options), view(free, more));

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

  it.each(["rack-a", "rack-b"])("when pool %s has room, whichever nodes it is for", (name) =>
    expect(decide(named("rack-a", "rack-b"), { [name]: 1 })).toEqual({ kind: "open", pools: [name] }),
  );

  const asking = { "k8s.v1.cni.cncf.io/networks": '[{"name":"lan","ips":["10.0.0.1"]}]' };
  const settings = { ...DEFAULT_VENDOR_CONF, enableSubnet: true };
  const ofWeb = { ips: { web: [{ ipv4: "10.1.0.9" }] } };
  const RESERVED = { spec: { owner: { namespace: "shop", name: "web-0" } } };
  it.each<[string, PodOptions, Partial<GatesView>]>([
    ["it is a member that has an address", { metadata }, { isKept: ({ member }) => member === "web-0" }],
    ["it asks for addresses", { annotations: asking }, {}],
    ["it names its address", { annotations: { ips: [{ ipv4: "10.1.0.9" }] } }, {}],
    ["its name has an address", { annotations: { ips: { "web-0": [{ ipv4: "10.1.0.9" }] } } }, {}],
    ["its Deployment's name has one", { metadata: { name: "web-6d4cf56db6-x7k2p" }, annotations: ofWeb }, {}],
    ["an address is reserved for it", {}, { reserved: [RESERVED as never] }],
    ["it is on its node's network", { spec: { hostNetwork: true } }, {}],
    ["its pools are made for it", { annotations: { subnet: { ipv4: ["any"] } } }, { settings }],
  ])("when %s, without a look at pools", (_, options, more) =>
    expect(decide(options, {}, more)).toEqual({ kind: "open", pools: [] }),
  );

  it("when there was no room for it in the controller's memory", () =>
    expect(decideAlone(reduceGatedPod(gatedPod()), view({}))).toEqual({ kind: "open", pools: [] }));
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

/** A pod of its own name, which was let through. */
function letThrough(name: string): GatedPod {
  const status = { conditions: [{ type: "ipam.vendor.io/AddressAvailable", status: "True" }] };
  return gatedPod({ metadata: { name, uid: name }, spec: { schedulingGates: [] }, status });
}

describe("a pod that was let through", () => {
  const before = letThrough("a");
  const next = gatedPod({ metadata: { name: "b", uid: "b" } });

  /** Returns the answers to the next pod, of a pool with one address, in passes at these times. */
  function passes(promises: Promises, pod: GatedPod, ...times: readonly number[]): string[] {
    return times.map((nowMs) => {
      const decide = openPass(view({ blue: 1 }), promises, promises.renew([pod], nowMs));
      decide(pod);
      return decide(next).kind;
    });
  }

  it("counts for two minutes, and then for good no more", () =>
    expect(passes(new Promises(), before, 0, 119_999, 120_000, 500_000)).toEqual(["hold", "hold", "open", "open"]));

  it.each(["a", "former"])("counts until the pod with its UID, not %s's, has its addresses", (uid) => {
    const promises = new Promises();
    passes(promises, before, 0);
    const holder = { namespace: "shop", pod: "a", ifName: "eth0", node: "n1", uidHash: hashUid(uid) };
    const spec = { ...allocationSpec("10.9.0.1", { pool: "green" }), holders: [holder] };
    promises.gave(spec, new Map([["shop/a", before]]));
    expect(passes(promises, before, 1)).toEqual([uid === "a" ? "open" : "hold"]);
  });
});

it("of each namespace the oldest pod is next, and the namespace that was served last comes last", () => {
  const pods = ["a.1", "a.2", "a.3", "b.4", "b.5"].map((name) => {
    const [namespace, second] = name.split(".");
    return gatedPod({ metadata: { namespace, name, creationTimestamp: `2026-11-20T04:00:0${second}Z` } });
  });
  const orderAfter = (served: ReadonlyMap<string, number>): string =>
    inTurn([letThrough("before"), ...pods], served)
      .map(({ name }) => name)
      .join(" ");
  expect(orderAfter(new Map())).toBe("before a.1 b.4 a.2 b.5 a.3");
  expect(orderAfter(new Map([["a", 7]]))).toBe("before b.4 a.1 b.5 a.2 a.3");
});

it("pools are selected once for all pods with the same annotations and the same labels that pools look at, in whichever pass", () => {
  const network = vi.fn(() => undefined);
  const seen = view({}, { labelKeys: ["app"], network });
  const annotations = { "k8s.v1.cni.cncf.io/networks": "net/lan" };
  for (let at = 0; at < 100; at++) decideAlone(gatedPod({ annotations, metadata: { labels: { at: `${at}` } } }), seen);
  expect(network).toHaveBeenCalledTimes(1);
});

it("a pod without the gate, that was not let through, takes no memory", () => {
  const metadata = { namespace: "shop", name: "a", uid: "u", resourceVersion: "1" };
  expect(decodeGatedPod({ metadata, spec: { schedulingGates: [{ name: "other" }] } })).toBeUndefined();
  expect(letThrough("a")).toMatchObject({ hasGate: false });
  expect(gatedPod()).toMatchObject({ hasGate: true, otherGates: [] });
});
