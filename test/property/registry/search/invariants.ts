/** Invariants of every state of a world, and the key by which states count as one. */
import type { Call, Protocol } from "./protocol.ts";
import type { System } from "./search.ts";
import { hasAddress, isThere, type Machine, type Pod, type Scene, type World } from "./world-state.ts";

export function invariantsOf<Row, Memory, Spec>(
  protocol: Protocol<Row, Memory, Spec>,
  { isMachine }: Scene,
): System<World<Row, Memory, Spec>>["invariants"] {
  return {
    "one NIC": ({ pods, object }) => {
      const having = pods.filter(({ sandbox }) => hasAddress(sandbox)).map(({ actor }) => actor.uid);
      const { holders = [] } = object === undefined ? {} : protocol.view(object.spec);
      const isMigration = isMachine === true && having.every((uid) => holders.includes(uid));
      return having.length > 1 && !isMigration ? `the NICs of ${having.join(" and ")} have the address` : undefined;
    },
    recorded: (state) => {
      const wrong = state.isTampered ? undefined : findUnrecorded(protocol, state);
      const found = describeObject(protocol, state);
      return wrong === undefined ? undefined : `pod ${wrong.actor.uid} was answered, and the object is ${found}`;
    },
    claimed: (state) => {
      const { object, claimant } = state;
      const isClaimed = object !== undefined && protocol.view(object.spec).isClaimed;
      return claimant === "is recorded" && !isClaimed
        ? `the Service's address is ${describeObject(protocol, state)}`
        : undefined;
    },
    retained: (state) => {
      const { object, isMembers } = state;
      const isRetained = object !== undefined && protocol.view(object.spec).isRetained;
      return isMembers && !isRetained ? `the member's address is ${describeObject(protocol, state)}` : undefined;
    },
  };
}

/** Returns a pod that was answered, and whose record does not say so. */
export function findUnrecorded<Row, Memory, Spec>(
  protocol: Protocol<Row, Memory, Spec>,
  { pods, object }: World<Row, Memory, Spec>,
): Pod | undefined {
  const view = object === undefined ? undefined : protocol.view(object.spec);
  const isRecorded = ({ actor }: Pod): boolean => view?.state === "Bound" && view.holders.includes(actor.uid);
  return pods.find((pod) => isThere(pod.phase) && pod.sandbox?.stage === "answered" && !isRecorded(pod));
}

function describeObject<Row, Memory, Spec>(
  protocol: Protocol<Row, Memory, Spec>,
  { object }: World<Row, Memory, Spec>,
): string {
  const view = object === undefined ? undefined : protocol.view(object.spec);
  return view === undefined ? "absent" : `${view.state} ${view.holders.join()}`;
}

/** The address is free, or explained by a live owner, a retention or a machine that answers for it. */
export function isAtRest<Row, Memory, Spec>(
  protocol: Protocol<Row, Memory, Spec>,
  { object, pods, machines, controlCall, claimant }: World<Row, Memory, Spec>,
): boolean {
  if (controlCall !== undefined) return false;
  const view = object === undefined ? undefined : protocol.view(object.spec);
  const isLive = (uid: string): boolean =>
    pods.some(({ actor, sandbox }) => actor.uid === uid && sandbox?.stage === "answered" && sandbox.nic !== "without");
  const isAnswered = pods.some(({ sandbox }) => hasAddress(sandbox));
  if (view?.state === "Bound" && !view.holders.every(isLive)) return false;
  if (view === undefined ? claimant === "has" : view.isClaimed && claimant !== "is recorded") return false;
  // An address of a machine whose name another one has waits for the member's next pod, which probes.
  const isAwaited = view?.isRetained === true && machines.some(({ link }) => link === "replaced");
  if (view?.state === "Cooling" || (view?.state === "Quarantined" && !isAnswered && !isAwaited)) return false;
  const isAgreed = ({ link, memory, row, call }: Machine<Row, Memory, Spec>): boolean => {
    if (link !== "there") return true;
    if (memory === undefined || call !== undefined) return false;
    if (row === undefined) return true;
    const holder = protocol.holderOf(row);
    return holder === undefined ? view?.state === "Quarantined" : view?.holders.includes(holder) === true;
  };
  const isRecorded = view?.holders.every((uid) => {
    const { machine = 0 } = pods.find(({ actor }) => actor.uid === uid) ?? {};
    const { row, link } = machines[machine] ?? {};
    return link !== "there" || (row !== undefined && protocol.holderOf(row) === uid);
  });
  const isWaiting = ({ phase, sandbox, isElsewhere, actor }: Pod): boolean =>
    phase === "present" &&
    sandbox === undefined &&
    !isElsewhere &&
    (view === undefined ||
      (actor.isMember &&
        ((view.state === "Kept" && view.isRetained) || (view.state === "Quarantined" && !isAnswered))));
  return isRecorded !== false && machines.every(isAgreed) && !pods.some(isWaiting);
}

/** Returns the same text for states that differ in numbers alone. */
export function keyOf<Row, Memory, Spec>(
  protocol: Protocol<Row, Memory, Spec>,
  state: World<Row, Memory, Spec>,
): string {
  const { pods, machines, object, etcdCopy, late, controlCall, faults, isMembers, isTampered, claimant } = state;
  const keyOfCall = (call: Call<Spec> | undefined): string => {
    if (call === undefined) return "";
    const spec = call.kind === "delete" ? "" : protocol.key.spec(call.spec);
    return `${call.kind}${call.kind === "create" ? "" : ` #${call.before.uid} #${call.before.version}`} ${spec}`;
  };
  const keyOfObject = (stored: typeof object): string =>
    stored === undefined ? "-" : `#${stored.uid} #${stored.version} ${protocol.key.spec(stored.spec)}`;
  const keyOfRow = (row: Row | undefined): string => (row === undefined ? "-" : protocol.key.row(row));
  const parts = [
    ...pods.map(
      ({ phase, machine, run, sandbox, wasRefused, isElsewhere }) =>
        `${phase}${machine}${run}${sandbox?.stage}${sandbox?.nic}${wasRefused}${isElsewhere}`,
    ),
    ...machines.map(
      ({ link, row, memory, call, copy }) =>
        `${link} ${keyOfRow(row)} ${memory === undefined ? "-" : protocol.key.memory(memory, row)} ${keyOfCall(call)} ${copy === undefined ? "" : keyOfRow(copy.row)}`,
    ),
    keyOfObject(object),
    ...late.map(({ machine, call }) => `${machine} ${keyOfCall(call)}`).sort(),
    keyOfCall(controlCall),
    etcdCopy === undefined ? "-" : `${etcdCopy.phases.join()} ${keyOfObject(etcdCopy.object)}`,
    [...Object.values(faults), isMembers, isTampered, claimant].join(),
  ];
  return withRanks(parts.join("\n"));
}

/** Replaces each number after a `#` by its rank: states differ by the order of versions, not by the versions. */
function withRanks(text: string): string {
  const [first, ...rest] = text.split("#");
  const numbers = rest.map((each) => Number.parseInt(each, 10));
  const sorted = [...new Set(numbers)].sort((a, b) => a - b);
  return rest.reduce(
    (all, each, index) => `${all}#${sorted.indexOf(numbers[index] ?? 0)}${each.slice(`${numbers[index]}`.length)}`,
    first ?? "",
  );
}
