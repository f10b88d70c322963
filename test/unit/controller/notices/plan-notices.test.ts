import { expect, it } from "vitest";
import { openCachedDecoder } from "../../../../host/controller/cached-allocation.ts";
import { planNotices } from "../../../../host/controller/notices/plan-notices.ts";

const decode = openCachedDecoder();

function allocation(spec: object, annotations = {}) {
  const common = { address: "10.6.0.7", prefixLength: 24, pool: "blue", node: "n1", holders: [] };
  const metadata = { name: "10.6.0.7", uid: "u", resourceVersion: "5", annotations };
  return decode({ apiVersion: "ipam.vendor.io/v1", kind: "IPAllocation", metadata, spec: { ...common, ...spec } });
}

const holder = { namespace: "shop", pod: "web-0", podUID: "p", interface: "eth0", node: "n1" };
const elsewhere = { ...holder, podUID: "q", node: "n2" };
const workload = { kind: "StatefulSet", namespace: "shop", name: "web", uid: "w", member: "web-0" };
const ofMember = allocation({ state: "Bound", holders: [holder], workload });
const bound = allocation({ state: "Bound", holders: [holder] });
const forced = allocation({ state: "Bound", holders: [holder] }, { "ipam.vendor.io/force-delete": "true" });
const shared = allocation({ state: "Bound", holders: [holder, elsewhere], workload });
const behind = allocation({ state: "Bound", node: "n2", holders: [elsewhere, holder], workload });
const moved = allocation({ state: "Bound", node: "n2", holders: [elsewhere] });
const cooling = allocation({ state: "Cooling" });
const kept = allocation({ state: "Kept", workload });
const lost = allocation({ state: "Quarantined", quarantine: { reason: "NodeLost", holder } });
const requested = allocation({ state: "Quarantined", node: "n3", quarantine: { reason: "NodeLost", holder } });
const lostMembers = allocation({ state: "Quarantined", quarantine: { reason: "NodeLost", holder }, workload });
const lostUnheld = allocation({ state: "Quarantined", quarantine: { reason: "NodeLost" } });
const heldConflict = allocation({ state: "Quarantined", quarantine: { reason: "Conflict", holder } });
const [otherNamespace, otherPod, otherNic] = [{ namespace: "bank" }, { pod: "web-1" }, { interface: "net1" }].map(
  (other) => allocation({ state: "Bound", holders: [{ ...holder, ...other }] }),
);
const conflict = allocation({ state: "Quarantined", quarantine: { reason: "Conflict" } });
const answered = allocation({ state: "Quarantined", quarantine: { reason: "Conflict", mac: "02:00:00:00:00:07" } });

it.each([
  ["a member's appears", undefined, ofMember, ["n1 unless web-0 is there"]],
  ["one that two pods share appears", undefined, shared, ["n1 unless web-0 is there", "n2 unless web-0 is there"]],
  ["a retained one is a pod's again", kept, ofMember, ["n1 unless web-0 is there"]],
  ["a plain pod's appears", undefined, bound, []],
  ["a retained one appears", undefined, kept, []],
  ["it vanishes", bound, undefined, ["n1 if web-0 is there"]],
  ["it vanishes on demand", forced, undefined, ["n1"]],
  ["it vanishes while two pods share it", shared, undefined, ["n1 if web-0 is there", "n2 if web-0 is there"]],
  ["it cools", bound, cooling, ["n1 if web-0 is there and stays"]],
  ["it is retained", bound, kept, ["n1 if web-0 is there and stays"]],
  ["another node takes it over", bound, moved, ["n1 if web-0 is there and stays"]],
  ["a migrating machine has reached the other node", behind, moved, ["n1 if web-0 is there and stays"]],
  ["a migration has failed: it names the node that stays", shared, moved, ["n1 if web-0 is there and stays", "n2"]],
  ["a machine begins to migrate", bound, behind, []],
  ["nothing that matters changes", bound, bound, []],
  ["its node is taken for lost", bound, lost, ["n1"]],
  ["its node is taken for lost while it migrates", shared, lost, ["n1", "n2"]],
  ["its node finds a conflict", bound, conflict, []],
  ["another node is to probe it", lost, requested, ["n1", "n3"]],
  ["one appears that is to be probed", undefined, conflict, ["n1"]],
  ["one appears that a machine answers for", undefined, answered, []],
  ["no workload retains the lost node's any more, and a machine in its place may probe it", lostMembers, lost, ["n1"]],
  ["the lost node has it again", lost, bound, []],
  ["the lost node has it again from the one that probes", requested, bound, ["n3"]],
  ["the next pod of the member has it from the lost node", lost, moved, ["n1 if web-0 is there and stays", "n1"]],
  ["it is retained for the lost node's member", lost, kept, ["n1 if web-0 is there and stays"]],
  ["the lost node's address is freed", lost, undefined, ["n1", "n1"]],
  ["the node that probes has freed it", requested, undefined, ["n1", "n3"]],
  ["a conflict has ended", conflict, undefined, ["n1"]],
  ["a conflict that names a pod has ended", heldConflict, undefined, ["n1"]],
  ["an address of a lost node that no pod had is freed", lostUnheld, undefined, ["n1"]],
  ["a pod of another namespace has it on the node", bound, otherNamespace, ["n1 if web-0 is there and stays"]],
  ["another pod has it on the node", bound, otherPod, ["n1 if web-0 is there and stays"]],
  ["another NIC of the pod has it", bound, otherNic, ["n1 if web-0 is there and stays"]],
  ["its cooldown is over", cooling, undefined, []],
  ["a cooling address is taken over", cooling, moved, []],
  ["its owner is gone", kept, cooling, []],
  ["one vanishes that was never known", undefined, undefined, []],
  ["the member is back", kept, moved, []],
] as const)("recreate: who is told when %s", (_, before, after, wanted) => {
  const told = planNotices(before, after).map(({ node, pod, ifTerminating, ifAbsent = false }) =>
    pod === undefined
      ? node
      : `${node} ${ifAbsent ? "unless" : "if"} ${pod.pod} is there${ifTerminating ? "" : " and stays"}`,
  );
  expect(told).toEqual(wanted);
});
