/** Damage that only a whole cluster shows is found; damage that its nodes report already, and correct state, is not. */
import { expect, it } from "vitest";
import type { ClusterFacts } from "../../../host/findings/find-cluster-damage.ts";
import { findClusterDamage } from "../../../host/findings/find-cluster-damage.ts";
import type { CheckRecord } from "../../../host/records/check-record.ts";
import type { IpAllocationSpec } from "../../../host/resources/ip-allocation.ts";
import { cases } from "../../world/rows.ts";
import { HOLDER, ipAllocation, pool } from "../../world/subjects.ts";
import { ip } from "../../world/values.ts";

type State = Parameters<typeof findClusterDamage>[0];

const ADDRESS = "10.6.0.7";

const object = (spec: Partial<IpAllocationSpec> = {}) => ipAllocation(ADDRESS, spec);

function record(node: string, used: CheckRecord["used"] = [], findings: CheckRecord["findings"] = []): CheckRecord {
  return { node, time: "", records: 1, nics: 1, attachments: 0, findings, used };
}

const POD = { namespace: "shop", name: "web-0", node: "n1", ips: [ip(ADDRESS)] };
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
      stated: [],
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

const allocated = (spec: Partial<IpAllocationSpec>, facts: Partial<ClusterFacts> = {}): Changes => ({
  facts: { allocations: [object(spec)], ...facts },
});
const NO_PODS = { pods: [] };
const DELETED = { ...object({ node: "n9" }), deleting: true };
const WITHOUT = pool("blue", "10.6.0.0/24", { excludeIPs: [ADDRESS] });
const LAB = { pods: [{ ...POD, ips: [ip("10.7.0.3")] }] };
const FREE = { state: "Cooling", holders: [] } as const;
const KEPT = { state: "Kept", holders: [] } as const;

it.each<[what: string, changes: Changes]>([
  ["when all agree", {}],
  ["of one address twice on a node", { records: [record("n1", [...at("a"), ...at("b")])] }],
  ["of a machine that migrates", { records: TWO, ...allocated({ holders: [HOLDER, HOLDER] }) }],
  ["that a node has found", { records: [record("n1", [], [NODE_FINDING])], facts: LOST }],
  ["of nodes that cannot be read", { facts: { nodes: undefined } }],
  ["of an object that cools", allocated({ ...FREE, node: "n9", pool: "old" }, NO_PODS)],
  ["of an object that is being deleted", { facts: { ...NO_PODS, allocations: [DELETED] } }],
  ["of a retained address without a node", allocated({ ...KEPT, node: "n9" }, NO_PODS)],
  ["of a pod's second holder", allocated({ holders: [{ ...HOLDER, pod: "vm-1" }, HOLDER] })],
  ["of an address of no pool", { facts: { pods: [{ ...POD, ips: [ip("192.0.2.1")] }] } }],
  ["of an address that a pool leaves out", { facts: { ...LOST, pools: [WITHOUT] } }],
  ["of pods on nodes without an agent", { facts: { ...LOST, pods: [{ ...POD, node: "n3" }] } }],
  ["of one that its space has", allocated({ ip: ip("10.7.0.3"), addressSpace: "lab", pool: "lab" }, LAB)],
])("finds nothing %s", (_what, changes) => expect(check(changes)).toEqual([]));

it.each(cases<Changes>`
  an address on NICs of two nodes ${{ records: TWO }}
    => duplicate 10.6.0.7 shop/web-0, eth0 on node n1 and eth0 in /run/netns/b on node n2 have the address; it is allocated to pod shop/web-0
  the same where a node has found something else about it ${{ records: [...TWO, record("n3", [], [NODE_FINDING])] }}
    => duplicate 10.6.0.7 shop/web-0, eth0 on node n1 and eth0 in /run/netns/b on node n2 have the address; it is allocated to pod shop/web-0
  the same without an object ${{ records: TWO, facts: { allocations: [], pods: [] } }}
    => duplicate 10.6.0.7 shop/web-0, eth0 on node n1 and eth0 in /run/netns/b on node n2 have the address; it is allocated to no pod
  an object of a node that is gone ${{ facts: { nodes: new Set(["n2"]), pods: [] }, agents: new Set(["n2"]) }}
    => orphan 10.6.0.7 n1 shop/web-0 the API server has an IPAllocation of it for node n1, which does not exist
  an object of a node without an agent ${{ facts: NO_PODS, agents: new Set(["n2"]) }}
    => orphan 10.6.0.7 n1 shop/web-0 the API server has an IPAllocation of it for node n1, on which no agent runs
  an object whose pool is gone ${allocated({ pool: "old" })}
    => wrong-pool 10.6.0.7 n1 shop/web-0 its IPAllocation is Bound and names pool "old", which does not exist
  a retained one whose pool is gone ${allocated({ ...KEPT, pool: "old" }, NO_PODS)}
    => wrong-pool 10.6.0.7 n1 its IPAllocation is Kept and names pool "old", which does not exist
  a pod whose address has no object ${{ facts: LOST }}
    => lost-record 10.6.0.7 n1 shop/web-0 the pod's status shows the address, and the API server has no IPAllocation of it
  a pod whose address cools ${allocated(FREE)}
    => lost-record 10.6.0.7 n1 shop/web-0 the pod's status shows the address, and its IPAllocation is Cooling
  a pod whose address is another pod's ${allocated({ holders: [{ ...HOLDER, pod: "web-9", node: "n2" }] })}
    => duplicate 10.6.0.7 n1 shop/web-0 the pod's status shows the address, which is allocated to pod shop/web-9 on node n2
  an address of a space ${{ facts: LAB }}
    => lost-record 10.7.0.3/lab n1 shop/web-0 the pod's status shows the address, and the API server has no IPAllocation of it
`)("finds %s", (_what, changes, found) => expect(check(changes)).toEqual([found]));
