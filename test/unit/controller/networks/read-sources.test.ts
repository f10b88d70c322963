import { describe, expect, it } from "vitest";
import {
  readCalicoPool,
  readCiliumPool,
  readCiliumSettings,
  readControlPlanePod,
  readKubeadm,
  readServiceCidr,
} from "../../../../host/controller/networks/sources.ts";
import { findFlag, type Statement } from "../../../../host/controller/networks/statement.ts";
import { formatPrefix } from "../../../../host/net/prefix.ts";

/** As lines: `place = networks`, or the faults. */
function lines(statements: readonly Statement[]): string[] {
  return statements.flatMap(({ place, networks, faults }) =>
    faults.length > 0 ? [...faults] : [`${place} = ${networks.map(formatPrefix).join(" ")}`],
  );
}

it.each<[command: string[], value: string | undefined]>([
  [["kcm", "--cluster-cidr=10.0.0.0/8"], "10.0.0.0/8"],
  [["kcm", "--cluster-cidr", "10.0.0.0/8"], "10.0.0.0/8"],
  [["kcm", "--cluster_cidr=10.0.0.0/8"], "10.0.0.0/8"],
  [["--v=2", "--cluster-cidr=10.0.0.0/8", "--cluster-cidr=10.1.0.0/16"], "10.1.0.0/16"],
  [["/bin/sh", "-c", "exec kcm --v=2 --cluster-cidr='10.0.0.0/8' 1>>/var/log/kcm 2>&1"], "10.0.0.0/8"],
  [["kcm", "--cluster-cidr=a=b"], "a=b"],
  [["kcm", "--cluster-cidr="], ""],
  [["kcm", "--service-cluster-cidr=10.0.0.0/8"], undefined],
  [["kcm", "-cluster-cidr=10.0.0.0/8"], undefined],
  [["kcm", "--", "--cluster-cidr=10.0.0.0/8"], undefined],
])("a flag's value: %j", (command, value) => expect(findFlag("cluster-cidr", command)).toBe(value));

it("a ServiceCIDR may be of both families, may be empty, and is named when it is of another form", () => {
  const read = (spec: unknown) => lines(readServiceCidr({ metadata: { name: "kubernetes" }, spec }));
  const both = "ServiceCIDR kubernetes = 10.96.0.0/12 fd00::/108";
  expect(read({ cidrs: ["10.96.0.0/12", "fd00::/108"] })).toEqual([both]);
  expect([read({}), read(null)]).toEqual([[], []]);
  const fault = 'ServiceCIDR kubernetes: field "spec.cidrs": found "10.96.0.0/12", want a list';
  expect(read({ cidrs: "10.96.0.0/12" })).toEqual([fault]);
});

describe("kubeadm's ConfigMap", () => {
  const read = (text: unknown) => {
    const { podSubnet, serviceSubnet } = readKubeadm({ data: { ClusterConfiguration: text } });
    return { pods: lines(podSubnet), services: lines(serviceSubnet) };
  };
  const place = "ConfigMap kube-system/kubeadm-config";

  it("says both", () => {
    const networks = "  podSubnet: 10.244.0.0/16,fd00:10:244::/56\n  serviceSubnet: 10.96.0.0/12\n";
    expect(read(`kind: ClusterConfiguration\nnetworking:\n  dnsDomain: cluster.local\n${networks}`)).toEqual({
      pods: [`${place}, networking.podSubnet = 10.244.0.0/16 fd00:10:244::/56`],
      services: [`${place}, networking.serviceSubnet = 10.96.0.0/12`],
    });
  });

  it.each([undefined, "", "networking:", 'networking: {podSubnet: ""}'])("%j says nothing", (text) =>
    expect(read(text)).toEqual({ pods: [], services: [] }),
  );

  it.each<[text: unknown, fault: string]>([
    ["a: [", "Malformed YAML: "],
    ["- a", "found a list, want an object"],
    ["networking: 10.0.0.0/8", 'field "networking": found "10.0.0.0/8", want an object'],
    [3, 'field "data.ClusterConfiguration": found 3, want text'],
  ])("%j is named", (text, fault) => {
    const { pods, services } = read(text);
    expect(pods).toEqual([expect.stringContaining(`${place}, ClusterConfiguration: ${fault}`)]);
    expect(services).toEqual(pods);
  });
});

describe("a static pod of the control plane", () => {
  const pod = (containers: object[], phase = "Running") =>
    readControlPlanePod({
      metadata: { name: "kcm-n1", labels: { component: "kube-controller-manager" } },
      ...{ spec: { containers }, status: { phase } },
    });

  it("has flags in its command or in its arguments", () => {
    const { component, clusterCidr, serviceRange } = pod([
      { command: ["kcm", "--cluster-cidr=10.244.0.0/16"], args: ["--service-cluster-ip-range", "10.96.0.0/12"] },
    ]);
    expect(component).toBe("kube-controller-manager");
    expect(lines(clusterCidr)).toEqual(["Pod kcm-n1, --cluster-cidr = 10.244.0.0/16"]);
    expect(lines(serviceRange)).toEqual(["Pod kcm-n1, --service-cluster-ip-range = 10.96.0.0/12"]);
    expect(lines(pod([{ image: "x" }, { args: ["--cluster-cidr=10.0.0.0/8"] }]).clusterCidr)).toHaveLength(1);
  });

  it("says nothing when it is over, or of another form", () => {
    expect(pod([{ args: ["--cluster-cidr=10.0.0.0/8"] }], "Failed").clusterCidr).toEqual([]);
    expect(readControlPlanePod({ metadata: {} })).toEqual({ component: "", clusterCidr: [], serviceRange: [] });
  });

  it("names words that are no network", () => {
    const fault = 'Pod kcm-n1, --cluster-cidr: "$(CIDR)" is not a network in CIDR form';
    expect(lines(pod([{ args: ["--cluster-cidr=$(CIDR)"] }]).clusterCidr)).toEqual([fault]);
  });
});

it.each<[spec: object, ...lines: string[]]>([
  // Pods keep their addresses.
  [{ cidr: "192.168.0.0/16", disabled: true }, "Calico's IPPool p = 192.168.0.0/16"],
  [{ cidr: "192.168.0.0/16", allowedUses: ["Tunnel", "Workload"] }, "Calico's IPPool p = 192.168.0.0/16"],
  [{ cidr: "192.168.0.0/16", allowedUses: ["LoadBalancer"] }],
  [{ cidr: 3 }, 'Calico\'s IPPool p: field "spec.cidr": found 3, want text'],
  [{ cidr: "192.168.0.0" }, 'Calico\'s IPPool p: "192.168.0.0" is not a network in CIDR form'],
])("Calico's IPPool %j", (spec, ...wanted) =>
  expect(lines(readCalicoPool({ metadata: { name: "p" }, spec }))).toEqual(wanted),
);

describe("Cilium", () => {
  const place = "ConfigMap kube-system/cilium-config";
  const read = (data: Record<string, unknown>) => readCiliumSettings({ data });
  it("has pools of the cluster, as lists", () => {
    const v6 = { "enable-ipv6": "true", "cluster-pool-ipv6-cidr": "fd00::/104" };
    const { ipam, pools } = read({ ipam: "cluster-pool", "cluster-pool-ipv4-cidr": "10.0.0.0/8 11.0.0.0/8", ...v6 });
    expect(ipam).toBe("cluster-pool");
    expect(lines(pools)).toEqual([
      `${place}, cluster-pool-ipv4-cidr = 10.0.0.0/8 11.0.0.0/8`,
      `${place}, cluster-pool-ipv6-cidr = fd00::/104`,
    ]);
  });
  it("does not use values of a family that is off", () => {
    const off = { "enable-ipv6": "false", "cluster-pool-ipv6-cidr": "fd00::/104" };
    const { families, pools } = read({ ...off, "cluster-pool-ipv4-cidr": "10.0.0.0/8" });
    expect(families).toEqual([4]);
    expect(lines(pools)).toEqual([`${place}, cluster-pool-ipv4-cidr = 10.0.0.0/8`]);
  });
  it("may be empty or unreadable", () => {
    expect(readCiliumSettings({})).toMatchObject({ ipam: "", pools: [], faults: [] });
    expect(read({ ipam: 3 }).faults).toEqual([`${place}: field "data.ipam": found 3, want text`]);
  });
  it("has pools of its own kind", () => {
    const pool = (spec: unknown) => readCiliumPool({ metadata: { name: "p" }, spec });
    const both = { ipv4: { cidrs: ["10.1.0.0/16"] }, ipv6: { cidrs: ["fd00::/64"] } };
    expect(lines(pool(both))).toEqual(["CiliumPodIPPool p = 10.1.0.0/16", "CiliumPodIPPool p = fd00::/64"]);
    const fault = 'CiliumPodIPPool p: field "spec.ipv4.cidrs[0]": found an object, want text';
    expect(lines(pool({ ipv4: { cidrs: [{ cidr: "10.0.0.0/8" }] } }))).toEqual([fault]);
  });
});
