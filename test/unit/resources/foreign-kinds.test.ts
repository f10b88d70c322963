import { describe, expect, it } from "vitest";
import { decodePodAnnotations } from "../../../host/config/annotations.ts";
import { pruneJson } from "../../../host/lib/prune-json.ts";
import { MAX_CACHED_LABELS } from "../../../host/resources/fields/trim-metadata.ts";
import { decodeNamespace } from "../../../host/resources/namespace.ts";
import {
  decodeNetworkDefinition,
  MAX_DEFINITION_CONFIG_BYTES,
  refuseOversize,
} from "../../../host/resources/network-attachment-definition.ts";
import { decodeNode } from "../../../host/resources/node.ts";
import { decodePod, POD_PARTS, type Pod, reducePod } from "../../../host/resources/pod.ts";

const METADATA = { name: "web-0", namespace: "shop", uid: "u1", resourceVersion: "7" };

/** A pod as the API server takes it: each of these is below its limit of 1.5 MB. */
function hugePod(metadata: object): Pod {
  return decodePod({ apiVersion: "v1", kind: "Pod", metadata: { ...METADATA, ...metadata }, spec: {} }, "pod");
}

/** Characters of all that is kept of it. */
const sizeOf = (pod: Pod): number => JSON.stringify(pod).length;

describe("of a pod is kept", () => {
  const many = (count: number, entry: (index: number) => [string, string]) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => entry(index)));
  const owner = (index: number, more = {}) => ({
    apiVersion: "apps/v1",
    kind: "ReplicaSet",
    name: `r-${index}`,
    uid: `u-${index}`,
    ...more,
  });

  it("the owner that controls it, and not the text that a tenant puts in its place", () => {
    const others = Array.from({ length: 10_000 }, (_, index) => owner(index));
    const pod = hugePod({ ownerReferences: [...others, owner(7, { controller: true })] });
    expect(pod.ownerReferences).toEqual([owner(7, { controller: true })]);
    const long = hugePod({ ownerReferences: [owner(1, { name: "x".repeat(1_200_000), controller: true })] });
    expect(sizeOf(long)).toBeLessThan(2_000);
    expect(hugePod({ ownerReferences: others }).ownerReferences).toEqual([]);
  });

  it("of very many labels some, those of machines among them, and how many there were", () => {
    const labels = { ...many(20_000, (index) => [`l-${index}`, "x"]), "kubevirt.io": "virt-launcher" };
    Object.assign(labels, { "kubevirt.io/migrationJobUID": "m" });
    const pod = hugePod({ labels });
    expect([Object.keys(pod.labels).length, pod.labelCount]).toEqual([MAX_CACHED_LABELS, 20_002]);
    expect(pod.labels).toMatchObject({ "kubevirt.io": "virt-launcher", "kubevirt.io/migrationJobUID": "m" });
  });

  it("of the annotations those that are read, and of a text that is too long what shows that it is", () => {
    const read = {
      ...{ "ipam.vendor.io/ippool": "{}", "k8s.v1.cni.cncf.io/networks": "a", "v1.multus-cni.io/default-network": "b" },
      ...{ "kubernetes.io/config.hash": "c", "kubernetes.io/config.mirror": "d" },
    };
    expect(hugePod({ annotations: { ...many(5_000, (index) => [`a/${index}`, "x"]), ...read } }).annotations).toEqual(
      read,
    );
    const long = hugePod({ annotations: { "ipam.vendor.io/ippool": "x".repeat(200_000) } });
    expect(sizeOf(long)).toBeLessThan(17_000);
    expect(() => decodePodAnnotations(long.annotations)).toThrow("found a longer text, want at most 16384 characters");
    const unknown = hugePod({ annotations: many(5_000, (index) => [`ipam.vendor.io/${index}`, "x"]) });
    expect(sizeOf(unknown)).toBeLessThan(2_000);
    expect(() => decodePodAnnotations(unknown.annotations)).toThrow("found an unknown annotation");
  });

  it.each<[what: string, metadata: object]>([
    ["nothing more", {}],
    [
      "owners",
      { ownerReferences: [...Array.from({ length: 500 }, (_, index) => owner(index)), owner(7, { controller: true })] },
    ],
    [
      "owners that name a controller",
      { ownerReferences: [owner(1, { name: '"controller":true' }), owner(2, { controller: false })] },
    ],
    ["few labels", { labels: { app: "größer", tier: "" } }],
    ["many labels", { labels: { ...many(500, (index) => [`l-${index}`, "x"]), "kubevirt.io": "virt-launcher" } }],
    [
      "annotations",
      {
        annotations: {
          ...many(500, (index) => [`a/${index}`, '{"x":["y"]}']),
          "ipam.vendor.io/ippool": '{"ipv4":["blue"]}',
          "kubernetes.io/config.hash": "c",
        },
      },
    ],
    [
      "annotations of another IPAM",
      { annotations: { ...many(500, (index) => [`a/${index}`, "x"]), "cni.projectcalico.org/ipAddrs": "[]" } },
    ],
    [
      "times",
      {
        creationTimestamp: "2026-01-01T00:00:00Z",
        deletionTimestamp: "2026-01-02T00:00:00Z",
        managedFields: [{ fieldsV1: { "f:spec": {} } }],
      },
    ],
  ])("as much of what is left of a large one before it is parsed: with %s", (_, metadata) => {
    const status = { phase: "Running", podIPs: [{ ip: "10.0.0.1" }], conditions: [{ type: "Ready", status: "True" }] };
    const spec = { nodeName: "n1", hostNetwork: true, containers: [{ name: "main", env: [] }] };
    const rest = { spec, status: { ...status, containerStatuses: [] } };
    const pod = {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "w", namespace: "shop", uid: "u", resourceVersion: "5", ...metadata },
      ...rest,
    };
    const pruned = JSON.parse(`${pruneJson(Buffer.from(JSON.stringify(pod)), POD_PARTS)}`);
    const { labelCount, ...decoded } = decodePod(pod, "pod");
    expect(decodePod(pruned, "pod")).toEqual({
      ...decoded,
      labelCount: expect.toSatisfy((count) =>
        count > MAX_CACHED_LABELS ? labelCount > MAX_CACHED_LABELS : count === labelCount,
      ),
    });
    expect(JSON.stringify(pruned)).not.toMatch(/containers|containerStatuses|managedFields/);
  });

  // A schema that looked at all of it would take several times as long as JSON.parse.
  const controller = owner(7, { controller: true });
  const [uncontrolled, unset] = [owner(1, { controller: false }), owner(2, { controller: null })];
  const hash = { "kubernetes.io/config.hash": "c" };
  const labels = { ...many(MAX_CACHED_LABELS, (index) => [`l-${index}`, "x"]), other: 5 };
  it.each<[what: string, metadata: object, cached: object]>([
    ["owners", { ownerReferences: [{}, 5, null, controller, {}] }, { ownerReferences: [controller] }],
    ["owners none of which controls it", { ownerReferences: [{}, uncontrolled, unset] }, { ownerReferences: [] }],
    ["annotations", { annotations: { other: 5, ...hash } }, { annotations: hash }],
    ["labels", { labels }, { labelCount: MAX_CACHED_LABELS + 1 }],
  ])("nothing of its other %s, whatever they are", (_, metadata, cached) => {
    expect(hugePod(metadata)).toMatchObject(cached);
  });

  it.each<[metadata: object, wanted: string]>([
    [
      { ownerReferences: [owner(1), { ...owner(2, { controller: true }), name: 5 }] },
      'field "metadata.ownerReferences[0].name": found 5, want text',
    ],
    [
      { ownerReferences: [owner(1, { controller: "yes" })] },
      'field "metadata.ownerReferences[0].controller": found "yes"',
    ],
    [{ ownerReferences: {} }, 'field "metadata.ownerReferences": found an object, want a list'],
    [{ annotations: { "kubernetes.io/config.hash": 5 } }, "found 5, want text"],
    [{ annotations: { "ipam.vendor.io/ippool": 5 } }, "found 5, want text"],
    [{ annotations: [] }, 'field "metadata.annotations": found an empty list'],
    [{ labels: { app: 5 } }, 'field "metadata.labels.app": found 5, want text'],
    [{ labels: "x" }, 'field "metadata.labels": found "x"'],
  ])("only what is well-formed: %j is refused", (metadata, wanted) => {
    expect(() => hugePod(metadata)).toThrow(wanted);
  });

  it("the names of unknown annotations of Berth's, of no more than some", () => {
    const mistakes = many(40, (index) => [`ipam.vendor.io/x${index}`, "x".repeat(16_000)]);
    const { annotations } = decodePod({ metadata: { ...METADATA, annotations: { ...mistakes, ...hash } } }, "pod");
    expect(Object.keys(annotations)).toHaveLength(33);
    expect(annotations).toMatchObject({ ...hash, "ipam.vendor.io/x0": "" });
    expect(JSON.stringify(annotations).length).toBeLessThan(2_000);
  });

  it("of a pod that is not used its identity, and what tells whose its address is", () => {
    const pod = decodePod(
      {
        metadata: {
          ...{ ...METADATA, uid: "u", ownerReferences: [controller] },
          annotations: { "ipam.vendor.io/ippool": "{}", ...hash, "kubernetes.io/config.mirror": "x".repeat(65) },
          labels: { app: "web", "kubevirt.io": "virt-launcher" },
        },
        spec: { nodeName: "n1" },
        status: { phase: "Failed" },
      },
      "pod",
    );
    expect(reducePod(pod)).toEqual({
      ...{ ...pod, isReduced: true, annotations: hash },
      labels: { "kubevirt.io": "virt-launcher" },
    });
  });

  it("also of namespaces and network definitions", () => {
    const metadata = { ...METADATA, annotations: { other: 5 }, ownerReferences: [{}] };
    expect(decodeNamespace({ metadata }, "namespace")).toMatchObject({ labels: {}, annotations: {} });
    const found = decodeNetworkDefinition({ metadata: { ...metadata, labels: { a: 5 } } }, "definition");
    expect(found).toMatchObject({ namespace: "shop", name: "web-0", config: "" });
  });
});

function podOf(status: object | null, spec: object = {}) {
  return decodePod({ apiVersion: "v1", kind: "Pod", metadata: METADATA, spec, status }, "pod");
}

describe("a pod", () => {
  it("without a status has no sandbox and is not finished", () => {
    expect(podOf(null)).toMatchObject({ hasSandbox: false, isFinished: false, phase: undefined, reason: undefined });
  });

  const ready = (status: string) => ({ conditions: [{ type: "PodReadyToStartContainers", status }] });
  it.each<[status: object, hasSandbox: boolean]>([
    [{ podIPs: [{ ip: "10.6.0.9" }] }, true],
    [{ podIPs: [] }, false],
    [{ podIPs: null, conditions: null }, false],
    [ready("True"), true],
    [ready("False"), false],
    [{ conditions: [{ type: "Ready", status: "True" }] }, false],
  ])("with the status %j: it has a sandbox: %s", (status, hasSandbox) => {
    expect(podOf(status).hasSandbox).toBe(hasSandbox);
  });

  it.each([
    ["Pending", false],
    ["Running", false],
    ["Unknown", false],
    ["Succeeded", true],
    ["Failed", true],
  ])("in the phase %s is finished: %s", (phase, isFinished) => {
    expect(podOf({ phase, reason: "Evicted" })).toMatchObject({ phase, isFinished, reason: "Evicted" });
  });

  it("of a list has no kind", () => {
    expect(decodePod({ metadata: METADATA }, "pod")).toMatchObject({ kind: "Pod", namespace: "shop", name: "web-0" });
  });

  it("of another kind is refused", () => {
    expect(() => decodePod({ kind: "Node", metadata: METADATA }, "pod")).toThrow('field "kind": found "Node"');
  });
});

describe("a misspelt key", () => {
  const manifest = (metadata: object, spec: object) => () => decodePod({ kind: "Pod", metadata, spec }, "pod");

  it("is refused in a manifest that no API server has seen", () => {
    expect(manifest({ name: "a" }, { nodename: "n" })).toThrow('field "spec.nodename"');
    expect(manifest({ name: "a", lables: {} }, {})).toThrow('field "metadata.lables"');
  });

  it("passes in an object of the API server, which may know more keys than we do", () => {
    expect(manifest({ ...METADATA, lables: {} }, { nodename: "n" })()).toMatchObject({ labels: {}, name: "web-0" });
  });
});

it("a node has labels, taints, a share of the pod networks, and a kubelet that may be silent", () => {
  const bare = { kind: "Node", name: "n1", uid: "", labels: { rack: "1" }, annotations: {}, deleting: false };
  expect(decodeNode({ metadata: { name: "n1", labels: { rack: "1" } }, spec: {} }, "node")).toEqual({
    ...{ ...bare, taints: [], ready: "Unknown", podCidrs: [], addresses: [] },
    ...{ machine: undefined, bootId: "" },
  });
  const spec = { taints: [{ key: "node.kubernetes.io/out-of-service", value: "x", effect: "NoExecute" }] };
  const status = (status: string) => ({
    conditions: [
      { type: "DiskPressure", status: "False" },
      { type: "Ready", status },
    ],
  });
  const metadata = { name: "n1", uid: "u1", deletionTimestamp: "2026-11-20T04:00:00Z" };
  expect(decodeNode({ metadata, spec, status: status("True") }, "node")).toMatchObject({
    ...{ uid: "u1", deleting: true, ready: "True", taints: ["node.kubernetes.io/out-of-service"] },
  });
  expect(decodeNode({ metadata, spec: null, status: status("False") }, "node")).toMatchObject({ ready: "False" });
  expect(decodeNode({ metadata, status: status("Maybe") }, "node")).toMatchObject({ ready: "Unknown" });
  const addresses = [
    { type: "InternalIP", address: "10.6.0.5" },
    { type: "Hostname", address: "n1" },
  ];
  expect(decodeNode({ metadata, status: { addresses } }, "node").addresses).toEqual(["10.6.0.5", "n1"]);
  const podCidrsOf = (spec: object) => decodeNode({ metadata, spec }, "node").podCidrs;
  expect(podCidrsOf({ podCIDR: "10.0.1.0/24", podCIDRs: ["10.0.1.0/24", "fd00::/64"] })).toEqual([
    ...["10.0.1.0/24", "fd00::/64"],
  ]);
  expect(podCidrsOf({ podCIDR: "10.0.1.0/24" })).toEqual(["10.0.1.0/24"]);
  expect(podCidrsOf({ podCIDR: "", podCIDRs: null })).toEqual([]);
  expect(() => decodeNode({ metadata: {} }, "node")).toThrow('field "metadata.name"');
});

it("a namespace of a list has no kind", () => {
  const own = { "ipam.vendor.io/default-ipv4-ippool": '["a"]' };
  const metadata = { name: "shop", resourceVersion: "1", annotations: { a: "b", ...own } };
  expect(decodeNamespace({ metadata, spec: { finalizers: ["kubernetes"] }, status: {} }, "namespace")).toEqual({
    kind: "Namespace",
    name: "shop",
    labels: {},
    annotations: own,
  });
});

describe("a network definition", () => {
  const metadata = { name: "macvlan", namespace: "shop" };
  it("has the text of a configuration", () => {
    expect(decodeNetworkDefinition({ metadata, spec: { config: "{}" } }, "definition")).toEqual({
      kind: "NetworkAttachmentDefinition",
      namespace: "shop",
      name: "macvlan",
      config: "{}",
    });
  });
  it("without one has the empty text", () => {
    expect(decodeNetworkDefinition({ metadata: { name: "a" } }, "definition")).toMatchObject({
      namespace: "default",
      config: "",
    });
  });
  it("with more text than is used keeps its length, and is named", () => {
    const sized = (bytes: number) =>
      decodeNetworkDefinition({ metadata, spec: { config: "x".repeat(bytes) } }, "definition");
    const largest = sized(MAX_DEFINITION_CONFIG_BYTES);
    expect([largest.config.length, refuseOversize(largest)]).toEqual([65_536, undefined]);
    const larger = sized(MAX_DEFINITION_CONFIG_BYTES + 1);
    expect(larger).toMatchObject({ config: "", oversizeBytes: 65_537 });
    expect(refuseOversize(larger)).toBe(
      'NetworkAttachmentDefinition "shop/macvlan" cannot be used: spec.config has 65537 bytes, want at most 65536',
    );
  });
  it("with anything but text is refused", () => {
    expect(() => decodeNetworkDefinition({ metadata, spec: { config: {} } }, "definition")).toThrow(
      'field "spec.config": found an object, want text',
    );
  });
});
