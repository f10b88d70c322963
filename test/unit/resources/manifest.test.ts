import { describe, expect, it } from "vitest";
import { DEFAULT_VENDOR_CONF } from "../../../host/config/vendor-conf.ts";
import { formatRange } from "../../../host/net/range.ts";
import { decodeManifests } from "../../../host/resources/manifest.ts";
import { cases } from "../../world/rows.ts";

const V = "apiVersion: ipam.vendor.io/v1\n";
const POOL = `${V}kind: IPPool\nmetadata: {name: blue}\nspec: {subnet: 10.6.0.0/24}\n`;
const POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: web-0}\n";
const BARE_POD = {
  ...{ kind: "Pod", namespace: "default", name: "web-0", labels: {}, annotations: {} },
  ...{ deleting: false, hostNetwork: false, hasSandbox: false, isFinished: false },
};
const coordinator = (spec: string) => `${V}kind: Coordinator\nmetadata: {name: default}\nspec: {${spec}}\n`;

function decode(text: string) {
  return decodeManifests(text, 'file "a.yaml"');
}

describe("decodeManifests reads", () => {
  it("several documents in their order, without empty ones", () => {
    expect(decode(`---\n${POOL}---\n# nothing\n---\n${POD}`).map(({ kind }) => kind)).toEqual(["IPPool", "Pod"]);
    expect(decode("")).toEqual([]);
  });

  it("a List as kubectl prints it", () => {
    const namespace = { kind: "Namespace", metadata: { name: "shop", labels: { a: "b" } }, spec: {}, status: {} };
    const pod = { kind: "Pod", metadata: { name: "p", namespace: "shop" }, spec: { containers: [] } };
    const items = [namespace, pod].map((each) => ({ apiVersion: "v1", ...each }));
    const list = { apiVersion: "v1", kind: "List", metadata: { resourceVersion: "" }, items };
    const wanted = { kind: "Namespace", name: "shop", labels: { a: "b" }, annotations: {} };
    expect(decode(JSON.stringify(list))).toMatchObject([wanted, { kind: "Pod", namespace: "shop", name: "p" }]);
  });

  it("a Pod with the fields that Berth reads", () => {
    const [pod] =
      decode(`${POD.replace("}", ", namespace: shop, uid: u1, labels: {app: web}, annotations: {x: y, ipam.vendor.io/ippool: z}, deletionTimestamp: t")}
  , ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: web, uid: s1, controller: true, blockOwnerDeletion: true}]}
spec: {nodeName: n1, hostNetwork: true, hostname: web-0, containers: [{name: a, image: b}]}
status: {phase: Running, podIP: 10.0.0.1}
`);
    expect(pod).toEqual({
      ...BARE_POD,
      ...{ namespace: "shop", uid: "u1", labels: { app: "web" }, nodeName: "n1", phase: "Running" },
      annotations: { "ipam.vendor.io/ippool": "z" },
      deleting: true,
      controller: { apiVersion: "apps/v1", kind: "StatefulSet", name: "web", uid: "s1", controller: true },
      hostNetwork: true,
    });
  });

  it("a Pod with its name alone", () => expect(decode(POD)).toEqual([BARE_POD]));

  it("a ReservedIP, whose family is that of its addresses", () => {
    const [four, six] = decode(
      `${V}kind: ReservedIP\nmetadata: {name: a}\nspec: {ips: [10.0.0.1, 10.0.0.5-10.0.0.9]}\n---\n` +
        `${V}kind: ReservedIP\nmetadata: {name: b}\nspec: {ipVersion: 6, ips: [fd00::1], addressSpace: lab}\n`,
    );
    expect(four).toMatchObject({ kind: "ReservedIP", name: "a", spec: { family: 4, addressSpace: "" } });
    expect(four?.kind === "ReservedIP" && four.spec.ranges.map(formatRange)).toEqual(["10.0.0.1", "10.0.0.5-10.0.0.9"]);
    expect(six).toMatchObject({ spec: { family: 6, addressSpace: "lab" } });
  });

  it("a Coordinator with its warnings", () => {
    const text = coordinator("tune_mode: disabled, podCIDRType: calico, detectOptions: {window: 3s}");
    const warnings = [expect.stringContaining("tune_mode")];
    const spec = { mode: "disable", podCIDRType: "calico", detectOptions: { windowMs: 3_000 }, warnings };
    expect(decode(`${text}status: {phase: Synced}\n`)).toMatchObject([{ kind: "Coordinator", name: "default", spec }]);
    expect(decode(coordinator(""))).toMatchObject([{ spec: { podCIDRType: "auto" } }]);
  });

  it.each([
    ["enableIPv6: false\n", { ...DEFAULT_VENDOR_CONF, enableIPv6: false }],
    ["", DEFAULT_VENDOR_CONF],
    ["# nothing changed\n", DEFAULT_VENDOR_CONF],
  ])("the ConfigMap vendor-conf with %j", (conf, expected) => {
    const map = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "vendor-conf" }, data: { "conf.yml": conf } };
    expect(decode(JSON.stringify(map))).toEqual([
      { kind: "ConfigMap", name: "vendor-conf", conf: expected, text: conf },
    ]);
  });
});

const CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: vendor-conf}\n";

it.each(cases`
  malformed YAML ${"a: 1\na: 2\n"} => file "a.yaml": Malformed YAML: Map keys must be unique at line 2, column 1
  no kind ${`${V}metadata: {}\n`} => line 1: field "kind": found nothing, want text
  a slip in the kind ${`${V}kind: IpPool\n`} => field "kind": found "IpPool", want the kind "IPPool"
  an unknown kind ${"apiVersion: apps/v1\nkind: Deployment\n"}
    => found "Deployment", want one of the kinds IPPool, Subnet, ReservedIP, Coordinator, ConfigMap, Namespace, Pod
  a kind of Object ${`${V}kind: constructor\n`} => found "constructor", want one of the kinds
  another apiVersion ${POOL.replace("/v1", "/v2")}
    => IPPool "blue": field "apiVersion": found "ipam.vendor.io/v2", want "ipam.vendor.io/v1"
  a List of another group ${`${V}kind: List\nitems: []\n`} => field "kind": found "List"
  an item that is null ${"apiVersion: v1\nkind: List\nitems: [null]\n"} => item 0: found null, want an object
  a bad item ${"apiVersion: v1\nkind: List\nitems: [{kind: Pod, apiVersion: v1}]\n"}
    => line 3, item 0, Pod: field "metadata": found nothing, want an object
  the second document ${`${POD}---\n${POOL.replace("/24", "/44")}`}
    => file "a.yaml", line 8, IPPool "blue": field "spec.subnet": found "10.6.0.0/44"
  a pool that leases its addresses ${POOL.replace("/24", "/24, source: {range: seg}")}
    => line 4, IPPool "blue": field "spec.source": found an object, want no such key in embedded mode
  an unknown key beside spec ${`${POOL}specs: 1\n`} => field "specs": found an unknown key, want the key "spec"
  a slip in a pod's spec ${`${POD}spec: {nodename: a}\n`}
    => field "spec.nodename": found an unknown key, want the key "nodeName"
  another ConfigMap ${`${CONFIG_MAP.replace("vendor-conf", "other")}data: {conf.yml: ""}\n`}
    => field "metadata.name": found "other", want "vendor-conf"
  another key of vendor-conf ${`${CONFIG_MAP}data: {conf.yaml: ""}\n`}
    => field "data[\"conf.yml\"]": found nothing, want text
  a bad setting ${`${CONFIG_MAP}data: {conf.yml: "enableIPv4: 1"}\n`}
    => line 4, ConfigMap "vendor-conf", key "conf.yml", line 1: field "enableIPv4": found 1, want true or false
  two documents of settings ${`${CONFIG_MAP}data: {conf.yml: "a: 1\\n---\\na: 1"}\n`}
    => key "conf.yml": found 2 documents, want one
`)("decodeManifests refuses %s", (_title, text, message) => expect(() => decode(text)).toThrow(message));

it("no key that the API server knows is taken for a slip", () => {
  const metadata =
    "generateName selfLink generation creationTimestamp deletionGracePeriodSeconds finalizers managedFields clusterName";
  const spec =
    "volumes initContainers containers ephemeralContainers restartPolicy terminationGracePeriodSeconds activeDeadlineSeconds " +
    "dnsPolicy nodeSelector serviceAccountName serviceAccount automountServiceAccountToken hostPID hostIPC shareProcessNamespace " +
    "securityContext imagePullSecrets hostname subdomain affinity schedulerName tolerations hostAliases priorityClassName priority " +
    "dnsConfig readinessGates runtimeClassName enableServiceLinks preemptionPolicy overhead topologySpreadConstraints " +
    "setHostnameAsFQDN os hostUsers schedulingGates resourceClaims resources hostnameOverride";
  const all = (keys: string) => Object.fromEntries(keys.split(" ").map((key) => [key, {}]));
  const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "p", ...all(metadata) }, spec: all(spec), status: {} };
  expect(decodeManifests(JSON.stringify(pod), "file")).toMatchObject([{ kind: "Pod", name: "p" }]);
});
