/** People's changes of the records: the object is deleted by hand, or etcd is restored to an older state. */
import { findUnrecorded } from "./invariants.ts";
import type { Protocol } from "./protocol.ts";
import type { Step } from "./search.ts";
import { type Assumption, hasAddress, type Pod, spend, type World } from "./world-state.ts";

/** A person deletes the object, or restores etcd. */
export function personSteps<Row, Memory, Spec>(
  protocol: Protocol<Row, Memory, Spec>,
  believed: ReadonlySet<Assumption>,
  state: World<Row, Memory, Spec>,
): Step<World<Row, Memory, Spec>>[] {
  const { object, etcdCopy, faults, machines, pods, late, claimant } = state;
  const tampered = { isTampered: true, isMembers: false };
  const steps: Step<typeof state>[] = [];
  const step = (label: string, next: typeof state): void => void steps.push({ label, next, isCalm: false });
  const isAsking =
    pods.some(({ sandbox }) => sandbox?.stage === "adding") ||
    machines.some(({ call }) => call !== undefined) ||
    late.length > 0;
  if (faults.handDelete > 0 && object !== undefined && !(believed.has("recreated") && isAsking))
    step("a person deletes the object", { ...spend(state, "handDelete"), object: undefined, ...tampered });
  if (faults.claim > 0 && claimant !== "gone")
    step("a Service says that it has it", { ...spend(state, "claim"), claimant: claimant === "none" ? "has" : "gone" });
  if (faults.restore === 0) return steps;
  if (etcdCopy === undefined && object !== undefined)
    step("etcd is copied", { ...state, etcdCopy: { object, phases: pods.map(({ phase }) => phase) } });
  if (etcdCopy === undefined) return steps;
  const restored = restore(spend(state, "restore"), etcdCopy);
  const { holders = [] } = restored.object === undefined ? {} : protocol.view(restored.object.spec);
  const isWhole = !isAsking && pods.every(({ actor, sandbox }) => !hasAddress(sandbox) || holders.includes(actor.uid));
  const next = { ...restored, ...tampered };
  const startOver = (machine: (typeof machines)[number]): typeof machine =>
    machine.memory === undefined ? machine : { ...machine, memory: protocol.start(machine.row, machine.name) };
  if (!believed.has("restored")) step("etcd is restored to the copy", next);
  else if (isWhole) step("etcd is restored to the copy", { ...next, machines: machines.map(startOver) });
  return steps;
}

/** Pods that were made since are gone from the API server, those that have gone are back. */
function restore<Row, Memory, Spec>(
  state: World<Row, Memory, Spec>,
  { object, phases }: NonNullable<World<Row, Memory, Spec>["etcdCopy"]>,
): World<Row, Memory, Spec> {
  const pods = state.pods.map((pod, index): Pod => {
    const phase = phases[index] ?? pod.phase;
    const isNew = phase === "future" && pod.phase !== "future";
    return { ...pod, phase: isNew ? "gone" : phase };
  });
  return { ...state, object, pods, etcdCopy: undefined };
}

/** The record says that it is the Service's. */
export function withClaimRecorded<Row, Memory, Spec>(
  { view }: Pick<Protocol<Row, Memory, Spec>, "view">,
  step: Step<World<Row, Memory, Spec>>,
): Step<World<Row, Memory, Spec>> {
  const { object, claimant } = step.next;
  if (claimant !== "has" || object === undefined || !view(object.spec).isClaimed) return step;
  return { ...step, next: { ...step.next, claimant: "is recorded" } };
}

/** The record may be right again; one of a NIC that was released, and is still there, is not made again. */
export function withTamperingEnded<Row, Memory, Spec>(
  protocol: Protocol<Row, Memory, Spec>,
  step: Step<World<Row, Memory, Spec>>,
): Step<World<Row, Memory, Spec>> {
  const { next } = step;
  const isGoing = next.pods.some(({ sandbox }) => sandbox?.stage === "released" && hasAddress(sandbox));
  const isRight = next.isTampered && !isGoing && findUnrecorded(protocol, next) === undefined;
  return isRight ? { ...step, next: { ...next, isTampered: false } } : step;
}
