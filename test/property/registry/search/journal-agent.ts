/**
 * Berth's agent for the search: every decision is the product's own function. Only the order is written here, in which
 * object-sync.ts, cluster-claim.ts, reconciler.ts and collector.ts ask them, with one write to the API server at a
 * time.
 */
import { type FenceDeps, fenceOrphan, type NicAccess } from "../../../../host/agent/fences/orphan-nics.ts";
import {
  decideOrphanObject,
  isOlderThan,
  isReportedLost,
  needsPublishing,
} from "../../../../host/agent/reconcile/plan-reconciliation.ts";
import { decideLeak, isOrphan, mayLeak, type NetnsStatus, type PodStatus } from "../../../../host/ipam/leak.ts";
import { mayBeShared, type NodeStatus } from "../../../../host/ipam/retention.ts";
import { claimAfter, claimOver, isNewClaim, renewClaim } from "../../../../host/registry/claims.ts";
import { type Adoption, UNKNOWN_CONTAINER } from "../../../../host/registry/journal.ts";
import { AddressStates, isLater, isProber } from "../../../../host/registry/kubernetes/address-states.ts";
import {
  decide,
  type LiveStatus,
  type ResolvedAction,
  reclaim,
  recover,
  specWithout,
  takeOver,
} from "../../../../host/registry/kubernetes/decide.ts";
import {
  findMissingOwner,
  hasChanged,
  isOfSameNic,
  PROBE_FIRST,
  rowVersionOf,
  specOf,
} from "../../../../host/registry/kubernetes/known-object.ts";
import type { Allocation } from "../../../../host/registry/registry.ts";
import type { AllocationState, IpAllocation, IpAllocationSpec } from "../../../../host/resources/ip-allocation.ts";
import { areTwoMachines } from "../../../../host/resources/machine.ts";
import { isSameMember, type Workload } from "../../../../host/resources/member.ts";
import { recordLog } from "../../../world/recorded-log.ts";
import { ip } from "../../../world/values.ts";
import type { ClaimTask, Memory, Task } from "./journal-memory.ts";
import { IP, NAME, objectOf, SINCE } from "./journal-object.ts";
import type { Agent, Answer, Call, Limit, Nic, Place, PodName, Turn } from "./protocol.ts";

const NIC = "eth0";
const NAMESPACE = "shop";

type Spec = IpAllocationSpec;
export type JournalTurn = Turn<Allocation, Memory, Spec>;

export interface JournalOptions {
  /** Whether the pool is so small that its cooling addresses are shown at once. */
  readonly isPublic: boolean;
  /** Whether members are launchers of one run of a virtual machine. */
  readonly isMachine: boolean;
}

const { log: LOG } = recordLog();

export function workloadOf(
  { isMember, name }: Pick<PodName, "isMember" | "name">,
  isMachine: boolean,
): Workload | undefined {
  if (!isMember) return undefined;
  if (isMachine) return { kind: "VirtualMachine", namespace: NAMESPACE, name: "vm", uid: "w", member: "vm" };
  return { kind: "StatefulSet", namespace: NAMESPACE, name: "web", uid: "w", member: name };
}

function pathOf(container: string): string {
  return `/run/netns/${container}`;
}

function cookieOf(container: string): bigint {
  return BigInt(`0x${Buffer.from(container).toString("hex")}`);
}

function netnsOf(container: string): { readonly netns: string; readonly netnsCookie: bigint } {
  return { netns: pathOf(container), netnsCookie: cookieOf(container) };
}

const BLANK = { space: "", ip: IP, prefixLength: 24, pool: "blue", network: "net", namespace: NAMESPACE } as const;

/** One turn of an agent, while it is made. */
export class Draft {
  row: Allocation | undefined;
  memory: Memory;
  readonly place: Place<Spec>;
  readonly options: JournalOptions;
  readonly fenced: string[] = [];
  /** The object as it was read, older than the agent's knowledge of it. */
  #past: IpAllocation | "absent" | undefined;
  answer: JournalTurn["answer"];
  waitsFor: Limit | undefined;

  constructor(agent: Agent<Allocation, Memory>, place: Place<Spec>, options: JournalOptions) {
    this.row = agent.row;
    const states = new AddressStates(place.node);
    states.copyFrom(agent.memory.states);
    this.memory = { ...agent.memory, states };
    this.place = place;
    this.options = options;
  }

  turn(label: string, before: Memory): JournalTurn {
    const { task } = this.memory;
    const call = task !== undefined && task !== before.task ? task.call : undefined;
    const { row, memory, answer, fenced, waitsFor } = this;
    const effect = `${call === undefined ? "" : `, ${call.kind}`}${answer === undefined ? "" : `, ${answer.isBound ? "answered" : "refused"}`}`;
    return { label: `${label}${effect}`, row, memory, call, answer, fenced, waitsFor };
  }

  // The journal.

  write(row: Omit<Allocation, "version">): Allocation {
    const written: Allocation = { ...row, version: this.place.next() };
    this.row = written;
    return written;
  }

  cool(row: Allocation, isDue = false): void {
    this.write({ ...row, state: "Cooling", freeAtMs: isDue ? 0 : 1 });
  }

  /** A UUID of its own. */
  newId(): string {
    return String(this.place.next());
  }

  /** Writes the row over the one before, as the journal's claim does. */
  bind(row: Omit<Allocation, "version">): Allocation {
    const before = this.row;
    const written = this.write(row);
    const claim = claimOver(written, before, { number: 0, id: this.newId() });
    this.row = { ...written, claim };
    return this.row;
  }

  adopt({ state, owner, namespace, pod, workload, claim, quarantine }: Adoption): void {
    const isOnNic = this.place.others.some(({ uid }) => uid === owner);
    if (this.row !== undefined || (state === "Bound" && isOnNic)) return;
    const times = { sinceMs: 0, ...(state === "Cooling" ? { freeAtMs: 1 } : {}) };
    const containerId = state === "Bound" ? UNKNOWN_CONTAINER : "";
    const claimant = { owner, namespace, pod, workload, ifName: NIC, containerId };
    this.write({ ...BLANK, ...claimant, ...times, claim, state, quarantine, isConfirmed: true });
    if (state === "Bound") this.memory.states.noteSent(NAME);
  }

  change(change: Partial<Memory>): void {
    this.memory = { ...this.memory, ...change };
  }

  // Reads of the API server, and of NICs.

  get object(): IpAllocation | undefined {
    const { object } = this.place;
    return object === undefined ? undefined : objectOf(object);
  }

  get live(): Omit<LiveStatus, "isPodGone"> {
    const { nodes, machines, uidOf, node, machine } = this.place;
    const { isMachine } = this.options;
    const statusOf = { there: "there", lost: "lost", off: "off", absent: "lost" } as const satisfies Record<
      string,
      NodeStatus
    >;
    return {
      node,
      machine: () => machine,
      isLivePod: async (_namespace, pod, uid) => uidOf(pod) === uid,
      readHolderStatus: async (row, holder) => {
        if (holder.pod === row.pod || uidOf(holder.pod) !== holder.podUid) return "gone";
        return isMachine ? "migrating" : "alive";
      },
      readNodeStatus: async (name, of) => {
        if (areTwoMachines({ machine: machines.get(name) }, { machine: of })) return "lost";
        return statusOf[nodes.get(name) ?? "absent"];
      },
    };
  }

  podOf({ pod }: Pick<Allocation, "pod">): PodStatus {
    const uid = this.place.uidOf(pod);
    return uid === undefined
      ? { kind: "absent" }
      : { kind: "present", pod: { uid, configHash: undefined, deleting: false } };
  }

  get nics(): NicAccess {
    const nics = this.place.nics.map((nic): Nic => {
      return this.fenced.includes(nic.container) ? { ...nic, state: "without" } : nic;
    });
    // A path that leads to another netns is none of the row's.
    const at = (path: string | undefined) =>
      nics.find(({ container, state }) => pathOf(container) === path && state !== "moved");
    return {
      readCookie: (path) => cookieOf(path.slice(pathOf("").length)),
      readNetnsStatus: async ({ netns }) => {
        if (netns === undefined) return "unknown";
        const nic = at(netns);
        if (nic === undefined) return "gone";
        const { attaching, task, queued } = this.memory;
        const isRunning = [task?.claim?.container, queued?.claim.container].includes(nic.container);
        if (hasAddress(nic) && this.memory.attaching === nic.container) this.change({ attaching: undefined });
        return hasAddress(nic) || isRunning || attaching === nic.container ? "inUse" : "there";
      },
      // The runtime has a record of an ADD that has ended.
      findNetns: ({ owner }) => {
        const nic = nics.find((each) => each.uid === owner && each.state !== "moved" && each.state !== "comingUp");
        if (nic === undefined) return { kind: "absent" };
        return { kind: "proven", netns: pathOf(nic.container), netnsCookie: cookieOf(nic.container) };
      },
      fenceNics: ({ netns }) => {
        const nic = at(netns);
        if (nic === undefined) return undefined;
        // It answers for nothing that comes up later, either.
        this.fenced.push(nic.container);
        return hasAddress(nic) ? [NIC] : [];
      },
    };
  }

  get known(): readonly string[] {
    return this.row?.netns === undefined ? [] : [this.row.netns];
  }

  async readNetns(row: Allocation | Adoption): Promise<{ netns: NetnsStatus; isAbsent: boolean }> {
    const { netns, containerId = UNKNOWN_CONTAINER }: Partial<Allocation> = row;
    const status = await this.nics.readNetnsStatus({ netns, ifName: NIC, ip: IP });
    if (status !== "unknown" || containerId !== UNKNOWN_CONTAINER) return { netns: status, isAbsent: false };
    const found = this.nics.findNetns({ owner: row.owner, containerId, ifName: NIC, ip: IP }, this.known);
    if (found.kind !== "proven") return { netns: "unknown", isAbsent: found.kind === "absent" };
    return { netns: await this.nics.readNetnsStatus({ ...found, ifName: NIC, ip: IP }), isAbsent: false };
  }

  async isPodGone(given: Allocation | Adoption): Promise<boolean> {
    const row = { containerId: UNKNOWN_CONTAINER, ...given };
    if (!mayLeak(row)) return false;
    const times = { observedAtMs: Number.NEGATIVE_INFINITY, nowMs: 0, confirmAfterMs: 1 };
    const { netns, isAbsent } = await this.readNetns(given);
    const isHidden = mayBeShared(row.workload) && !isAbsent;
    return decideLeak({ row, pod: this.podOf(row), netns, isHidden, ...times }).kind === "collect";
  }

  /** The same before the address is released. */
  async letGo(row: Allocation): Promise<boolean> {
    if (!(await this.isPodGone(row))) return false;
    if ((await this.readNetns(row)).netns === "there") await this.fence(row);
    return (await this.readNetns(row)).netns !== "inUse";
  }

  async endOrphan(row: Allocation): Promise<boolean> {
    if (!isOrphan(row, this.podOf(row)) || !(await this.fence(row))) return false;
    this.cool(row);
    return true;
  }

  fence(row: Allocation): Promise<boolean> {
    const { readCookie, findNetns, fenceNics } = this.nics;
    const deps: FenceDeps = {
      knownNetns: async () => this.known,
      // A NIC that was fenced in this turn reads as such.
      nics: { readCookie, findNetns, fenceNics, readNetnsStatus: (nic) => this.nics.readNetnsStatus(nic) },
      remember: () => {},
      node: this.place.node,
      isEnabled: () => true,
      detach: async () => {},
      emit: () => {},
      log: LOG,
    };
    return fenceOrphan(deps, row);
  }

  // object-sync.ts

  async sync(): Promise<void> {
    if (this.memory.task !== undefined) return this.change({ isBacklogged: true });
    this.change({ isBacklogged: false });
    await this.continueSync(this.row, this.memory.states.find(NAME));
  }

  async continueSync(first: Allocation | undefined, seen: IpAllocation | "absent" | undefined): Promise<void> {
    const { states } = this.memory;
    const { node } = this.place;
    let row = first;
    let object = seen;
    for (let step = 0; step < 12; step++) {
      if (row === undefined) return states.noteSent(NAME, false);
      const workload = typeof object === "object" ? findMissingOwner(row, object.spec, node) : undefined;
      if (workload !== undefined) {
        row = this.row = { ...row, workload };
        continue;
      }
      if (row.state === "Bound" && row.isConfirmed !== true) return;
      const action = await this.resolve(row, object, undefined);
      switch (action.kind) {
        case "wait":
          return;
        case "synced":
          return states.noteSent(NAME, false);
        case "forget":
          if (this.row?.version === row.version) {
            this.row = undefined;
            states.noteForgotten(NAME);
            if (typeof object === "object" && object.spec.state !== "Kept" && object.spec.node === node)
              this.change({ isDue: true });
            return states.noteSent(NAME, false);
          }
          row = this.row;
          break;
        case "takeOver":
        case "taken":
          this.read();
          if (this.object !== undefined && !isSameMember(row.workload, this.object.spec.workload))
            this.change({ isLost: true });
          return states.noteSent(NAME, false);
        case "read":
          object = this.read();
          row = this.row;
          break;
        default:
          return this.send(action, { row, written: row, object });
      }
    }
    throw new Error("A sync has no end");
  }

  read(): IpAllocation | "absent" {
    const { states } = this.memory;
    const object = this.object ?? "absent";
    if (isLater(states.versionOf(NAME), object)) this.#past = object;
    states.noteAnswer(NAME, object);
    return object;
  }

  async resolve(
    row: Allocation,
    object: IpAllocation | "absent" | undefined,
    replaces: number | undefined,
    isRead = false,
  ): Promise<ResolvedAction> {
    const { states } = this.memory;
    const { isPublic } = this.options;
    const { node, machine } = this.place;
    const action = decide({
      machine,
      row,
      object,
      isPast: object !== undefined && object === this.#past,
      isProber: isProber(states.get(NAME), node),
      isSent: states.get(NAME).isSent,
      node,
      isDue: row.freeAtMs === 0,
      isPublic,
      isOwnerSeen: true,
      replaces,
    });
    const isOld =
      typeof object === "object" && object.spec.state !== "Cooling" && object.spec.holders[0]?.podUid !== row.owner;
    if (row.state === "Bound" && row.isConfirmed !== true && !isRead && object !== undefined) {
      if (action.kind === "taken") return { kind: "read" };
      const takesOver = action.kind === "takeOver" || action.kind === "replace";
      if (takesOver && isOld && isOfSameNic(row, (object as IpAllocation).spec)) return { kind: "read" };
    }
    if (action.kind === "recover") return recover(this.live, row);
    if (action.kind !== "takeOver" && action.kind !== "reclaim") return action;
    const now = this.object;
    if (now === undefined || typeof object !== "object" || object.resourceVersion !== now.resourceVersion)
      return { kind: "read" };
    return action.kind === "takeOver" ? takeOver(this.live, row, now) : reclaim(this.live, row, now, action);
  }

  send(
    action: Extract<ResolvedAction, { kind: "create" | "replace" | "leave" | "delete" }>,
    task: Pick<Task, "row" | "written" | "claim"> & { readonly object: IpAllocation | "absent" | undefined },
  ): void {
    const { node, machine } = this.place;
    const object = typeof task.object === "object" ? task.object : undefined;
    const own = (state: AllocationState): Spec =>
      specOf(task.written, state, { node, machine, since: SINCE }, object?.spec);
    const kind = action.kind === "create" || action.kind === "delete" ? action.kind : "change";
    const call = (): Call<Spec> => {
      if (action.kind === "create") return { kind: "create", spec: own(task.written.state) };
      if (object === undefined) throw new Error(`An object that is not known is not subject to ${action.kind}`);
      const before = { uid: Number(object.uid), version: Number(object.resourceVersion) };
      if (action.kind === "delete") return { kind: "delete", before };
      if (action.kind === "leave")
        return { kind: "replace", before, spec: specWithout(own("Bound"), object.spec, action.others) };
      const spec = own(action.state);
      return { kind: "replace", before, spec: { ...spec, holders: [...spec.holders, ...(action.sharers ?? [])] } };
    };
    this.change({ task: { ...task, object, action: kind, call: call() } });
  }

  // cluster-claim.ts

  async publish(row: Allocation, claim: ClaimTask): Promise<void> {
    if (this.memory.task !== undefined) return this.change({ queued: { row, claim } });
    const { states } = this.memory;
    const isOffered = claim.replaces !== undefined && this.place.object?.version === -claim.replaces;
    const object = isOffered && this.object !== undefined ? this.object : states.find(NAME);
    await this.continuePublish(row, object, claim, isOffered);
  }

  async continuePublish(
    row: Allocation,
    seen: IpAllocation | "absent" | undefined,
    claim: ClaimTask,
    isFresh: boolean,
  ): Promise<void> {
    const published = { ...row, workload: row.workload ?? claim.workload };
    let object = seen;
    let isRead = isFresh;
    for (let step = 0; step < 12; step++) {
      const action = await this.resolve(published, object, claim.replaces, isRead);
      switch (action.kind) {
        case "synced":
          this.memory.states.noteSent(NAME, false);
          return this.accept(published, claim);
        case "read":
          object = this.read();
          isRead = true;
          break;
        case "create":
        case "replace": {
          const isRetained = action.kind === "replace" && this.isRetained(published, object);
          if (!isRetained) return this.send(action, { row, written: published, object, claim });
          const written = { ...published, claim: claimAfter(published, (object as IpAllocation).spec.number) };
          // Recorded before the object is written: whatever becomes of the claim, the address is retained again.
          if (this.row?.version === row.version) this.row = written;
          return this.send(action, { row: written, written, object, claim: { ...claim, workload: written.workload } });
        }
        default:
          return this.refuse(row, claim, action.kind === "taken" && action.needsProbe === true);
      }
    }
    throw new Error("A publication has no end");
  }

  isRetained(row: Allocation, object: IpAllocation | "absent" | undefined): boolean {
    return (
      typeof object === "object" &&
      object.spec.state !== "Cooling" &&
      object.spec.holders[0]?.podUid !== row.owner &&
      isOfSameNic(row, object.spec)
    );
  }

  end(container: string, isBound: boolean): void {
    this.answer = { container, isBound };
    if (isBound && this.place.isSlow) this.change({ attaching: container });
  }

  /** The object is Bound to the row's pod: the ADD is answered, unless the row was released meanwhile. */
  async accept(row: Allocation, claim: ClaimTask): Promise<void> {
    if (this.row?.version !== row.version) {
      this.end(claim.container, false);
      return this.sync();
    }
    const workload = this.row.workload ?? claim.workload;
    const number = { number: Math.max(1, this.row.claim?.number ?? 1) };
    const named = this.row.claim === undefined ? {} : { claim: { ...this.row.claim, ...number, earlier: [] } };
    this.row = { ...this.row, workload, ...named, quarantine: undefined, isConfirmed: true };
    this.change({ isLost: false });
    this.end(claim.container, true);
  }

  /** Another pod has the object. */
  async refuse(row: Allocation, claim: ClaimTask, needsProbe: boolean): Promise<void> {
    const isTouched = this.row?.version !== row.version;
    if (!isTouched) this.row = undefined;
    const { object } = this;
    const isLost =
      object?.spec.quarantine?.reason === "NodeLost" && isOfSameNic({ ...row, workload: claim.workload }, object.spec);
    if (!isTouched && object !== undefined && (needsProbe || isLost) && row.quarantine === undefined) {
      // The NIC probes before anything is published: until then the object is the earlier pod's.
      if (!this.place.isSilent()) return this.end(claim.container, false);
      const probed = this.write({ ...row, isConfirmed: false, workload: undefined, quarantine: PROBE_FIRST });
      return this.publish(probed, { ...claim, replaces: rowVersionOf(object) });
    }
    this.end(claim.container, false);
    if (isTouched) await this.sync();
  }

  /** The API server did not answer, and the ADD gives up. */
  async giveUp(row: Allocation, claim: ClaimTask): Promise<void> {
    this.end(claim.container, false);
    if (this.row?.version !== row.version) return this.sync();
    if (row.isConfirmed === true) return;
    if (this.row.quarantine !== undefined) this.row = undefined;
    else this.cool(this.row, !claim.wasCooling);
    await this.sync();
  }

  async add(pod: PodName, container: string): Promise<void> {
    const { row, memory } = this;
    const workload = workloadOf(pod, this.options.isMachine);
    const claimant = { owner: pod.uid, pod: pod.name, ifName: NIC, containerId: container, ...netnsOf(container) };
    const claim = { container, workload, wasCooling: false };
    const blank = { ...BLANK, ...claimant, state: "Bound", sinceMs: 0, isConfirmed: false } as const;
    if (row === undefined) {
      const { object, node } = this.place;
      const isCooling = object?.spec.state === "Cooling" && object.spec.node !== node;
      if (isCooling) this.waitsFor = "rest";
      return this.publish(this.bind(blank), { ...claim, ...(isCooling ? { replaces: -object.version } : {}) });
    }
    if (row.state === "Bound" && row.owner === pod.uid) {
      const { isSent } = memory.states.get(NAME);
      const attached = this.write({ ...row, containerId: container, ...netnsOf(container) });
      if (row.isConfirmed === true && !isSent && !memory.isLost) return this.end(container, true);
      return this.publish(this.renew(attached), claim);
    }
    if (row.state === "Bound" && isSameMember(workload, row.workload)) {
      if (!(await this.endOrphan(row))) {
        if (!(await this.letGo(row))) return this.end(container, false);
        this.cool(row);
      }
    }
    const before = this.row;
    if (before?.state !== "Cooling") return this.end(container, false);
    const isOwn = before.owner === pod.uid || isSameMember(workload, before.workload);
    if (!isOwn && before.workload !== undefined) return this.end(container, false);
    if (!isOwn) this.waitsFor = "rest";
    const kept = isSameMember(workload, before.workload) ? workload : undefined;
    const taken = this.renew(this.bind({ ...blank, workload: kept }));
    await this.publish(taken, { ...claim, wasCooling: before.freeAtMs === 1 });
  }

  /** A write under the old claim may still be carried out. */
  renew(row: Allocation): Allocation {
    if (isNewClaim(row) || !this.memory.states.get(NAME).isSent) return row;
    this.row = { ...row, claim: renewClaim(row, this.newId()) };
    return this.row;
  }

  // reconciler.ts

  async compare(): Promise<void> {
    const { object, row, place } = this;
    const { node } = place;
    const { states } = this.memory;
    this.change({ isReconciled: true, isDue: false });
    if (object?.spec.node === node) {
      const before = states.find(NAME);
      if (states.noteSeen(NAME, object) && hasChanged(before, object)) await this.sync();
    } else states.forgetRetained(new Set());
    if (row === undefined) return object === undefined ? undefined : this.handleOrphan(object);
    if (isOlderThan(row, object, node)) return this.sync();
    const isWanting =
      needsPublishing(row, object, node) || (isReportedLost(row, object, node) && !(await this.isPodGone(row)));
    if (!isWanting) return;
    states.invalidate(NAME);
    await this.sync();
  }

  async handleOrphan(object: IpAllocation): Promise<void> {
    const { node, machine, others } = this.place;
    const ownRows = others.map(
      (pod): Allocation => ({
        ...{ ...BLANK, ip: ip("10.0.0.2"), owner: pod.uid, pod: pod.name, ifName: NIC, containerId: "other" },
        ...{ state: "Bound", sinceMs: 0, version: 0, isConfirmed: true },
      }),
    );
    const holder = object.spec.holders[0] ?? object.spec.quarantine?.holder;
    const rows = ownRows.filter(({ owner }) => owner === holder?.podUid);
    const action = decideOrphanObject({ object, node, machine, ownRows: rows, nowMs: 0 });
    if (action.kind === "leave") return;
    if (action.kind === "adopt" || action.kind === "probe") this.adopt(action.adoption);
    else if (action.kind === "confirm" && !(await this.isPodGone(action.adoption))) this.adopt(action.adoption);
    else {
      const bound = { ...action.adoption, state: "Bound" } as const;
      if (action.kind === "release" && action.ifPodGone && !(await this.isPodGone(bound))) return;
      this.adopt(action.kind === "confirm" ? action.ended : action.adoption);
    }
    await this.sync();
  }

  // collector.ts

  async sweep(row: Allocation): Promise<void> {
    if (isOrphan(row, this.podOf(row)) && (await this.endOrphan(row))) return this.sync();
    if (!(await this.letGo(row))) return;
    this.cool(row);
    await this.sync();
  }
}

function hasAddress({ state }: Nic): boolean {
  return state === "up" || state === "renamed";
}

/** The answer to the write under way has come, or will not. */
export async function answered(draft: Draft, answer: Answer<Spec>): Promise<void> {
  const { task } = draft.memory;
  if (task === undefined) throw new Error("No call is under way");
  const { claim, row, action } = task;
  if (answer.kind === "unanswered") {
    draft.memory.states.noteSent(NAME);
    draft.change({ looksAgain: true });
    if (answer.isRetried) return;
    draft.change({ task: undefined });
    draft.memory.states.invalidate(NAME);
    if (claim === undefined) draft.change({ isBacklogged: true });
    else await draft.giveUp(row, claim);
  } else {
    draft.change({ task: undefined });
    const object = note(draft, answer, task);
    const isEnded = action === "delete" && object === "absent" && answer.kind === "written";
    if (claim === undefined) await draft.continueSync(isEnded ? row : draft.row, object);
    else await draft.continuePublish(row, object, claim, true);
  }
  const { queued } = draft.memory;
  if (queued === undefined || draft.memory.task !== undefined) return;
  draft.change({ queued: undefined });
  await draft.publish(queued.row, queued.claim);
}

function note(draft: Draft, answer: Exclude<Answer<Spec>, { kind: "unanswered" }>, { object: before }: Task) {
  const { states } = draft.memory;
  if (answer.kind === "refused") {
    states.invalidate(NAME);
    return draft.read();
  }
  states.noteSent(NAME, false);
  const object = answer.object === undefined ? ("absent" as const) : objectOf(answer.object);
  states.noteAnswer(NAME, object, before);
  return object;
}
