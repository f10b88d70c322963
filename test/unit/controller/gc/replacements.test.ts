import { expect, it } from "vitest";
import { isReplacement, Replacements } from "../../../../host/controller/gc/replacements.ts";
import type { IpAllocation, IpAllocationSpec } from "../../../../host/resources/ip-allocation.ts";
import { allocation } from "../conditions/judged.ts";

const WEB = { kind: "StatefulSet", namespace: "shop", name: "web", uid: "w1", member: "web-0" };
const OLD = { namespace: "shop", pod: "web-0", podUid: "u1", ifName: "eth0", node: "n1" };
const NEW = { ...OLD, podUid: "u2", node: "n2" };

const quarantine = { reason: "NodeLost", mac: "", parent: "", holder: { ...OLD, machine: "old" } } as const;
const lost = allocation("10.6.0.1", "blue", "Quarantined", { workload: WEB, quarantine });
const other = (more: Partial<IpAllocationSpec> = {}, address = "10.7.0.1"): IpAllocation =>
  allocation(address, "green", "Bound", { workload: WEB, node: "n2", holders: [NEW], ...more });

it.each<[title: string, one: IpAllocation, isSo: boolean]>([
  ["bound to the member's pod elsewhere", other(), true],
  ["of a machine that has been on the lost node, too", other({ holders: [{ ...NEW, node: "n1" }, NEW] }), true],
  ["the same address", other({}, "10.6.0.1"), false],
  ["of the other family", other({}, "fd00::1"), false],
  ["for another NIC", other({ holders: [{ ...NEW, ifName: "net1" }] }), false],
  ["on the lost node", other({ holders: [OLD] }), false],
  ["on another machine with the lost node's name", other({ holders: [{ ...OLD, machine: "new" }] }), true],
  ["on the lost machine", other({ holders: [{ ...OLD, machine: "old" }] }), false],
  ["of another member", other({ workload: { ...WEB, member: "web-1" } }), false],
  ["of a set of the same name in another namespace", other({ workload: { ...WEB, namespace: "lab" } }), false],
  ["kept", other({ state: "Kept" }), false],
  ["about to be deleted", { ...other(), deleting: true }, false],
])("an address in place of one of a lost node: %s", (_, one, isSo) => {
  expect(isReplacement(lost, one)).toBe(isSo);
  const items = new Map([lost, one].map((each) => [each.name, each]));
  const caches = { allocations: { items, subscribe: () => () => {}, problems: [] } };
  expect(new Replacements(caches).find(lost)).toEqual(isSo ? [one.name] : []);
});

it("an address kept for one NIC is not replaced by another NIC's, whichever the holder was", () => {
  const kept = { ...lost, spec: { ...lost.spec, workload: { ...WEB, ifName: "net1" } } };
  expect(isReplacement(kept, other())).toBe(false);
  expect(isReplacement(kept, other({ holders: [{ ...NEW, ifName: "net1" }] }))).toBe(true);
});
