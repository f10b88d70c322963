import { describe, expect, it } from "vitest";
import type { IfName } from "../../../host/cni/names.ts";
import type { LabelSelector } from "../../../host/config/label-selector.ts";
import { refusePool, tieRank } from "../../../host/ipam/filters.ts";
import type { Subject } from "../../../host/ipam/model.ts";
import { selectPools } from "../../../host/ipam/selection.ts";
import { cases } from "../../world/rows.ts";
import { type PoolOptions, pool, poolsByName, subject } from "../../world/subjects.ts";

function labels(matchLabels: Record<string, string>): LabelSelector {
  return { matchLabels, matchExpressions: [] };
}

function check(options: PoolOptions, wanted: string | undefined, given: Subject = subject()) {
  expect(refusePool(pool("p", "10.0.0.0/24", options), given, 4)?.refusal).toBe(wanted);
}

describe("a pool is refused", () => {
  it.each(cases<PoolOptions>`
    terminating ${{ deleting: true }} => is being deleted
    disabled ${{ disable: true }} => is disabled (spec.disable)
    of another node ${{ nodeName: ["n2", "n3"] }} => nodeName is "n2", "n3", this node is "n1"
    of other nodes by label ${{ nodeAffinity: labels({ zone: "b" }) }}
      => nodeAffinity does not match the labels of the node "n1"
    of another namespace ${{ namespaceName: ["bank"] }} => namespaceName is "bank", the pod's namespace is "shop"
    of other namespaces by label ${{ namespaceAffinity: labels({ team: "x" }) }}
      => namespaceAffinity does not match the labels of the namespace "shop"
    of other pods ${{ podAffinity: labels({ app: "db" }) }} => podAffinity does not match the labels of the pod
    of another network ${{ multusName: ["kube-system/vlan7"] }}
      => multusName is "kube-system/vlan7", the NIC's network is "lab"
  `)("%s", (_what, options, reason) => check(options, reason));

  it("of the other family", () => {
    expect(refusePool(pool("p", "fd00::/64"), subject(), 4)?.refusal).toBe("is an IPv6 pool, not IPv4");
  });

  it("for the first reason in the order of the filters", () =>
    check({ disable: true, deleting: true }, "is being deleted"));

  it("when the namespace is unknown and the pool has names", () => {
    const reason = 'namespaceName is "shop", the pod\'s namespace is unknown';
    check({ namespaceName: ["shop"] }, reason, subject({ pod: undefined }));
  });
});

describe("the text for the pod's owner names no", () => {
  const application = { apiVersion: "apps/v1", kind: "Deployment", namespace: "bank", name: "vault", uid: "u1" };
  const ofShop = { ...application, namespace: "shop" };
  const fixed = { wanted: 1, reason: "1 fixed", reclaim: true };
  const generated = { subnet: "s", application, interface: "eth0" as IfName, ...fixed };
  it.each<[what: string, options: PoolOptions, brief: string | undefined]>([
    ["node", { nodeName: ["n2", "n3"] }, "is for other nodes (spec.nodeName)"],
    ["namespace", { namespaceName: ["bank"] }, "is for other namespaces (spec.namespaceName)"],
    ["network", { multusName: ["bank/vlan7"] }, "is for other networks (spec.multusName)"],
    ["workload of another namespace", { generated }, "is generated for a workload of another namespace"],
    ["more than there is to leave out", { generated: { ...generated, application: ofShop } }, undefined],
    ["more of labels", { namespaceAffinity: labels({ team: "x" }) }, undefined],
  ])("%s", (_what, options, brief) => {
    expect(refusePool(pool("p", "10.0.0.0/24", options), subject(), 4)?.brief).toBe(brief);
  });

  it("more than eight of them, not even to the administrator", () => {
    const nodeName = Array.from({ length: 1_024 }, (_, index) => `n-${index}`);
    const refusal = refusePool(pool("p", "10.0.0.0/24", { nodeName }), subject(), 4)?.refusal;
    expect(refusal).toMatch(/"n-7", and 1016 more, this node is "n1"$/);
  });
});

describe("a pool is accepted", () => {
  it.each<[what: string, options: PoolOptions]>([
    ["that is tied to nothing", {}],
    ["of this node", { nodeName: ["n1"] }],
    ["whose name list wins over an affinity", { nodeName: ["n1"], nodeAffinity: labels({ zone: "b" }) }],
    ["whose namespace list wins, too", { namespaceName: ["bank", "shop"], namespaceAffinity: labels({ team: "x" }) }],
    ["whose pod labels match", { podAffinity: labels({ app: "web" }) }],
    ["of this network by name, one of several", { multusName: ["bank/vlan7", "lab"] }],
    ["of this network by namespace and name", { multusName: ["shop/lab"] }],
  ])("%s", (_what, options) => check(options, undefined));

  it("no network of another namespace that the pod has on another NIC", () => {
    const networks = [{ namespace: "infra", name: "vlan7", interface: "net1" as IfName }];
    const given = subject({ pod: { namespace: "shop", name: "w", labels: {}, annotations: { networks } } });
    check({ multusName: ["infra/lab"] }, 'multusName is "infra/lab", the NIC\'s network is "lab"', given);
  });

  it("generated for a workload, by no pod at all", () => {
    const application = { apiVersion: "apps/v1", kind: "Deployment", namespace: "bank", name: "vault", uid: "u1" };
    const generated = { subnet: "s", application, interface: "eth0" as IfName, wanted: 1, reason: "1", reclaim: true };
    check({ generated }, "is generated for Deployment bank/vault", subject({ pod: undefined }));
  });

  it("tied to a network, by no pod at all", () => {
    const given = subject({ pod: undefined });
    check({ multusName: ["shop/lab"] }, 'multusName is "shop/lab", the NIC\'s network is "lab"', given);
    check({ multusName: ["lab"] }, undefined, given);
  });

  it("of a network in another namespace, as the pod names it", () => {
    const networks = [{ namespace: "infra", name: "lab", interface: "net1" as IfName }];
    const given = subject({ pod: { namespace: "shop", name: "w", labels: {}, annotations: { networks } } });
    check({ multusName: ["infra/lab"] }, undefined, given);
  });
});

it("default pools with the more specific tie come first, equal ones in name order", () => {
  const tied: [string, PoolOptions][] = [
    ["plain-b", {}],
    ["plain-a", {}],
    ["plain-c", {}],
    ["network", { multusName: ["lab"] }],
    ["namespace-labels", { namespaceAffinity: labels({}) }],
    ["namespace", { namespaceName: ["shop"] }],
    ["node-labels", { nodeAffinity: labels({ zone: "a" }) }],
    ["node", { nodeName: ["n1"] }],
    ["pod", { podAffinity: labels({ app: "web" }) }],
  ];
  const pools = tied.map(([name, options], index) => pool(name, `10.${index}.0.0/24`, { default: true, ...options }));
  const [nic] = selectPools(subject(), poolsByName(...pools)).nics;
  expect(nic?.families[0]?.candidates.map(({ name }) => name)).toEqual([
    ...["pod", "node", "node-labels", "namespace", "namespace-labels", "network", "plain-a", "plain-b", "plain-c"],
  ]);
  expect(pools.map(tieRank)).toEqual([6, 6, 6, 5, 4, 3, 2, 1, 0]);
});
