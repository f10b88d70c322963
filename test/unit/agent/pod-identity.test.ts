import { describe, expect, it } from "vitest";
import { identifyPod, identifyRequest, type PodHints } from "../../../host/agent/ipam/pod-identity.ts";
import { decodeRequest } from "../../../host/cni/request.ts";
import { decodeManifests } from "../../../host/resources/manifest.ts";
import { assembleSnapshot } from "../../../host/resources/snapshot.ts";

const ANNOTATION = "ipam.vendor.io/default-route-nic";

function snapshotOf(...pods: object[]) {
  const resources = pods.flatMap((metadata) =>
    decodeManifests(JSON.stringify({ apiVersion: "v1", kind: "Pod", metadata }), "test"),
  );
  return assembleSnapshot([{ source: "test", resources }]);
}

const SNAPSHOT = snapshotOf(
  { namespace: "shop", name: "web-0", uid: "uid-m", labels: { app: "web" }, annotations: { [ANNOTATION]: "net1" } },
  { namespace: "shop", name: "bare" },
);

function identify(hints: Partial<PodHints>) {
  return identifyPod({ namespace: "", name: "", containerId: "c1", ...hints }, SNAPSHOT);
}

describe("the identity of a pod", () => {
  const owners: [what: string, hints: Partial<PodHints>, owner: string][] = [
    ["the runtime's UID", { namespace: "shop", name: "web-0", uid: "uid-r" }, "uid-r"],
    ["else the manifest's", { namespace: "shop", name: "web-0" }, "uid-m"],
    ["else the container", { namespace: "shop", name: "bare" }, "c1"],
    ["a name without a namespace is no pod's", { name: "web-0" }, "c1"],
    ["nothing known: the container", {}, "c1"],
  ];
  it.each(owners)("is %s", (_what, hints, owner) => expect(identify(hints).owner).toBe(owner));

  it("without name and annotations there is no pod", () => expect(identify({}).subject).toBeUndefined());

  it("a manifest's labels and annotations win over the runtime's", () => {
    const annotations = { [ANNOTATION]: "net7" };
    expect(identify({ namespace: "shop", name: "web-0", annotations }).subject).toMatchObject({
      labels: { app: "web" },
      annotations: { defaultRouteNic: "net1" },
    });
    expect(identify({ namespace: "shop", name: "new", annotations }).subject).toMatchObject({
      labels: {},
      annotations: { defaultRouteNic: "net7" },
    });
  });

  it("annotations alone make a pod without a name", () => {
    const subject = identify({ annotations: { [ANNOTATION]: "net1" } }).subject;
    expect(subject).toMatchObject({ namespace: "", name: "", annotations: { defaultRouteNic: "net1" } });
  });

  it("names that are properties of every object are unknown pods", () => {
    expect(identify({ namespace: "__proto__", name: "constructor" }).owner).toBe("c1");
  });

  it("a wrong annotation is an error that names it", () => {
    const annotations = { "ipam.vendor.io/ipool": "{}" };
    expect(() => identify({ namespace: "shop", name: "new", annotations })).toThrow(
      'annotation "ipam.vendor.io/ipool"',
    );
  });

  it("is read from CNI_ARGS and runtimeConfig", () => {
    const runtimeConfig = { "io.kubernetes.cri.pod-annotations": { [ANNOTATION]: "net1" } };
    const body = JSON.stringify({ cniVersion: "1.0.0", name: "lab", type: "macvlan", ipam: {}, runtimeConfig });
    const headers = {
      ...{ "cni-command": "ADD", "cni-containerid": "c9", "cni-netns": "/run/netns/x", "cni-ifname": "eth0" },
      ...{ "cni-path": "/bin", "cni-args": "K8S_POD_NAMESPACE=shop;K8S_POD_NAME=new;K8S_POD_UID=" },
    };
    const request = decodeRequest("berth", headers, body);
    if (request.command !== "ADD") throw new Error("no ADD");
    expect(identifyRequest(request, SNAPSHOT)).toMatchObject({
      owner: "c9",
      namespace: "shop",
      name: "new",
      subject: { annotations: { defaultRouteNic: "net1" } },
    });
  });
});
