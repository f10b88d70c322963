/**
 * A stolen token and one address in up to four writes: a search over all that kinds and policies let through, between
 * specifications with some holders and workloads on two nodes.
 */
import { expect, it } from "vitest";
import { holderOn, OTHER_WORKLOAD, objectOf, WORKLOAD } from "../../../cluster/rights-objects.ts";
import { agentOf, CONTROLLER, type Write, type Writer } from "../../../fakes/admission/admission.ts";
import { BerthAdmission } from "../../../fakes/admission/berth-admission.ts";
import { ALLOCATIONS } from "../../../lab/cluster/objects.ts";
import { searchWrites } from "../../../world/search-writes.ts";

/** While a hook runs. Its role lets it patch and delete allocations, not make any. */
const HOOKS: Writer = { username: "system:serviceaccount:kube-system:berth-hooks" };
const admission = new BerthAdmission();
const foreign = { ...holderOn("b", "u8"), namespace: "evil", pod: "x-0" };
const HOLDERS = { none: undefined, a: holderOn("a"), b: holderOn("b", "u9"), evil: foreign };
const WORKLOADS = { none: undefined, db: WORKLOAD, other: OTHER_WORKLOAD };

/** By name: state, node, owner of the workload, and present or former holder. */
const STATES = new Map<string, Write["object"]>([["absent", undefined]]);
for (const node of ["a", "b"])
  for (const [of, workload] of Object.entries(WORKLOADS))
    for (const [by, holder] of Object.entries(HOLDERS)) {
      const variants = {
        ...(holder === undefined ? { Cooling: {} } : { Bound: { holders: [holder] } }),
        Kept: { lastHolder: holder },
        Conflict: { state: "Quarantined", quarantine: { reason: "Conflict", holder } },
        NodeLost: { state: "Quarantined", quarantine: { reason: "NodeLost", holder } },
      };
      for (const [state, more] of Object.entries(variants)) {
        const object = objectOf("10.6.0.50", { state, node, workload, holders: [], ...more });
        const shaped = admission.shape(ALLOCATIONS, JSON.parse(JSON.stringify(object)), false);
        STATES.set(`${state} ${node} ${of} ${by}`, shaped);
      }
    }

function isAllowed(writer: Writer, from: string, to: string): boolean {
  const [oldObject, object] = [STATES.get(from), STATES.get(to)];
  const operation = oldObject === undefined ? "CREATE" : object === undefined ? "DELETE" : "UPDATE";
  if (writer === HOOKS && operation === "CREATE") return false;
  try {
    admission.admit({ collection: ALLOCATIONS, operation, part: undefined, writer, object, oldObject });
    return true;
  } catch {
    return false;
  }
}

it.each<[what: string, writer: Writer, isBad: (start: string[], reached: string[]) => boolean]>([
  [
    "an agent makes nothing of what another node's pod has of no member that its pods are, and names no other node or pod",
    agentOf("b"),
    ([state = "", node, of = "", by], [, nodeAfter, , byAfter]) =>
      by === "a"
        ? node === "a" && /none|other/.test(of) && state !== "Kept"
        : byAfter === "a" || (nodeAfter === "a" && node === "b"),
  ],
  [
    "the controller gives no address to a pod, and retains none for another workload",
    CONTROLLER,
    ([, , of], [state, , ofAfter]) => state === "Bound" || (state === "Kept" && of !== ofAfter),
  ],
  [
    "the chart's hooks change no address, and delete none in use that is not marked",
    HOOKS,
    ([state], [after]) => state === "Bound" || after !== "absent",
  ],
])("%s", (_, writer, isBad) => {
  const isAllowedTo = (from: string, to: string): boolean => isAllowed(writer, from, to);
  const found = searchWrites([...STATES.keys()], isAllowedTo, (start, to) => isBad(start.split(" "), to.split(" ")));
  expect(found).toEqual([]);
});
