/** Damage that only a whole cluster shows is found; damage that its nodes report already, and correct state, is not. */
import { expect, it } from "vitest";
import { findClusterDamage } from "../../../../host/cli/check/find-cluster-damage.ts";
import type { ClusterFacts } from "../../../../host/cli/check/read-cluster.ts";
import type { CheckRecord } from "../../../../host/records/check-record.ts";
import type { IpAllocationSpec } from "../../../../host/resources/ip-allocation.ts";
import { HOLDER, ipAllocation, pool } from "../../../world/subjects.ts";
import { ip } from "../../../world/values.ts";

type State = Parameters<typeof findClusterDamage>[0];

const ADDRESS = "10.6.0.7";

const object = (spec: Partial<IpAllocationSpec> = {}) => ipAllocation(ADDRESS, spec);

function record(node: string, used: CheckRecord["used"] = [], findings: CheckRecord["findings"] = []): CheckRecord {
  return { node, time: "", records: 1, nics: 1, attachments: 0, findings, used, problems: [] };
}

const POD = { namespace: "shop", name: "web-0", uid: "u1", node: "n1", ips: [ip(ADDRESS)] };
const at = (place: string) => [{ address: ADDRESS, place }];
const NODE_FINDING = { kind: "lost-object", address: ADDRESS } as CheckRecord["findings"][number];

interface Changes extends Partial<Omit<State, "facts">> {
  readonly facts?: Partial<ClusterFacts>;
}

function check({ facts, ...changes }: Changes): string[] {
  const state: State = {
    records: [record("n1", at("shop/web-0, eth0")), record("n2")],
    agents: new Set(["n1", "n2"]),
    ...changes,
    facts: {
      cluster: "c1",
      nodes: new Set(["n1", "n2", "n3"]),
      pools: [pool("blue", "10.6.0.0/24"), pool("lab", "10.7.0.0/24", { addressSpace: "lab" })],
      allocations: [object()],
      pods: [POD],
      problems: [],
      ...facts,
    },
  };
  return findClusterDamage(state).map(({ kind, address, node, namespace, pod: name, text, isReleasable }) => {
    expect(isReleasable).toBe(false);
    return [kind, address, node, name === "" ? "" : `${namespace}/${name}`, text].filter(Boolean).join(" ");
  });
}

const TWO = [record("n1", at("shop/web-0, eth0")), record("n2", at("eth0 in /run/netns/b"))];
const LOST = { allocations: [], pods: [POD] };

it.each<[what: string, changes: Changes, found: string[]]>([
  ["nothing when all agree", {}, []],
  [
    "an address on NICs of two nodes",
    { records: TWO },
    [
      `duplicate ${ADDRESS} shop/web-0, eth0 on node n1 and eth0 in /run/netns/b on node n2 have the address; it is allocated to pod shop/web-0`,
    ],
  ],
  [
    "the same without an object",
    { records: TWO, facts: { allocations: [], pods: [] } },
    [
      `duplicate ${ADDRESS} shop/web-0, eth0 on node n1 and eth0 in /run/netns/b on node n2 have the address; it is allocated to no pod`,
    ],
  ],
  ["nothing of one address twice on a node", { records: [record("n1", [...at("a"), ...at("b")])] }, []],
  [
    "nothing of a machine that migrates",
    { records: TWO, facts: { allocations: [object({ holders: [HOLDER, HOLDER] })] } },
    [],
  ],
  ["nothing that a node has found", { records: [record("n1", [], [NODE_FINDING])], facts: LOST }, []],
  [
    "an object of a node that is gone",
    { facts: { nodes: new Set(["n2"]), pods: [] }, agents: new Set(["n2"]) },
    [`orphan ${ADDRESS} n1 shop/web-0 the API server has an IPAllocation of it for node n1, which does not exist`],
  ],
  [
    "an object of a node without an agent",
    { facts: { pods: [] }, agents: new Set(["n2"]) },
    [`orphan ${ADDRESS} n1 shop/web-0 the API server has an IPAllocation of it for node n1, on which no agent runs`],
  ],
  ["nothing of nodes that cannot be read", { facts: { nodes: undefined } }, []],
  [
    "nothing of an object that cools",
    { facts: { allocations: [object({ state: "Cooling", node: "n9", pool: "old", holders: [] })], pods: [] } },
    [],
  ],
  [
    "nothing of an object that is being deleted",
    { facts: { allocations: [{ ...object({ node: "n9" }), deleting: true }], pods: [] } },
    [],
  ],
  [
    "nothing of a retained address without a node",
    { facts: { allocations: [object({ state: "Kept", node: "n9", holders: [] })], pods: [] } },
    [],
  ],
  [
    "an object whose pool is gone",
    { facts: { allocations: [object({ pool: "old" })] } },
    [`wrong-pool ${ADDRESS} n1 shop/web-0 its IPAllocation is Bound and names pool "old", which does not exist`],
  ],
  [
    "a retained one whose pool is gone",
    { facts: { allocations: [object({ pool: "old", state: "Kept", holders: [] })], pods: [] } },
    [`wrong-pool ${ADDRESS} n1 its IPAllocation is Kept and names pool "old", which does not exist`],
  ],
  [
    "a pod whose address has no object",
    { facts: LOST },
    [
      `lost-record ${ADDRESS} n1 shop/web-0 the pod's status shows the address, and the API server has no IPAllocation of it`,
    ],
  ],
  [
    "a pod whose address cools",
    { facts: { allocations: [object({ state: "Cooling", holders: [] })] } },
    [`lost-record ${ADDRESS} n1 shop/web-0 the pod's status shows the address, and its IPAllocation is Cooling`],
  ],
  [
    "a pod whose address is another pod's",
    { facts: { allocations: [object({ holders: [{ ...HOLDER, pod: "web-9", node: "n2" }] })] } },
    [
      `duplicate ${ADDRESS} n1 shop/web-0 the pod's status shows the address, which is allocated to pod shop/web-9 on node n2`,
    ],
  ],
  [
    "nothing of a pod's second holder",
    { facts: { allocations: [object({ holders: [{ ...HOLDER, pod: "vm-1" }, HOLDER] })] } },
    [],
  ],
  ["nothing of a static pod, whose object has another UID", { facts: { pods: [{ ...POD, uid: "mirror" }] } }, []],
  ["nothing of an address of no pool", { facts: { pods: [{ ...POD, ips: [ip("192.0.2.1")] }] } }, []],
  [
    "nothing of an address that a pool leaves out",
    { facts: { ...LOST, pools: [pool("blue", "10.6.0.0/24", { excludeIPs: [ADDRESS] })] } },
    [],
  ],
  ["nothing of pods on nodes without an agent", { facts: { ...LOST, pods: [{ ...POD, node: "n3" }] } }, []],
  [
    "an address of a space",
    { facts: { pods: [{ ...POD, ips: [ip("10.7.0.3")] }] } },
    [
      "lost-record 10.7.0.3/lab n1 shop/web-0 the pod's status shows the address, and the API server has no IPAllocation of it",
    ],
  ],
  [
    "nothing of one that its space has",
    {
      facts: {
        pods: [{ ...POD, ips: [ip("10.7.0.3")] }],
        allocations: [object({ ip: ip("10.7.0.3"), addressSpace: "lab", pool: "lab" })],
      },
    },
    [],
  ],
])("finds %s", (_what, changes, found) => {
  expect(check(changes)).toEqual(found);
});
