/**
 * The world around a protocol: one address, an API server, two nodes and a replacement of one, pods with their NICs,
 * and all that may go wrong, each as often as a scene says. Its state is a value; its steps are those of all parties.
 */

import { invariantsOf, isAtRest, keyOf } from "./invariants.ts";
import { personSteps, withClaimRecorded, withTamperingEnded } from "./person.ts";
import type { Agent, Answer, Call, Limit, Nic, NodeState, Place, Protocol, Surroundings, Turn } from "./protocol.ts";
import type { Step, System } from "./search.ts";
import {
  type Assumption,
  CONTROLLER,
  changeMachine,
  changePod,
  execute,
  hasAddress,
  isThere,
  MAX_LATE,
  type Machine,
  NO_FAULTS,
  type Pod,
  type Scene,
  spend,
  uidOf,
  type World,
  withoutSandbox,
  withoutSandboxes,
} from "./world-state.ts";

export async function openWorld<Row, Memory, Spec>(
  protocol: Protocol<Row, Memory, Spec>,
  scene: Scene,
  believed: ReadonlySet<Assumption>,
): Promise<System<World<Row, Memory, Spec>>> {
  type State = World<Row, Memory, Spec>;
  type Steps = Step<State>[];

  const empty: State = {
    pods: scene.cast.map((actor) => ({
      ...{ actor, phase: "future", machine: 0, run: 1, wasRefused: false, isElsewhere: false },
    })),
    machines: [],
    ...{ object: undefined, late: [] },
    ...{ faults: { ...NO_FAULTS, ...scene.faults }, isSingle: scene.isSingle ?? false, last: 0 },
    ...{ isMembers: scene.isKept === true, isTampered: false, claimant: "none" },
  };

  function surroundings(state: State, next: () => number): Surroundings<Spec> {
    const nodes = state.machines.flatMap(({ name, link }): [string, NodeState][] =>
      link === "replaced" ? [] : [[name, link === "cut" ? "lost" : link]],
    );
    // The last one of a name has registered under it.
    const machines = new Map(state.machines.map(({ name }, machine) => [name, String(machine)]));
    const isClaimed = state.claimant === "has" || state.claimant === "is recorded";
    return {
      object: state.object,
      isClaimed,
      uidOf: (name) => uidOf(state, name),
      nodes: new Map(nodes),
      machines,
      next,
    };
  }

  /** Runs a turn at a place; twice if the turn probes and a NIC that answers may seem silent. */
  async function at<T>(
    state: State,
    machine: number,
    run: (place: Place<Spec>) => Promise<T>,
  ): Promise<readonly { readonly found: T; readonly last: number; readonly note: string }[]> {
    const { name = "" } = state.machines[machine] ?? {};
    const ofMachine = state.pods.filter((pod) => pod.machine === machine);
    const nics = ofMachine.flatMap(({ sandbox, actor }): Nic[] =>
      sandbox === undefined ? [] : [{ container: sandbox.container, uid: actor.uid, state: sandbox.nic }],
    );
    const others = ofMachine.flatMap(({ actor, isElsewhere, phase }) => (isElsewhere && isThere(phase) ? [actor] : []));
    const isFree = !state.pods.some(({ sandbox }) => hasAddress(sandbox));
    const once = async (isSilent: boolean, note: string) => {
      let { last } = state;
      let hasProbed = false;
      const place: Place<Spec> = {
        ...surroundings(state, () => ++last),
        ...{ node: name, machine: String(machine), nics, others, isSlow: scene.isSlow === true },
        isSilent: () => {
          hasProbed = true;
          return isSilent;
        },
      };
      return { found: await run(place), last, note, hasProbed };
    };
    const first = await once(isFree, "");
    const isEarly = state.pods.some((pod) => pod.sandbox?.nic === "comingUp" && pod.machine !== machine);
    if (first.hasProbed && isEarly && believed.has("comingUp")) return [];
    if (isFree || !first.hasProbed || believed.has("probe")) return [first];
    return [first, await once(true, ", though a NIC has the address")];
  }

  function change(state: State, changes: Partial<State>): State {
    return { ...state, ...changes };
  }

  /** Nothing tells when a comparison comes: it may come at any time. */
  function dueIf(memory: Memory): Memory {
    return believed.has("comparison") ? protocol.told(memory) : memory;
  }

  function withTurn(state: State, machine: number, turn: Turn<Row, Memory, Spec>, last: number): State {
    const { row, answer, fenced } = turn;
    const memory = dueIf(turn.memory);
    const call = turn.call ?? state.machines[machine]?.call;
    let next = change(changeMachine(state, machine, { row, memory, call }), { last });
    for (const pod of next.pods) {
      const { sandbox } = pod;
      if (sandbox === undefined) continue;
      if (fenced.includes(sandbox.container)) next = changePod(next, pod, { sandbox: { ...sandbox, nic: "without" } });
      if (answer?.container !== sandbox.container || sandbox.stage !== "adding") continue;
      const nic = scene.isSlow === true ? "comingUp" : "up";
      if (answer.isBound && pod.actor.isMember) next = change(next, { isMembers: true });
      next = answer.isBound
        ? changePod(next, pod, { sandbox: { ...sandbox, stage: "answered", nic } })
        : changePod(next, pod, { sandbox: undefined, wasRefused: state.faults.elsewhere > 0 });
    }
    return next;
  }

  function isOver(limit: Limit, { late, pods, machines }: State, machine: number): boolean {
    if (!believed.has(limit)) return true;
    if (limit === "patience")
      return !machines.some(
        ({ name, memory, link }) => name === machines[machine]?.name && memory !== undefined && link === "there",
      );
    if (limit === "lateWrite") return !late.some((each) => each.machine === machine);
    if (limit === "comingUp") return !pods.some((pod) => pod.machine === machine && pod.sandbox?.nic === "comingUp");
    return !pods.some(({ sandbox }) => sandbox?.stage === "released" && hasAddress(sandbox));
  }

  function agentOf({ row, memory }: Machine<Row, Memory, Spec>): Agent<Row, Memory> | undefined {
    return memory === undefined ? undefined : { row, memory };
  }

  /** Carries out the outcomes of an agent's write. */
  async function callSteps(state: State, machine: number, agent: Agent<Row, Memory>, call: Call<Spec>): Promise<Steps> {
    const { name = "" } = state.machines[machine] ?? {};
    const steps: Steps = [];
    const receive = async (from: State, answer: Answer<Spec>, label: string, isCalm: boolean): Promise<void> => {
      for (const { found, last, note } of await at(from, machine, (place) => protocol.answered(agent, answer, place))) {
        const isKept = answer.kind === "unanswered" && answer.isRetried;
        const cleared = isKept ? from : changeMachine(from, machine, { call: undefined });
        steps.push({ label: `${label}${found.label}${note}`, next: withTurn(cleared, machine, found, last), isCalm });
      }
    };
    const { next, answer } = execute(state, call);
    await receive(next, answer, `${name}: ${call.kind} is ${answer.kind}`, true);
    if (state.faults.unanswered === 0) return steps;
    const spent = spend(state, "unanswered");
    for (const isRetried of [false, true]) {
      const unanswered = { kind: "unanswered", isRetried } as const;
      const end = isRetried ? "; the client tries again" : "; it gives up";
      const { next: done, answer: real } = execute(spent, call);
      if (real.kind === "written")
        await receive(done, unanswered, `${name}: ${call.kind} is carried out, the answer lost${end}`, false);
      if (spent.late.length >= MAX_LATE) continue;
      const late = change(spent, { late: [...spent.late, { machine, call }] });
      await receive(late, unanswered, `${name}: ${call.kind} has no answer, and is late${end}`, false);
    }
    return steps;
  }

  async function machineSteps(state: State, machine: number): Promise<Steps> {
    const found = state.machines[machine];
    if (found === undefined || found.link === "replaced") return [];
    const { name, link, call, row, copy } = found;
    const { faults } = state;
    if (link === "cut" || link === "off") return cutSteps(state, machine);
    const agent = agentOf(found);
    if (agent === undefined) return startSteps(state, machine);
    const steps: Steps = [];
    for (const { found: turns, last, note } of await at(state, machine, (place) => protocol.own(agent, place)))
      for (const turn of turns)
        if (turn.waitsFor === undefined || isOver(turn.waitsFor, state, machine))
          steps.push({
            label: `${name}: ${turn.label}${note}`,
            next: withTurn(state, machine, turn, last),
            isCalm: true,
          });
    if (call !== undefined) steps.push(...(await callSteps(state, machine, agent, call)));
    const isComingUp = state.pods.some((pod) => pod.machine === machine && pod.sandbox?.nic === "comingUp");
    const mayBeKilled = faults.kill > 0 && !(isComingUp && believed.has("attaching"));
    const hasRoom = call === undefined || state.late.length < MAX_LATE;
    if (mayBeKilled && hasRoom) {
      let next = killed(spend(state, "kill"), machine);
      for (const pod of next.pods)
        if (pod.machine === machine && pod.sandbox?.stage === "adding")
          next = changePod(next, pod, { sandbox: undefined });
      steps.push({ label: `${name}: the agent is killed`, next, isCalm: false });
    }
    if (faults.reboot > 0 && hasRoom) {
      const next = withoutSandboxes(killed(spend(state, "reboot"), machine), machine);
      steps.push({ label: `${name}: the machine boots`, next, isCalm: false });
    }
    if (faults.journalOld > 0 && copy === undefined && faults.kill > 0 && isOfJournal(row, call))
      steps.push({
        label: `${name}: the journal is copied`,
        next: changeMachine(state, machine, { copy: { row } }),
        isCalm: false,
      });
    if (faults.cut > 0)
      steps.push({
        label: `${name}: the machine loses the API server`,
        next: spend(changeMachine(state, machine, { link: "cut" }), "cut"),
        isCalm: false,
      });
    return steps;
  }

  function killed(state: State, machine: number): State {
    const { call } = state.machines[machine] ?? {};
    const ended = changeMachine(state, machine, { memory: undefined, call: undefined });
    return call === undefined ? ended : change(ended, { late: [...ended.late, { machine, call }] });
  }

  function startSteps(state: State, machine: number): Steps {
    const { name = "", row, copy } = state.machines[machine] ?? {};
    const start = (from: State, given: Row | undefined, label: string, isCalm: boolean): Step<State> => {
      const memory = dueIf(protocol.start(given, name));
      return { label: `${name}: ${label}`, next: changeMachine(from, machine, { row: given, memory }), isCalm };
    };
    const steps = [start(state, row, "the agent starts", true)];
    const isLoss = row !== undefined && state.faults.journalLost > 0;
    if (isLoss)
      steps.push(start(spend(state, "journalLost"), undefined, "the agent starts without its journal", false));
    if (copy !== undefined && state.faults.journalOld > 0)
      steps.push(start(spend(state, "journalOld"), copy.row, "the agent starts with the copy of its journal", false));
    return steps;
  }

  function cutSteps(state: State, machine: number): Steps {
    const { name = "", link } = state.machines[machine] ?? {};
    const ofMachine = state.pods.filter((pod) => pod.machine === machine && pod.phase !== "future");
    const steps: Steps = [];
    if (link === "off") return steps;
    if (state.faults.taint > 0) {
      let next = changeMachine(spend(state, "taint"), machine, { link: "off" });
      if (believed.has("outOfService")) next = withoutSandboxes(next, machine);
      // The cluster deletes the pods of such a node.
      for (const pod of next.pods)
        if (pod.machine === machine && isThere(pod.phase)) next = changePod(next, pod, { phase: "gone" });
      steps.push({ label: `${name}: the node is tainted as out of service`, next, isCalm: false });
    }
    const isAlone =
      state.late.length === 0 && state.machines.every(({ call }, other) => other === machine || call === undefined);
    if (isAlone || !believed.has("comeBack"))
      steps.push({
        label: `${name}: the machine has the API server again`,
        next: changeMachine(state, machine, { link: "there" }),
        isCalm: true,
      });
    if (state.faults.replace === 0 || ofMachine.some(({ phase }) => isThere(phase))) return steps;
    let next = spend(changeMachine(state, machine, { link: "replaced" }), "replace");
    // A machine that is off has no NICs.
    if (believed.has("nodeName")) for (const pod of ofMachine) next = changePod(next, pod, { sandbox: undefined });
    const other = { name, link: "there", row: undefined, memory: undefined } as const;
    const label = `${name}: another machine gets the node's name${believed.has("nodeName") ? ", and this one is off" : ""}`;
    steps.push({ label, next: change(next, { machines: [...next.machines, other] }), isCalm: false });
    return steps;
  }

  async function podSteps(state: State, pod: Pod): Promise<Steps> {
    const { actor, phase, sandbox, machine, run } = pod;
    const { uid, node, name } = actor;
    const { faults } = state;
    const steps: Steps = [];
    const step = (label: string, next: State, isCalm: boolean): void => void steps.push({ label, next, isCalm });
    if (phase === "future") {
      const own = state.machines.findLastIndex((each) => each.name === node && each.link === "there");
      const isFirst = state.pods.every((each) => each.phase === "future");
      if (scene.isMachine && !isFirst && !state.isMembers && believed.has("migration")) return steps;
      if (own >= 0 && uidOf(state, name) === undefined)
        step(`pod ${uid} is created on ${node}`, changePod(state, pod, { phase: "present", machine: own }), false);
      return steps;
    }
    const found = state.machines[machine];
    const agent = found === undefined ? undefined : agentOf(found);
    const isServed = found?.link === "there" && agent !== undefined;
    if (phase === "present") {
      step(`pod ${uid} is deleted`, changePod(state, pod, { phase: "deleting" }), false);
      if (faults.forceDelete > 0 && sandbox !== undefined)
        step(`pod ${uid} is deleted by force`, spend(changePod(state, pod, { phase: "gone" }), "forceDelete"), false);
      const { row } = state.machines[machine] ?? {};
      const isBoundHere = row !== undefined && protocol.holderOf(row) === uid;
      if (sandbox === undefined && pod.wasRefused && !isBoundHere && faults.elsewhere > 0)
        step(
          `pod ${uid} gets another address`,
          spend(changePod(state, pod, { isElsewhere: true }), "elsewhere"),
          false,
        );
    }
    if (sandbox === undefined) {
      if (phase === "deleting" && found?.link !== "cut")
        step(`pod ${uid} is gone`, changePod(state, pod, { phase: "gone" }), true);
      if (phase !== "present" || pod.isElsewhere || !isServed) return steps;
      if (state.isTampered && believed.has("recreated")) return steps;
      const container = `${uid}.${run}`;
      const ask = { pod: actor, container };
      const adding = changePod(state, pod, { sandbox: { container, stage: "adding", nic: "without" } });
      for (const { found: turn, last, note } of await at(adding, machine, (place) => protocol.add(agent, ask, place)))
        if (turn !== undefined && (turn.waitsFor === undefined || isOver(turn.waitsFor, state, machine)))
          step(`${node}: ${turn.label}${note}`, withTurn(adding, machine, turn, last), true);
      return steps;
    }
    if (sandbox.nic === "comingUp")
      step(`the NIC of ${uid} comes up`, changePod(state, pod, { sandbox: { ...sandbox, nic: "up" } }), true);
    if (sandbox.stage === "released") step(`the NIC of ${uid} goes`, withoutSandbox(state, pod), true);
    if (sandbox.stage !== "answered") return steps;
    const isMoving = (assumption: Assumption) => !believed.has(assumption) && sandbox.nic === "up";
    if (isMoving("linkName"))
      step(`pod ${uid} renames its NIC`, changePod(state, pod, { sandbox: { ...sandbox, nic: "renamed" } }), false);
    if (isMoving("netnsPath"))
      step(
        `the netns path of ${uid} is used again`,
        changePod(state, pod, { sandbox: { ...sandbox, nic: "moved" } }),
        false,
      );
    const isRestart = phase === "present";
    if (!isServed || (isRestart && faults.restart === 0)) return steps;
    const asked = isRestart ? spend(state, "restart") : state;
    for (const { found: turn, last, note } of await at(asked, machine, (place) =>
      protocol.release(agent, sandbox.container, place),
    )) {
      const released = withTurn(asked, machine, turn, last);
      const isGone = believed.has("teardown") && actor.isMember;
      const next = isGone
        ? withoutSandbox(released, pod)
        : changePod(released, pod, { sandbox: { ...sandbox, stage: "released" } });
      step(`${node}: ${turn.label}${note}`, next, !isRestart);
    }
    return steps;
  }

  function controllerSteps(state: State): Steps {
    const { controlCall, faults, late } = state;
    const steps: Steps = [];
    if (controlCall !== undefined) {
      const { next, answer } = execute(state, controlCall);
      const label = `controller: ${controlCall.kind} is ${answer.kind}`;
      steps.push({ label, next: change(next, { controlCall: undefined }), isCalm: true });
      if (faults.unanswered === 0 || late.length >= MAX_LATE) return steps;
      const spent = change(spend(state, "unanswered"), { late: [...late, { machine: CONTROLLER, call: controlCall }] });
      const ended = change(spent, { controlCall: undefined });
      steps.push({ label: `controller: ${controlCall.kind} has no answer, and is late`, next: ended, isCalm: false });
      return steps;
    }
    for (const { label, node, call, told, waitsFor } of protocol.control(surroundings(state, () => 0))) {
      const of = state.machines.findLastIndex(({ name }) => name === node);
      if (!waitsFor.every((limit) => isOver(limit, state, of))) continue;
      let next = change(state, { controlCall: call });
      for (const [index, { name, memory, link }] of state.machines.entries())
        if (memory !== undefined && link === "there" && told.includes(name))
          next = changeMachine(next, index, { memory: protocol.told(memory) });
      steps.push({ label: `controller: ${label}`, next, isCalm: true });
    }
    return steps;
  }

  async function steps(state: State): Promise<Steps> {
    const all = personSteps(protocol, believed, state);
    for (const pod of state.pods) all.push(...(await podSteps(state, pod)));
    for (const machine of state.machines.keys()) all.push(...(await machineSteps(state, machine)));
    all.push(...controllerSteps(state));
    for (const [index, { machine, call }] of state.late.entries()) {
      const from = change(state, { late: state.late.filter((_, at) => at !== index) });
      const { next, answer } = execute(from, call);
      const sender = state.machines[machine]?.name ?? "controller";
      all.push({ label: `the late ${call.kind} of ${sender} arrives: ${answer.kind}`, next, isCalm: true });
    }
    return all.map((step) => withClaimRecorded(protocol, withTamperingEnded(protocol, step)));
  }

  /** The agents have started and compared before anything happens. */
  async function start(): Promise<State> {
    const machines = ["a", "b"].map((name): Machine<Row, Memory, Spec> => {
      return { name, link: "there", row: undefined, memory: protocol.start(undefined, name) };
    });
    const [member] = scene.cast;
    const kept =
      scene.isKept === true && member !== undefined ? { uid: 1, version: 2, spec: protocol.kept(member) } : undefined;
    let state: State = { ...empty, machines, object: kept, last: 2 };
    for (const [machine, found] of machines.entries()) {
      const agent = agentOf(found);
      if (agent === undefined) continue;
      for (const { found: turns, last } of await at(state, machine, (place) => protocol.own(agent, place)))
        for (const turn of turns) state = withTurn(state, machine, turn, last);
    }
    return state;
  }

  return {
    initial: await start(),
    steps,
    key: (state) => keyOf(protocol, state),
    isAtRest: (state) => isAtRest(protocol, state),
    invariants: invariantsOf(protocol, scene),
  };
}

/** A journal is copied once it says something. */
function isOfJournal(row: unknown, call: unknown): boolean {
  return row !== undefined && call === undefined;
}
