import { describe, expect, it } from "vitest";
import { decodeNamespace } from "../../../host/resources/namespace.ts";
import { decodeNetworkDefinition } from "../../../host/resources/network-attachment-definition.ts";
import { decodeNode } from "../../../host/resources/node.ts";
import { decodePod } from "../../../host/resources/pod.ts";

const METADATA = { name: "web-0", namespace: "shop", uid: "u1", resourceVersion: "7" };

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

describe("a key that looks like a slip", () => {
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
    ...{ ...bare, taints: [], ready: "Unknown", podCidrs: [] },
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
  const podCidrsOf = (spec: object) => decodeNode({ metadata, spec }, "node").podCidrs;
  expect(podCidrsOf({ podCIDR: "10.0.1.0/24", podCIDRs: ["10.0.1.0/24", "fd00::/64"] })).toEqual([
    ...["10.0.1.0/24", "fd00::/64"],
  ]);
  expect(podCidrsOf({ podCIDR: "10.0.1.0/24" })).toEqual(["10.0.1.0/24"]);
  expect(podCidrsOf({ podCIDR: "", podCIDRs: null })).toEqual([]);
  expect(() => decodeNode({ metadata: {} }, "node")).toThrow('field "metadata.name"');
});

it("a namespace of a list has no kind", () => {
  const metadata = { name: "shop", resourceVersion: "1", annotations: { a: "b" } };
  expect(decodeNamespace({ metadata, spec: { finalizers: ["kubernetes"] }, status: {} }, "namespace")).toEqual({
    kind: "Namespace",
    name: "shop",
    labels: {},
    annotations: { a: "b" },
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
  it("with anything but text is refused", () => {
    expect(() => decodeNetworkDefinition({ metadata, spec: { config: {} } }, "definition")).toThrow(
      'field "spec.config": found an object, want text',
    );
  });
});
