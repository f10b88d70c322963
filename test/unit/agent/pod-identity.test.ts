import { describe, expect, it } from "vitest";
import { identifyRequest } from "../../../host/agent/ipam/pod-identity.ts";
import type { AttachRequest } from "../../../host/cni/request.ts";
import { decodedSnapshot } from "../../world/subjects.ts";

const ANNOTATION = "ipam.vendor.io/default-route-nic";

const PODS = [
  { namespace: "shop", name: "web-0", uid: "uid-m", labels: { app: "web" }, annotations: { [ANNOTATION]: "net1" } },
  { namespace: "shop", name: "bare" },
];
const SNAPSHOT = decodedSnapshot(...PODS.map((metadata) => ({ apiVersion: "v1", kind: "Pod", metadata })));

interface PodHints {
  readonly namespace?: string;
  readonly name?: string;
  readonly uid?: string;
  readonly annotations?: Readonly<Record<string, string>>;
}

function identify({ namespace = "", name = "", uid = "", annotations }: PodHints) {
  const args = Object.entries({ NAMESPACE: namespace, NAME: name, UID: uid });
  const request = {
    ...{ containerId: "c1", args: new Map(args.map(([key, value]) => [`K8S_POD_${key}`, value])) },
    netConf: { runtimeConfig: { podAnnotations: annotations } },
  } as unknown as AttachRequest;
  return identifyRequest(request, SNAPSHOT);
}

describe("the identity of a pod", () => {
  it.each<[what: string, hints: PodHints, owner: string]>([
    ["the runtime's UID", { namespace: "shop", name: "web-0", uid: "uid-r" }, "uid-r"],
    ["else the manifest's", { namespace: "shop", name: "web-0" }, "uid-m"],
    ["else the container", { namespace: "shop", name: "bare" }, "c1"],
    ["a name without a namespace is no pod's", { name: "web-0" }, "c1"],
    ["nothing known: the container", {}, "c1"],
  ])("is %s", (_what, hints, owner) => expect(identify(hints).owner).toBe(owner));

  it("without name and annotations there is no pod", () => expect(identify({}).subject).toBeUndefined());

  it.each([
    ["web-0", { labels: { app: "web" }, annotations: { defaultRouteNic: "net1" } }],
    ["new", { labels: {}, annotations: { defaultRouteNic: "net7" } }],
  ])("%s: a manifest's labels and annotations win over the runtime's", (name, wanted) => {
    const annotations = { [ANNOTATION]: "net7" };
    expect(identify({ namespace: "shop", name, annotations }).subject).toMatchObject(wanted);
  });

  it("annotations alone make a pod without a name", () => {
    const subject = identify({ annotations: { [ANNOTATION]: "net1" } }).subject;
    expect(subject).toMatchObject({ namespace: "", name: "", annotations: { defaultRouteNic: "net1" } });
  });

  it("a wrong annotation is an error that names it", () => {
    const wrong = { namespace: "shop", name: "new", annotations: { "ipam.vendor.io/ipool": "{}" } };
    expect(() => identify(wrong)).toThrow('annotation "ipam.vendor.io/ipool"');
  });
});
