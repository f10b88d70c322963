/** The state of the world around a protocol, as a value, and its changes. */
import type { Answer, Call, NicState, PodName, Stored } from "./protocol.ts";

/** Assumptions of the search: steps that contradict them do not happen. */
export const ASSUMPTIONS = {
  lateWrite: "LOOK_AGAIN_MS: a write is carried out before its name is looked at for the last time, or never",
  cooldown: "cooldown: a released NIC is gone before its address is free",
  rest: "two seconds of rest: a released NIC is gone before its address is taken over",
  teardown: "a member's released NIC is gone before the next one has the address",
  comingUp: "NIC_COMING_UP_MS: an answered NIC has its address within it",
  probe: "the second of a probe: a NIC that has the address answers",
  comeBack: "a lost node does not come back while another node's write is under way",
  attaching: "the agent is not killed while a NIC comes up: it forgets that it does",
  patience: "the controller waits longer than a running agent needs",
  comparison: "RECONCILE_ALL_MS: an agent compares all objects of its node now and then",
  nodeName: "node name: another machine has it only when the first one is off",
  linkName: "link name: the address stays on the link that the ADD named",
  migration: "migration: a machine's second launcher comes when the first one has the address",
  outOfService: "out-of-service taint: the machine is off",
  recreated: "recreate: a record that was deleted by hand is back before another pod asks",
  restored: "an etcd is restored only to a state with the records of all NICs, and agents compare before the next ADD",
  netnsPath: "netns path: it leads to the pod's netns as long as that exists",
} as const;

export type Assumption = keyof typeof ASSUMPTIONS;

/** Most times that each fault may happen. */
export interface Faults {
  /** An agent ends. */
  readonly kill: number;
  /** An agent starts with an empty journal, or with a copy. */
  readonly journalLost: number;
  readonly journalOld: number;
  /** A write has no answer. */
  readonly unanswered: number;
  /** A pod's object is deleted while its sandbox runs. */
  readonly forceDelete: number;
  /** A machine loses the API server, not the segment. */
  readonly cut: number;
  /** Another machine gets a cut machine's name. */
  readonly replace: number;
  /** A kubelet restarts a sandbox. */
  readonly restart: number;
  /** A refused pod gets another address. */
  readonly elsewhere: number;
  /** A machine boots: its sandboxes are gone. */
  readonly reboot: number;
  /** An administrator taints the node of a cut machine as out of service. */
  readonly taint: number;
  /** A person deletes the object. */
  readonly handDelete: number;
  /** etcd is restored to an older state, with its pods and resource versions. */
  readonly restore: number;
  /** A Service says that it has the address, or is gone. */
  readonly claim: number;
}

export const NO_FAULTS: Faults = {
  ...{ kill: 0, journalLost: 0, journalOld: 0, unanswered: 0, forceDelete: 0, cut: 0, replace: 0, restart: 0 },
  ...{ elsewhere: 0, reboot: 0, taint: 0, handDelete: 0, restore: 0, claim: 0 },
};

export interface Actor extends PodName {
  readonly node: "a" | "b";
}

export interface Scene {
  readonly cast: readonly Actor[];
  readonly faults: Partial<Faults>;
  /** Main plugins take a while until a NIC has its address. */
  readonly isSlow?: boolean;
  /** One fault of all. */
  readonly isSingle?: boolean;
  /** The record is there before the member's first pod. */
  readonly isKept?: boolean;
  /** Members are launchers of a virtual machine, which migrates from one to the other. */
  readonly isMachine?: boolean;
}

/** Most writes that were given up and may still be carried out. */
export const MAX_LATE = 2;

export interface Sandbox {
  readonly container: string;
  readonly stage: "adding" | "answered" | "released";
  readonly nic: NicState;
}

export interface Pod {
  readonly actor: Actor;
  readonly phase: "future" | "present" | "deleting" | "gone";
  readonly machine: number;
  /** Number of its sandbox. */
  readonly run: number;
  readonly sandbox?: Sandbox | undefined;
  readonly wasRefused: boolean;
  readonly isElsewhere: boolean;
}

export interface Machine<Row, Memory, Spec> {
  readonly name: string;
  readonly link: "there" | "cut" | "off" | "replaced";
  readonly row: Row | undefined;
  /** Undefined while no agent runs. */
  readonly memory: Memory | undefined;
  readonly call?: Call<Spec> | undefined;
  readonly copy?: { readonly row: Row | undefined } | undefined;
}

export interface World<Row, Memory, Spec> {
  readonly pods: readonly Pod[];
  readonly machines: readonly Machine<Row, Memory, Spec>[];
  readonly object: Stored<Spec> | undefined;
  readonly late: readonly { readonly machine: number; readonly call: Call<Spec> }[];
  readonly controlCall?: Call<Spec> | undefined;
  readonly faults: Faults;
  readonly isSingle: boolean;
  /** The member has been answered with the address, or it was kept for it. */
  readonly isMembers: boolean;
  /** Whether the Service says that it has the address, and whether the record has said so, too. */
  readonly claimant: "none" | "has" | "is recorded" | "gone";
  /** The object was deleted by hand, or restored, and the record is not right again. */
  readonly isTampered: boolean;
  readonly etcdCopy?:
    | { readonly object: Stored<Spec> | undefined; readonly phases: readonly Pod["phase"][] }
    | undefined;
  /** The last number that was given out. */
  readonly last: number;
}

/** A machine number for the controller's calls. */
export const CONTROLLER = -1;

export function uidOf({ pods }: { readonly pods: readonly Pod[] }, name: string): string | undefined {
  return pods.find(({ actor, phase }) => actor.name === name && isThere(phase))?.actor.uid;
}

export function changeMachine<Row, Memory, Spec>(
  state: World<Row, Memory, Spec>,
  at: number,
  changes: Partial<Machine<Row, Memory, Spec>>,
): World<Row, Memory, Spec> {
  return { ...state, machines: state.machines.map((each, index) => (index === at ? { ...each, ...changes } : each)) };
}

export function changePod<S extends { readonly pods: readonly Pod[] }>(state: S, pod: Pod, changes: Partial<Pod>): S {
  const { uid } = pod.actor;
  return { ...state, pods: state.pods.map((each) => (each.actor.uid === uid ? { ...each, ...changes } : each)) };
}

/** The fault happens. */
export function spend<S extends { readonly faults: Faults; readonly isSingle: boolean }>(
  state: S,
  fault: keyof Faults,
): S {
  const faults = state.isSingle ? NO_FAULTS : { ...state.faults, [fault]: state.faults[fault] - 1 };
  return { ...state, faults };
}

/** Its netns is gone. */
export function withoutSandbox<S extends { readonly pods: readonly Pod[] }>(state: S, pod: Pod): S {
  const phase = pod.phase === "deleting" ? "gone" : pod.phase;
  return changePod(state, pod, { sandbox: undefined, phase, run: phase === "gone" ? pod.run : pod.run + 1 });
}

/** As a machine that is off. */
export function withoutSandboxes<S extends { readonly pods: readonly Pod[] }>(state: S, machine: number): S {
  const all = state.pods.filter((pod) => pod.machine === machine && pod.sandbox !== undefined);
  return all.reduce((left, pod) => withoutSandbox(left, pod), state);
}

interface Executed<Row, Memory, Spec> {
  readonly next: World<Row, Memory, Spec>;
  readonly answer: Answer<Spec>;
}

/** The API server carries out the call, if its precondition holds. */
export function execute<Row, Memory, Spec>(
  state: World<Row, Memory, Spec>,
  call: Call<Spec>,
): Executed<Row, Memory, Spec> {
  const { object, last } = state;
  const isMet = call.kind === "create" ? object === undefined : isSame(object, call.before);
  if (!isMet) return { next: state, answer: { kind: "refused" } };
  if (call.kind === "delete")
    return { next: { ...state, object: undefined }, answer: { kind: "written", object: undefined } };
  const version = last + 2;
  const uid = call.kind === "create" ? last + 1 : call.before.uid;
  const written = { uid, version, spec: call.spec };
  return {
    next: { ...state, object: written, last: version },
    answer: { kind: "written", object: written },
  };
}

export function isThere(phase: Pod["phase"]): boolean {
  return phase === "present" || phase === "deleting";
}

export function hasAddress(sandbox: Sandbox | undefined): boolean {
  return sandbox !== undefined && sandbox.nic !== "comingUp" && sandbox.nic !== "without";
}

function isSame<Spec>(object: Stored<Spec> | undefined, before: Pick<Stored<Spec>, "uid" | "version">): boolean {
  return object?.uid === before.uid && object.version === before.version;
}
