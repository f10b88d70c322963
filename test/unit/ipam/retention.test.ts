import { describe, expect, it } from "vitest";
import { decodePodAnnotations } from "../../../host/config/annotations.ts";
import {
  claimsOf,
  decideHolder,
  findAddressOwner,
  isMigrationTarget,
  mayBeShared,
  refuseClaim,
  refuseRetention,
  requestedByClaim,
  workloadOfClaim,
  workloadOfRun,
} from "../../../host/ipam/retention.ts";
import { formatIp } from "../../../host/net/ip.ts";
import { decodePod, type Pod, reducePod } from "../../../host/resources/pod.ts";
import { decodeIpamClaim } from "../../../host/resources/workloads/ipam-claim.ts";
import { hasMember } from "../../../host/resources/workloads/stateful-set.ts";
import { decodeMachine } from "../../../host/resources/workloads/virtual-machine.ts";
import { cases } from "../../world/rows.ts";

const BOTH = { enableStatefulSet: true, enableKubevirt: true, retainByName: [] };
const LAUNCHER = { "kubevirt.io": "virt-launcher" };

interface Owner {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name?: string;
  readonly uid?: string;
  readonly controller?: boolean;
}

function podOf(ownerReferences: readonly Owner[], more: object = {}, status: object = {}): Pod {
  const owners = ownerReferences.map((owner) => ({ name: "web", uid: "w-1", controller: true, ...owner }));
  const metadata = { namespace: "shop", name: "web-0", uid: "p-1", resourceVersion: "1", ownerReferences: owners };
  return decodePod({ kind: "Pod", metadata: { ...metadata, ...more }, spec: {}, status }, "a test");
}

const SET = { apiVersion: "apps/v1", kind: "StatefulSet" };
const RUN = { apiVersion: "kubevirt.io/v1", kind: "VirtualMachineInstance", name: "db", uid: "i-1" };
const OLD_RUN = { ...RUN, apiVersion: "kubevirt.io/v1alpha3" };

describe("the object that keeps a pod's addresses: its controller", () => {
  const bystander = { ...SET, controller: false };
  const of = (apiVersion: string, kind: string): Owner[] => [{ apiVersion, kind }];
  const rows = cases<readonly Owner[]>`
    none ${[]} => none
    a StatefulSet ${[SET]} => StatefulSet shop/web w-1 web-0
    a StatefulSet that only owns it ${[bystander]} => none
    a StatefulSet after an owner that is not the controller ${[{ apiVersion: "v1", kind: "Node", controller: false }, SET]}
      => StatefulSet shop/web w-1 web-0
    another one, after a StatefulSet that is not the controller ${[bystander, ...of("batch/v1", "Job")]} => none
    a StatefulSet of another group ${of("apps.kruise.io/v1", "StatefulSet")} => none
    a ReplicaSet ${of("apps/v1", "ReplicaSet")} => none
    a VirtualMachineInstance ${[RUN]} => run db i-1
    a VirtualMachineInstance of an older version ${[OLD_RUN]} => run db i-1
    a VirtualMachineInstance of another group ${[{ ...RUN, apiVersion: "kubevirt.example/v1" }]} => none
    a VirtualMachine ${[{ ...RUN, kind: "VirtualMachine" }]} => none
  `;
  const format = (pod: Pod, settings = BOTH): string => {
    const addressOwner = findAddressOwner(pod, settings);
    if (addressOwner === undefined) return "none";
    if (addressOwner.kind === "run") return `run ${addressOwner.run.name} ${addressOwner.run.uid}`;
    const { kind, namespace, name, uid, member } = addressOwner.workload;
    return `${kind} ${namespace}/${name} ${uid} ${member}`;
  };

  it.each(rows)("%s", (_title, owners, wanted) => {
    expect(format(podOf(owners, { labels: LAUNCHER }))).toBe(wanted);
  });
  it("a machine's pod is the launcher, no other one of the instance", () => {
    expect(format(podOf([RUN]))).toBe("none");
    expect(format(podOf([RUN], { labels: { "kubevirt.io": "hotplug-disk" } }))).toBe("none");
  });
  it("counts only where the settings say so", () => {
    expect(format(podOf([SET]), { ...BOTH, enableStatefulSet: false })).toBe("none");
    expect(format(podOf([RUN], { labels: LAUNCHER }), { ...BOTH, enableKubevirt: false })).toBe("none");
    expect(format(podOf([SET]), { ...BOTH, enableKubevirt: false })).not.toBe("none");
  });
});

describe("retain: by-name", () => {
  const BY_NAME = { annotations: { "ipam.vendor.io/retain": "by-name" }, labels: LAUNCHER };
  const KRUISE = { apiVersion: "apps.kruise.io/v1beta1", kind: "StatefulSet" };
  const settings = { ...BOTH, retainByName: [KRUISE, SET].map((kind) => ({ ...kind, plural: "statefulsets" })) };

  it("retains for a listed kind, in any version, and for no pod that does not ask", () => {
    const member = { kind: "StatefulSet.apps.kruise.io", namespace: "shop", name: "web", uid: "w-1", member: "web-0" };
    const found = { kind: "workload", workload: member };
    expect(findAddressOwner(podOf([KRUISE], BY_NAME), settings)).toEqual(found);
    const newer = podOf([{ ...KRUISE, apiVersion: "apps.kruise.io/v1" }], BY_NAME);
    expect(findAddressOwner(newer, settings)).toEqual(found);
    expect(findAddressOwner(reducePod(podOf([KRUISE], BY_NAME)), settings)).toEqual(found);
    expect(findAddressOwner(podOf([KRUISE]), settings)).toBeUndefined();
    expect(findAddressOwner(podOf([KRUISE], BY_NAME), BOTH)).toBeUndefined();
    for (const others of [[], [{ ...KRUISE, kind: "Thing" }]])
      expect(findAddressOwner(podOf(others, BY_NAME), settings)).toBeUndefined();
    expect(mayBeShared(member)).toBe(false);
  });

  it.each(cases<readonly Owner[]>`
    a listed kind ${[KRUISE]} => nothing
    a StatefulSet, which retains anyway ${[SET]} => nothing
    a machine's launcher, which does ${[RUN]} => nothing
    no controller ${[]} => the pod has no controller, with whose end its addresses would be released
    a ReplicaSet ${[{ apiVersion: "apps/v1", kind: "ReplicaSet" }]}
      => the pods of ReplicaSet shop/web have generated names, which never come again; for a Deployment, name a Subnet with "ipam.vendor.io/ippool-ip-number": "N"
    a Job ${[{ apiVersion: "batch/v1", kind: "Job" }]}
      => have generated names, which never come again; use an IPAMClaim
    a DaemonSet ${[{ apiVersion: "apps/v1", kind: "DaemonSet" }]} => never come again; use a pool for the node
    a CloneSet ${[{ ...KRUISE, kind: "CloneSet" }]} => never come again; use a StatefulSet
    another kind ${[{ ...KRUISE, kind: "Thing" }]} => "retainByName" of vendor-conf does not list Thing of apps.kruise.io
  `)("of %s is refused or not", (_what, owners, message) => {
    const refusal = refuseRetention(podOf(owners, BY_NAME), settings);
    expect(refusal?.message ?? "nothing").toContain(message);
    const annotation = { source: 'annotation "ipam.vendor.io/retain"', got: "by-name", wanted: "another way" };
    if (message !== "nothing") expect(refusal).toMatchObject(annotation);
  });
});

describe("a machine", () => {
  const named = { name: "db", uid: "i-1", resourceVersion: "1" };
  const machineOf = (ownerReferences: readonly object[], phase?: string) =>
    decodeMachine({ metadata: { ...named, ownerReferences }, status: { phase } }, "x");
  const vm = { apiVersion: "kubevirt.io/v1", kind: "VirtualMachine", name: "db", uid: "v-1", controller: true };

  it("is the runner of the instance, and without one the instance itself", () => {
    const run = { ...RUN, controller: true };
    const { machine } = machineOf([vm]);
    const known = { kind: "VirtualMachine", namespace: "shop", name: "db", uid: "v-1", member: "db" };
    expect(workloadOfRun("shop", run, machine)).toEqual(known);
    const alone = { kind: "VirtualMachineInstance", uid: "i-1", member: "db" };
    expect(workloadOfRun("shop", run, undefined)).toMatchObject(alone);
  });
  it.each([{ controller: false }, { apiVersion: "example.org/v1" }, { kind: "VirtualMachinePool" }])(
    "does not run the instance: %j",
    (change) => expect(machineOf([{ ...vm, ...change }]).machine).toBeUndefined(),
  );
  it("is finished when it has succeeded or failed", () => {
    const phases = [undefined, "Running", "Succeeded", "Failed"];
    expect(phases.map((phase) => machineOf([], phase).isFinished)).toEqual([false, false, true, true]);
  });
});

const MIGRATION = { "kubevirt.io/migrationJobUID": "m-1" };
it.each<[title: string, owners: readonly Owner[], labels: object, wanted: boolean]>([
  ["a launcher with a migration's label", [RUN], { ...LAUNCHER, ...MIGRATION }, true],
  ["a launcher without one", [RUN], LAUNCHER, false],
  ["any other pod with one", [SET], { ...LAUNCHER, ...MIGRATION }, false],
])("a pod to which a machine migrates %s", (_title, owners, labels, wanted) => {
  expect(isMigrationTarget(podOf(owners, { labels }))).toBe(wanted);
});

it.each([
  [0, 3, "web-0 web-2"],
  [5, 3, "web-5 web-7"],
  [0, 0, ""],
])("the members of a StatefulSet of [%i, +%i): %s", (start, replicas, members) => {
  const names = "web-0 web-2 web-3 web-4 web-5 web-7 web-8 web web- web-01 web-1-1 other-1".split(" ");
  expect(names.filter((name) => hasMember("web", { start, replicas }, name)).join(" ")).toBe(members);
});

describe("an IPAMClaim", () => {
  const metadata = { namespace: "shop", name: "c", uid: "c-1", resourceVersion: "7" };
  const claimOf = (spec: object, status?: object) => decodeIpamClaim({ metadata, spec, status }, "x");
  const WIDE = { network: "lan", interface: "net1" };

  it("is referred to by the networks of a pod, by interface", () => {
    const annotations = decodePodAnnotations({
      "k8s.v1.cni.cncf.io/networks": JSON.stringify([
        { name: "a", "ipam-claim-reference": "one" },
        { name: "b" },
        { name: "c", interface: "lan0", "ipam-claim-reference": "two" },
      ]),
      "v1.multus-cni.io/default-network": JSON.stringify([{ name: "d", "ipam-claim-reference": "first" }]),
    });
    const found = ["eth0", "net1", "net2", "lan0"].map((nic) => [...claimsOf(annotations, "eth0", nic)]);
    expect(found).toEqual([[["eth0", "first"]], [["net1", "one"]], [], [["lan0", "two"]]]);
    expect(claimsOf(decodePodAnnotations({ "k8s.v1.cni.cncf.io/networks": "a,b" }), "eth0", "net1").size).toBe(0);
  });
  it("is one of a NIC that is claimed with the one that is asked for: not of all networks that a pod may write down", () => {
    const networks = Array.from({ length: 300 }, (_, at) => ({ name: "n", "ipam-claim-reference": `c${at + 1}` }));
    const listed = (count: number) =>
      Array.from({ length: count }, (_, at) => ({ interface: `net${at}`, ipv4: ["p"] }));
    const claims = (nics: number) => {
      const ippools = nics === 0 ? {} : { "ipam.vendor.io/ippools": JSON.stringify(listed(nics)) };
      const annotations = { "k8s.v1.cni.cncf.io/networks": JSON.stringify(networks), ...ippools };
      return [...claimsOf(decodePodAnnotations(annotations), "eth0", "net200").values()];
    };
    expect(claims(0)).toEqual(["c200"]);
    expect(claims(3)).toEqual(["c200", "c1", "c2"]);
    expect(claims(32)).toHaveLength(32);
  });
  it("keeps by its own UID", () => {
    const workload = { kind: "IPAMClaim", namespace: "shop", name: "c", uid: "c-1", member: "c" };
    expect(workloadOfClaim(claimOf(WIDE))).toEqual(workload);
  });
  it("asks for its given addresses, before that for those that its spec requests", () => {
    const requested = { ...WIDE, ipRequests: ["10.6.0.7/24", "fd00::7/128"] };
    const requestedOf = (claim: ReturnType<typeof claimOf>) =>
      requestedByClaim(claim).map(({ ip, length, source }) => `${formatIp(ip)} ${length} ${source}`);
    expect(requestedOf(claimOf(WIDE))).toEqual([]);
    expect(requestedOf(claimOf(requested))).toEqual([
      '10.6.0.7 24 IPAMClaim "shop/c", spec.ipRequests',
      'fd00::7 undefined IPAMClaim "shop/c", spec.ipRequests',
    ]);
    const given = claimOf(requested, { ips: ["10.6.0.9/24", "fd00::9"], ownerPod: "web-0" });
    expect([requestedOf(given), given.ownerPod]).toEqual([
      ['10.6.0.9 24 IPAMClaim "shop/c", status.ips', 'fd00::9 undefined IPAMClaim "shop/c", status.ips'],
      "web-0",
    ]);
    expect(requestedOf(claimOf(requested, { ips: ["10.6.0.9/24"] }))).toEqual([
      '10.6.0.9 24 IPAMClaim "shop/c", status.ips',
      'fd00::7 undefined IPAMClaim "shop/c", spec.ipRequests',
    ]);
  });
  it.each<[writers: readonly string[], spec: object, isPreference: boolean]>([
    [["berth-controller"], WIDE, true],
    [["velero-server"], WIDE, false],
    [["berth-controller", "kubectl-edit"], WIDE, false],
    [[], WIDE, false],
    [["berth-controller"], { ...WIDE, ipRequests: ["10.6.0.9"] }, false],
    [["berth-controller"], { ...WIDE, ipRequests: ["fd00::9"] }, true],
  ])("its status written by %j beside %j only prefers addresses: %s", (managers, spec, isPreference) => {
    const managedFields = [
      { manager: "kubectl", operation: "Update", fieldsType: "FieldsV1", fieldsV1: { "f:spec": { "f:network": {} } } },
      ...managers.map((manager) => ({ manager, subresource: "status", fieldsV1: { "f:status": { "f:ips": {} } } })),
    ];
    const object = { metadata: { ...metadata, managedFields }, spec, status: { ips: ["10.6.0.9/24"] } };
    const [request] = requestedByClaim(decodeIpamClaim(object, "x"));
    expect(request?.isPreference).toBe(isPreference);
  });
  it("serves the NIC and the network that it is for", () => {
    expect(refuseClaim(claimOf(WIDE), "net1", ["lan", "shop/lan-nad"])).toBeUndefined();
    expect(refuseClaim(claimOf({ network: "shop/lan-nad" }), "net7", ["lan", "shop/lan-nad"])).toBeUndefined();
    expect(refuseClaim(claimOf(WIDE), "net2", ["lan"])).toBe('it is for interface "net1", not for "net2"');
    expect(refuseClaim(claimOf(WIDE), "net1", ["wan"])).toBe(
      'it is for network "lan", and interface "net1" is of network "wan"',
    );
  });
  it.each([
    [{ ...WIDE, ipRequests: ["ten"] }, 'field "spec.ipRequests[0]": found "ten", want an address such as 10.6.0.21/16'],
    [{ ...WIDE, ipRequests: ["10.0.0.1", "10.0.0.2", "10.0.0.3"] }, 'field "spec.ipRequests"'],
    [{ interface: "net1" }, 'field "spec.network"'],
  ])("%j is refused", (spec, message) => {
    expect(() => claimOf(spec)).toThrow(message);
  });
});

describe("retention: two pods of one member", () => {
  const launcher = (name: string, run: string, status: object = {}): Pod =>
    podOf([{ ...RUN, uid: run }], { name, uid: `u-${name}`, labels: LAUNCHER }, status);
  const holder = { namespace: "shop", pod: "a", podUid: "u-a" };
  it.each<[title: string, found: Pod | undefined, wanted: string]>([
    ["the other is not there", undefined, "gone"],
    ["the other's name is another pod's", podOf([RUN], { name: "a", uid: "u-other", labels: LAUNCHER }), "gone"],
    ["the other has finished", launcher("a", "i-1", { phase: "Succeeded" }), "gone"],
    ["the other runs the same instance", launcher("a", "i-1"), "migrating"],
    ["the other runs an earlier instance", launcher("a", "i-0"), "alive"],
    ["the other is no machine's", podOf([SET], { name: "a", uid: "u-a" }), "alive"],
  ])("%s", (_title, found, wanted) => {
    expect(decideHolder({ pod: launcher("b", "i-1"), holder, found })).toBe(wanted);
  });
  it("of one name in two namespaces are two pods", () => {
    const pod = launcher("a", "i-1");
    expect(decideHolder({ pod, holder: { ...holder, namespace: "bank" }, found: launcher("a", "i-0") })).toBe("alive");
  });
  it.each([
    ["two that are no machine's do not migrate", "b", "alive"],
    ["two of one name: the one before is gone", "a", "gone"],
  ])("%s", (_title, name, wanted) => {
    const pod = podOf([SET], { name, uid: "u-b" });
    expect(decideHolder({ pod, holder, found: podOf([SET], { name: "a", uid: "u-a" }) })).toBe(wanted);
  });
  it("share an address only where a machine may be behind them", () => {
    const workload = { namespace: "shop", name: "x", uid: "x", member: "x" };
    const kinds = ["StatefulSet", "VirtualMachine", "VirtualMachineInstance", "IPAMClaim"];
    expect(kinds.map((kind) => mayBeShared({ ...workload, kind }))).toEqual([false, true, true, true]);
    expect(mayBeShared(undefined)).toBe(false);
  });
});
