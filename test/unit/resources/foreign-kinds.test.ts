import { describe, expect, it } from "vitest";
import { MAX_NETWORK_CONFIG_BYTES } from "../../../host/cni/net-conf.ts";
import { decodePodAnnotations } from "../../../host/config/annotations.ts";
import { decodeNamespace } from "../../../host/resources/namespace.ts";
import { decodeNetworkDefinition, refuseOversize } from "../../../host/resources/network-attachment-definition.ts";
import { decodeNode } from "../../../host/resources/node.ts";
import { decodePod, type Pod, reducePod } from "../../../host/resources/pod.ts";

const METADATA = { name: "web-0", namespace: "shop", uid: "u1", resourceVersion: "7" };

describe("of a pod is kept", () => {
  const controller = { apiVersion: "apps/v1", kind: "ReplicaSet", name: "r", uid: "u7", controller: true };
  const hash = { "kubernetes.io/config.hash": "c" };
  const podWith = (metadata: object): Pod =>
    decodePod({ apiVersion: "v1", kind: "Pod", metadata: { ...METADATA, ...metadata }, spec: {} }, "pod");

  it("the owner that controls it, the annotations that are read, and all labels", () => {
    const read = {
      ...{ "ipam.vendor.io/ippool": "{}", "k8s.v1.cni.cncf.io/networks": "a", "v1.multus-cni.io/default-network": "b" },
      ...{ ...hash, "kubernetes.io/config.mirror": "d", "ipam.vendor.io/x": "unknown" },
    };
    const labels = Object.fromEntries(Array.from({ length: 500 }, (_, at) => [`l-${at}`, "x"]));
    const { controller: _, ...other } = { ...controller, uid: "u1" };
    const pod = podWith({ annotations: { other: "x", ...read }, labels, ownerReferences: [other, controller] });
    expect(pod).toMatchObject({ annotations: read, labels, controller });
    expect(Object.keys(pod.annotations)).toHaveLength(6);
    expect(() => decodePodAnnotations(pod.annotations)).toThrow("found an unknown annotation");
  });

  it("an annotation that is longer than is read, to be refused", () => {
    const { annotations } = podWith({ annotations: { "ipam.vendor.io/ippool": "x".repeat(200_000) } });
    expect(() => decodePodAnnotations(annotations)).toThrow("found a longer text, want at most 16384 characters");
  });

  it.each<[metadata: object, wanted: string]>([
    [{ ownerReferences: [{ ...controller, name: 5 }] }, 'field "metadata.ownerReferences[0].name": found 5, want text'],
    [{ annotations: { "kubernetes.io/config.hash": 5 } }, "found 5, want text"],
    [{ labels: { app: 5 } }, 'field "metadata.labels.app": found 5, want text'],
  ])("only well-formed values: %j is refused", (metadata, wanted) => expect(() => podWith(metadata)).toThrow(wanted));

  it("of a pod that is not used its identity, and the fields that tell whose its address is", () => {
    const pod = podWith({
      ...{ ownerReferences: [controller], labels: { app: "web", "kubevirt.io": "virt-launcher" } },
      annotations: { "ipam.vendor.io/ippool": "{}", ...hash, "kubernetes.io/config.mirror": "x".repeat(65) },
    });
    expect(reducePod(pod)).toEqual({
      ...{ ...pod, isReduced: true, annotations: hash },
      labels: { "kubevirt.io": "virt-launcher" },
    });
  });
});

const podOf = (status: object | null) =>
  decodePod({ apiVersion: "v1", kind: "Pod", metadata: METADATA, status }, "pod");

describe("a pod", () => {
  it("without a status has no sandbox and is not finished", () =>
    expect(podOf(null)).toMatchObject({ hasSandbox: false, isFinished: false, phase: undefined, reason: undefined }));

  const ready = (status: string) => ({ conditions: [{ type: "PodReadyToStartContainers", status }] });
  it.each<[status: object, hasSandbox: boolean]>([
    [{ podIPs: [{ ip: "10.6.0.9" }] }, true],
    [{ podIPs: [] }, false],
    [{ podIPs: null, conditions: null }, false],
    [ready("True"), true],
    [ready("False"), false],
    [{ conditions: [{ type: "Ready", status: "True" }] }, false],
  ])("with the status %j: it has a sandbox: %s", (status, hasSandbox) =>
    expect(podOf(status).hasSandbox).toBe(hasSandbox),
  );

  it.each([
    ["Unknown", false],
    ["Succeeded", true],
    ["Failed", true],
  ])("in the phase %s is finished: %s", (phase, isFinished) =>
    expect(podOf({ phase, reason: "Evicted" })).toMatchObject({ phase, isFinished, reason: "Evicted" }),
  );

  it("of a list has no kind", () =>
    expect(decodePod({ metadata: METADATA }, "pod")).toMatchObject({ kind: "Pod", namespace: "shop", name: "web-0" }));

  it("of another kind is refused", () =>
    expect(() => decodePod({ kind: "Node", metadata: METADATA }, "pod")).toThrow('field "kind": found "Node"'));
});

describe("a misspelt key", () => {
  const manifest = (metadata: object, spec: object) => () => decodePod({ kind: "Pod", metadata, spec }, "pod");

  it("is refused in a manifest that no API server has seen", () => {
    expect(manifest({ name: "a" }, { nodename: "n" })).toThrow('field "spec.nodename"');
    expect(manifest({ name: "a", lables: {} }, {})).toThrow('field "metadata.lables"');
  });

  it("passes in an object of the API server, which may know more keys than we do", () =>
    expect(manifest({ ...METADATA, lables: {} }, { nodename: "n" })()).toMatchObject({ labels: {}, name: "web-0" }));
});

it("a node has labels, taints, a share of the pod networks, and a kubelet that may be silent", () => {
  const bare = { kind: "Node", name: "n1", uid: "", labels: { rack: "1" }, annotations: {}, deleting: false };
  expect(decodeNode({ metadata: { name: "n1", labels: { rack: "1" } }, spec: {} }, "node")).toEqual({
    ...{ ...bare, taints: [], ready: "Unknown", podCidrs: [], addresses: [] },
    ...{ machine: undefined, bootId: "" },
  });
  const spec = { taints: [{ key: "node.kubernetes.io/out-of-service", value: "x", effect: "NoExecute" }] };
  const pressure = { type: "DiskPressure", status: "False" };
  const status = (status: string) => ({ conditions: [pressure, { type: "Ready", status }] });
  const metadata = { name: "n1", uid: "u1", deletionTimestamp: "2026-11-20T04:00:00Z" };
  expect(decodeNode({ metadata, spec, status: status("True") }, "node")).toMatchObject({
    ...{ uid: "u1", deleting: true, ready: "True", taints: ["node.kubernetes.io/out-of-service"] },
  });
  expect(decodeNode({ metadata, spec: null, status: status("False") }, "node")).toMatchObject({ ready: "False" });
  expect(decodeNode({ metadata, status: status("Maybe") }, "node")).toMatchObject({ ready: "Unknown" });
  const addresses = ["10.6.0.5", "n1"].map((address) => ({ type: "InternalIP", address }));
  expect(decodeNode({ metadata, status: { addresses } }, "node").addresses).toEqual(["10.6.0.5", "n1"]);
  const podCidrsOf = (spec: object) => decodeNode({ metadata, spec }, "node").podCidrs;
  const podCIDRs = ["10.0.1.0/24", "fd00::/64"];
  expect(podCidrsOf({ podCIDR: "10.0.1.0/24", podCIDRs })).toEqual(podCIDRs);
  expect(podCidrsOf({ podCIDR: "10.0.1.0/24" })).toEqual(["10.0.1.0/24"]);
  expect(podCidrsOf({ podCIDR: "", podCIDRs: null })).toEqual([]);
  expect(() => decodeNode({ metadata: {} }, "node")).toThrow('field "metadata.name"');
});

it("a namespace of a list has no kind", () => {
  const own = { "ipam.vendor.io/default-ipv4-ippool": '["a"]' };
  const metadata = { name: "shop", resourceVersion: "1", annotations: { a: "b", ...own } };
  const found = decodeNamespace({ metadata, spec: { finalizers: ["kubernetes"] }, status: {} }, "namespace");
  expect(found).toEqual({ kind: "Namespace", name: "shop", labels: {}, annotations: own });
});

describe("a network definition", () => {
  const metadata = { name: "macvlan", namespace: "shop" };
  const decode = (definition: object) => decodeNetworkDefinition(definition, "definition");
  it("has the text of a configuration, the empty one without, and nothing but text", () => {
    const kind = "NetworkAttachmentDefinition";
    const definition = { kind, namespace: "shop", name: "macvlan", config: "{}" };
    expect(decode({ metadata, spec: { config: "{}" } })).toEqual(definition);
    expect(decode({ metadata: { name: "a" } })).toMatchObject({ namespace: "default", config: "" });
    const refused = 'field "spec.config": found an object, want text';
    expect(() => decode({ metadata, spec: { config: {} } })).toThrow(refused);
  });
  it("with more text than is used keeps its length, and is named", () => {
    const sized = (bytes: number) => decode({ metadata, spec: { config: "x".repeat(bytes) } });
    const largest = sized(MAX_NETWORK_CONFIG_BYTES);
    expect([largest.config.length, refuseOversize(largest)]).toEqual([65_536, undefined]);
    const larger = sized(MAX_NETWORK_CONFIG_BYTES + 1);
    expect(larger).toMatchObject({ config: "", oversizeBytes: 65_537 });
    expect(refuseOversize(larger)).toBe(
      'NetworkAttachmentDefinition "shop/macvlan" cannot be used: spec.config has 65537 bytes, want at most 65536',
    );
  });
});
