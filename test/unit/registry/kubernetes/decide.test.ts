import { expect, it } from "vitest";
import {
  decide,
  reclaim,
  recover,
  type SyncInputs,
  specWithout,
  takeOver,
} from "../../../../host/registry/kubernetes/decide.ts";
import { type Allocation, UNNAMED } from "../../../../host/registry/registry.ts";
import type { Holder, IpAllocation, IpAllocationSpec } from "../../../../host/resources/ip-allocation.ts";
import { cases } from "../../../world/rows.ts";
import { HOLDER, ipAllocation, proposal } from "../../../world/subjects.ts";
import { RIVAL } from "../../../world/values.ts";

const WEB = { kind: "StatefulSet", namespace: "shop", name: "web", uid: "w", member: "web-0" };
const OTHER_WEB = { ...WEB, member: "web-1" };

/** Names of pod a on this node, its NIC eth0. */
const names = { owner: "a", containerId: "c", network: "net", namespace: "shop", pod: "web-0", sinceMs: 0, version: 7 };
const bound: Allocation = { ...proposal("10.0.0.1"), ...names, state: "Bound", isConfirmed: false };
const cooling: Allocation = { ...bound, state: "Cooling", isConfirmed: true };
const ended: Allocation = { ...cooling, owner: "" };
const quarantined: Allocation = { ...ended, state: "Quarantined" };
const answered: Allocation = {
  ...quarantined,
  quarantine: { reason: "Conflict", mac: RIVAL, parent: "", nextProbeAtMs: 0 },
};

const withSpec = (object: IpAllocation, spec: Partial<IpAllocationSpec>): IpAllocation => ({
  ...object,
  spec: { ...object.spec, ...spec },
});
const heldBy = (object: IpAllocation, holder: Partial<Holder>): IpAllocation =>
  withSpec(object, { holders: object.spec.holders.map((each) => ({ ...each, ...holder })) });
const ours: IpAllocation = {
  ...ipAllocation("10.0.0.1", { node: "here", holders: [{ ...HOLDER, node: "here", podUid: "a" }] }),
  resourceVersion: "5",
};
const ourCooling = withSpec(ours, { holders: [], state: "Cooling" });
const ourQuarantined = withSpec(ours, { holders: [], state: "Quarantined" });
const ourRetained = withSpec(ours, { holders: [], state: "Kept", workload: WEB });
const ofOtherPod = heldBy(ours, { podUid: "b" });
const answeredBy = (mac: string) => withSpec(ourQuarantined, { quarantine: { reason: "Conflict", mac, parent: "" } });
/** In quarantine for a lost node. */
const lostOf = (node: string) =>
  ({ quarantine: { reason: "NodeLost", mac: "", parent: "", holder: { ...HOLDER, node } } }) as const;
const elsewhere = (object: IpAllocation): IpAllocation =>
  withSpec(heldBy(object, { node: "there" }), { node: "there" });
/** Objects of a lost node, whose address this node, or another one, was told to ask for. */
const weAsk = withSpec(ourQuarantined, lostOf("there"));
const weAreLost = withSpec(ourQuarantined, lostOf("here"));
const theyAsk = elsewhere(weAreLost);
/** Of another machine that had this node's name. */
const formerly = (object: IpAllocation): IpAllocation => heldBy(object, { machine: "old" });
const formerlyLost = withSpec(ourQuarantined, {
  quarantine: { reason: "NodeLost", mac: "", parent: "", holder: { ...HOLDER, node: "here", machine: "old" } },
});
const asNew = { machine: "new" };

const due = { isDue: true };
const dueAsNew = { ...due, ...asNew };
const shown = { isPublic: true };
const unread: Partial<SyncInputs> = { isOwnerSeen: undefined };
const unseen: Partial<SyncInputs> = { isOwnerSeen: false };
const unanswered = { isSent: true };
const prober = { isProber: true };
/** Claims of this row, and of rows of the address before. */
const [OWN, BEFORE, UNKNOWN] = ["claim-1", "claim-0", "claim-9"];
const named = (row: Allocation, ...earlier: readonly string[]): Allocation => ({
  ...row,
  claim: { id: OWN, number: 1, earlier },
});
const of = (claim: string, object: IpAllocation): IpAllocation => heldBy(object, { claim });

type Case = [row: Allocation, object: SyncInputs["object"], options?: Partial<SyncInputs>];

const confirmed: Allocation = { ...bound, isConfirmed: true };
const ofWeb: Allocation = { ...bound, workload: WEB };
const ofEvil: Allocation = { ...bound, workload: { ...WEB, namespace: "evil" } };
const past = { isPast: true };
const cooledWeb: Allocation = { ...cooling, workload: WEB };
const ahead = (number: number) => ({ ...cooledWeb, containerId: "", claim: { id: OWN, number, earlier: [] } });
const WEB_AGAIN = { ...WEB, uid: "again" };
const cooledAgain: Allocation = { ...cooling, workload: WEB_AGAIN };
const formerWeb = withSpec(ours, { workload: WEB });
const earlierPod = withSpec(ofOtherPod, { workload: WEB });
const retainedFor = (ifName: string): IpAllocation => withSpec(ourRetained, { workload: { ...WEB, ifName } });

/** Of this row's pod, by its claim if one is named, and of two pods elsewhere. */
const shareOf = (claim?: string) => ({ ...HOLDER, node: "here", podUid: "a", ...(claim && { claim }) });
const others = ["b", "d"].map((podUid) => ({ ...HOLDER, node: "there", podUid }));
/** Of another machine elsewhere, and of this node. */
const elders = others.map((each, at) => ({ ...each, ...(at === 0 ? { machine: "old" } : { node: "here" }) }));
const sharedBy = (object: IpAllocation, ...holders: Holder[]): IpAllocation => withSpec(object, { holders });

it.each(cases<Case>`
  retention: shared, with its own claim ${[named(bound), sharedBy(ofOtherPod, shareOf(OWN), ...others)]} => synced
  retention: shared, with an older claim ${[named(bound), sharedBy(ofOtherPod, shareOf(BEFORE), ...others)]}
    => replace Bound
  retention: shared by others alone ${[named(bound, BEFORE), of(BEFORE, sharedBy(ofOtherPod, ...others))]} => taken
  retention: shared, and retained by now ${[cooledWeb, sharedBy(ourRetained, shareOf(), ...others)]} => forget
  a release of what is shared, and in deletion ${[cooling, { ...sharedBy(ours, shareOf(), ...others), deleting: true }]}
    => wait
  a release before it is known which machine this is, elsewhere ${[cooling, formerly(elsewhere(ours)), due]} => forget
  a release of what cools, and was another node's before ${[cooling, withSpec(ourCooling, lostOf("there")), due]} => delete
  retention: in quarantine, of an owner that was created again ${[cooledAgain, withSpec(ourQuarantined, { workload: WEB })]}
    => replace Kept
  conflict: in quarantine, by another machine ${[quarantined, formerlyLost, asNew]} => synced
  conflict: another machine has what has ended here ${[ended, formerly(ours), dueAsNew]} => forget
  a claim creates without looking ${[bound, undefined]} => create
  retention: an answered member's, of what is not known, may be shared ${[{ ...ofWeb, isConfirmed: true }, undefined]}
    => read
  retention: a member's that was not answered ${[ofWeb, undefined]} => create
  an answered one of no member ${[confirmed, undefined]} => create
  a claim of what another pod here had looks first ${[named(bound, BEFORE), undefined]} => read
  a take-over of what was not met looks first ${[bound, undefined, { replaces: -5 }]} => read
  a claim creates what is not there ${[named(bound, BEFORE), "absent"]} => create
  undo: a claim's own object ${[bound, ours]} => synced
  sandbox-restart: a claim's own object, which an unanswered write may yet change ${[bound, ours, unanswered]}
    => replace Bound
  sandbox-restart: what is not known, with such a write ${[bound, undefined, unanswered]} => read
  undo: not that of the pod's other NIC ${[bound, heldBy(ours, { ifName: "net1" })]} => taken
  its own object under another node's name, and this one's was answered ${[confirmed, elsewhere(ours)]} => replace Bound
  static-pods: the object of a pod elsewhere that has its UID ${[bound, elsewhere(ours)]} => taken
  another pod's here ${[bound, ofOtherPod]} => taken
  recreate: another pod's here, and this one's was answered ${[confirmed, ofOtherPod]} => reclaim
  recreate: another pod's elsewhere, and this one's was answered ${[confirmed, elsewhere(ofOtherPod)]} => taken
  another pod's here, by a claim of this node's row before ${[named(bound, BEFORE), of(BEFORE, ofOtherPod)]}
    => replace Bound
  another pod's here, by a claim that the journal does not know ${[named(bound, BEFORE), of(UNKNOWN, ofOtherPod)]}
    => taken
  another pod's here, by a claim without a name, as the row's before ${[named(bound, UNNAMED), ofOtherPod]}
    => replace Bound
  another pod's here, by a claim without a name, and the row's before had one ${[named(bound, BEFORE), ofOtherPod]}
    => taken
  another pod's elsewhere ${[named(bound, BEFORE), elsewhere(of(BEFORE, ofOtherPod))]} => taken
  its own object, by its claim ${[named(bound), of(OWN, ours)]} => synced
  its own object, by an older or a late claim ${[named(bound), of(UNKNOWN, ours)]} => replace Bound
  its own object, of which an older release has dropped the claim ${[named(bound), ours]} => synced
  its own object, of which the journal of an older release has no claim ${[bound, of(UNKNOWN, ours)]}
    => replace Bound
  an answered one, by another claim ${[named(confirmed), of(BEFORE, ours)]} => replace Bound
  cooling-visibility: foreign and cooling, not asked for ${[bound, elsewhere(ourCooling)]} => taken
  cooling-visibility: foreign and cooling, this version ${[bound, elsewhere(ourCooling), { replaces: -5 }]}
    => replace Bound
  cooling-visibility: foreign and cooling, an older version ${[bound, elsewhere(ourCooling), { replaces: -4 }]}
    => taken
  cooling-visibility: a version does not take over what is bound ${[bound, elsewhere(ofOtherPod), { replaces: -5 }]}
    => taken
  sandbox-restart: its own, shown as cooling ${[named(bound, OWN), ourCooling]} => replace Bound
  cooling here without a row ${[bound, ourCooling]} => taken
  conflict: in quarantine here, taken over ${[named(bound, UNNAMED), ourQuarantined]} => replace Bound
  conflict: in quarantine ${[bound, ourQuarantined]} => taken
  node-lost: this node was taken for lost ${[confirmed, ourQuarantined]} => replace Bound
  node-lost: and another has it now ${[confirmed, elsewhere(ourQuarantined)]} => taken
  node-lost: and another asks for the address ${[confirmed, theyAsk]} => recover
  node-lost: a claim of what another asks for ${[bound, theyAsk]} => taken
  node-lost: what another asks for was a third one's ${[confirmed, withSpec(theyAsk, lostOf("n3"))]} => taken
  retention: kept for the member ${[ofWeb, elsewhere(ourRetained)]} => replace Bound
  retention: kept for another member ${[{ ...bound, workload: OTHER_WEB }, ourRetained]} => taken
  retention: kept for another NIC of the member ${[ofWeb, retainedFor("net1")]} => taken
  retention: kept for this NIC of the member ${[ofWeb, retainedFor("eth0")]} => replace Bound
  retention: an earlier pod of the member has it on another NIC ${[ofWeb, elsewhere(heldBy(earlierPod, { ifName: "net1" }))]}
    => taken
  retention: kept for that member of another namespace ${[ofEvil, ourRetained]} => taken
  retention: that member of another namespace has it ${[ofEvil, earlierPod]} => taken
  retention: kept, and the pod is of no workload ${[bound, ourRetained]} => taken
  retention: an earlier pod of the member has it ${[ofWeb, elsewhere(earlierPod)]} => takeOver
  retention: another member's pod has it ${[ofWeb, withSpec(ofOtherPod, { workload: OTHER_WEB })]} => taken
  a release in a large pool ${[cooling, ours]} => wait
  a release in a large pool, of what is not known ${[cooling, undefined]} => wait
  a release of what was never made ${[cooling, "absent"]} => wait
  cooling-visibility: a release in a small pool ${[cooling, ours, shown]} => replace Cooling
  cooling-visibility: that is shown already ${[cooling, ourCooling, shown]} => wait
  cooling-visibility: of what is not known ${[cooling, undefined, shown]} => read
  a cooldown that is over ${[cooling, ours, due]} => delete
  a cooldown that is over, shown ${[cooling, ourCooling, { ...due, ...shown }]} => delete
  a cooldown that is over, of what is not known ${[cooling, undefined, due]} => read
  a cooldown that is over, and there is nothing ${[cooling, "absent", due]} => forget
  cooling-visibility: another node took it over ${[cooling, elsewhere(ofOtherPod), due]} => forget
  clocks-and-boots: another pod's object here that the journal does not know ${[cooling, ofOtherPod, due]} => forget
  the object of who had it before ${[named(cooling, BEFORE), of(BEFORE, ofOtherPod), due]} => delete
  node-lost: a cooldown that is over, and another node asks for the address ${[cooling, weAsk, due]} => forget
  node-lost: a cooldown that is over, and this node was taken for lost ${[cooling, weAreLost, due]} => delete
  conflict: the end of a quarantine ${[ended, ourQuarantined, due]} => delete
  conflict: that was never written ${[ended, ours, due]} => delete
  retention: a release of a member ${[cooledWeb, ours]} => replace Kept
  retention: of what was claimed ahead for a member with an address, and undone ${[ahead(2), ours]} => replace Kept
  retention: of what was claimed ahead for one without, also by another pod of it ${[ahead(1), ours, due]} => delete
  retention: that is no longer retained, by an older journal ${[cooledWeb, ourCooling]} => wait
  retention: that is no longer retained, and has cooled ${[cooledWeb, ourCooling, due]} => delete
  retention: of an owner that could not be read yet ${[cooledWeb, ours, unread]} => wait
  retention: of such a one, after the cooldown ${[cooledWeb, ours, { ...unread, ...due }]} => wait
  retention: of an owner that is not there ${[cooledWeb, ours, unseen]} => wait
  retention: of such a one, where others want it ${[cooledWeb, ours, { ...unseen, ...shown }]} => replace Cooling
  retention: of such a one, after the cooldown ${[cooledWeb, ours, { ...unseen, ...due }]} => delete
  retention: of a member whose owner was created again ${[cooledAgain, formerWeb]} => replace Bound
  retention: of such a one, once that is written ${[cooledAgain, withSpec(ours, { workload: WEB_AGAIN })]} => replace Kept
  retention: a pod whose owner was created again ${[{ ...confirmed, workload: WEB_AGAIN }, formerWeb]} => replace Bound
  retention: a pod whose owner is the object's ${[{ ...confirmed, workload: WEB }, formerWeb]} => synced
  retention: of what is not known ${[cooledWeb, undefined]} => read
  retention: that is kept ${[cooledWeb, ourRetained]} => forget
  retention: whose next pod has it already ${[cooledWeb, elsewhere(earlierPod)]} => forget
  registry-epoch: of which the registry knows nothing any more ${[cooledWeb, "absent"]} => create
  registry-epoch: of that, and of an owner that could not be read yet ${[cooledWeb, "absent", unread]} => wait
  registry-epoch: a member's, of which the registry has an earlier pod of this node ${[cooledWeb, ofOtherPod, due]}
    => reclaim
  registry-epoch: that, and of an owner that could not be read yet ${[cooledWeb, ofOtherPod, unread]} => wait
  registry-epoch: a member's, of which the registry has what cooled before ${[cooledWeb, ourCooling, { ...due, ...past }]}
    => reclaim
  registry-epoch: that, and of an owner that is not there ${[cooledWeb, ofOtherPod, unseen]} => forget
  registry-epoch: that, of another machine ${[cooledWeb, formerly(ofOtherPod), asNew]} => forget
  retention: that was new to the member and is undone, so no owner is recorded ${[cooling, ours, due]} => delete
  a claim of an object that a foreign finalizer holds ${[bound, { ...ours, deleting: true }]} => taken
  an answered claim of an object in deletion ${[confirmed, { ...ours, deleting: true }]} => synced
  a release of an object that a foreign finalizer holds ${[cooling, { ...ours, deleting: true }, due]} => wait
  conflict: a conflict ${[quarantined, ours]} => replace Quarantined
  conflict: a conflict that is written ${[quarantined, ourQuarantined]} => synced
  conflict: an answer to a probe ${[answered, answeredBy("")]} => replace Quarantined
  conflict: an answer that is written ${[answered, answeredBy(RIVAL)]} => synced
  conflict: a conflict that is written, with such a write ${[quarantined, ourQuarantined, unanswered]}
    => replace Quarantined
  conflict: a conflict of which nothing is known ${[quarantined, undefined]} => read
  conflict: a conflict that another node has found to be over ${[quarantined, "absent"]} => wait
  conflict: an address that we were told to ask for ${[quarantined, weAsk]} => synced
  conflict: is not written over, it says who had it ${[quarantined, weAsk, unanswered]} => synced
  conflict: was freed by another writer ${[quarantined, "absent", prober]} => forget
  conflict: is its node's again ${[quarantined, elsewhere(withSpec(weAsk, { state: "Bound" })), prober]} => forget
  conflict: is silent ${[ended, weAsk, due]} => delete
  conflict: a release that is late, of what we were told to ask for since ${[cooling, weAsk, due]} => forget
  conflict: a conflict of what another node has now ${[quarantined, elsewhere(ours)]} => forget
  conflict: a conflict of what is kept for a member ${[quarantined, ourRetained]} => forget
  cooling-visibility: its own under another node's name, when it has cooled ${[cooling, elsewhere(ours), due]} => forget
  node-lost: its pod's object of another machine with this node's name ${[bound, formerly(ours), asNew]} => taken
  node-lost: its pod's object of a machine, and this one is not known ${[bound, formerly(ours)]} => taken
  node-lost: its pod's object of this machine ${[bound, heldBy(ours, { machine: "new" }), asNew]} => synced
  node-lost: its pod's object of an older writer ${[bound, ours, asNew]} => synced
  node-lost: its pod's object of another machine, and this one's was answered ${[confirmed, formerly(ours), asNew]}
    => taken
  node-lost: that row's, of another machine ${[named(bound, BEFORE), formerly(of(BEFORE, ofOtherPod)), asNew]} => taken
  node-lost: another pod's of another machine, and this one's was answered ${[confirmed, formerly(ofOtherPod), asNew]}
    => taken
  node-lost: two other pods', one of another machine elsewhere ${[confirmed, sharedBy(earlierPod, ...elders), asNew]}
    => reclaim
  node-lost: a member's of another machine with this node's name ${[ofWeb, formerly(formerWeb), asNew]} => takeOver
  node-lost: in quarantine for another machine ${[named(bound, UNNAMED), formerlyLost, asNew]} => taken
  node-lost: a release of what another machine has ${[cooling, formerly(ours), dueAsNew]} => forget
  node-lost: a release before it is known which machine this is ${[cooling, formerly(ours), due]} => wait
  node-lost: a release of what another machine has lost ${[cooling, formerlyLost, dueAsNew]} => forget
  node-lost: what another machine has lost is silent ${[ended, formerlyLost, dueAsNew]} => delete
  node-lost: what another machine has again is probed no more ${[quarantined, formerly(ours), asNew]} => forget
  a row that says Kept ${[{ ...cooling, state: "Kept" }, ourRetained]} => forget
`)("%s", (_what, [row, object, options], expected) => {
  const flags = { isProber: false, isSent: false, isDue: false, isPublic: false, isOwnerSeen: true };
  const plain = { node: "here", replaces: undefined, isPast: false, ...flags };
  const action = decide({ ...plain, row, object, ...options });
  expect(action.kind === "replace" ? `replace ${action.state}` : action.kind).toBe(expected);
});

/** Tells whether the UID of the object's pod lives. */
const livePods = (...uids: readonly string[]) => ({
  isLivePod: async (_namespace: string, _pod: string, uid: string) => uids.includes(uid),
});

it("node-lost: a row of a node that was taken for lost is written again while its pod lives, else it waits", async () => {
  expect(await recover(livePods("a"), confirmed)).toEqual({ kind: "replace", state: "Bound" });
  expect(await recover(livePods(), confirmed)).toEqual({ kind: "wait" });
});

it("recreate: the row's pod gets the object back when it lives and that of the object does not", async () => {
  const away = ipAllocation("10.0.0.1", { node: "here" });
  const ask = (live: readonly string[], row: Allocation, object: IpAllocation, isPast = false) =>
    reclaim({ ...livePods(...live), node: "here" }, row, object, { kind: "reclaim", otherwise: "taken", isPast });
  const check = async (live: readonly string[], object: IpAllocation) => (await ask(live, confirmed, object)).kind;
  expect(await check(["a"], ofOtherPod)).toBe("replace");
  expect(await check([], ofOtherPod)).toBe("taken");
  expect(await check(["a", "b"], ofOtherPod)).toBe("taken");
  expect(await check(["a"], away)).toBe("taken");
  expect(await ask([], cooledWeb, ofOtherPod)).toEqual({ kind: "delete" });
  expect(await ask(["b"], cooledWeb, ofOtherPod)).toEqual({ kind: "taken" });
  // Of the registry's past the other pod may be back with it, and another node's is not ended.
  expect(await ask(["b"], cooledWeb, ofOtherPod, true)).toEqual({ kind: "delete" });
  expect(await ask(["a", "b"], confirmed, ofOtherPod, true)).toEqual({ kind: "replace", state: "Bound" });
  expect(await ask([], cooledWeb, away, true)).toEqual({ kind: "taken" });
});

it("retention: the live one of two pods gets the address on the same NIC", async () => {
  const deps = { ...livePods("a"), node: "here" };
  expect(await takeOver(deps, ofWeb, earlierPod)).toStrictEqual({ kind: "replace", state: "Bound", sharers: [] });
  const other = heldBy(earlierPod, { ifName: "net1" });
  expect(await takeOver(deps, ofWeb, other)).toStrictEqual({ kind: "taken" });
  expect(await takeOver({ ...deps, ...livePods() }, ofWeb, earlierPod)).toStrictEqual({ kind: "taken" });
  const lost = { ...deps, readNodeStatus: async () => "lost" as const };
  expect((await takeOver(lost, confirmed, elsewhere(earlierPod))).kind).toBe("replace");
});

it("node-lost: a machine that shares the address answers for it, so no probe can tell", async () => {
  const [gone, moving] = [2, 3].map((at) => ({ ...HOLDER, node: `n${at}`, podUid: `u${at}` })) as [Holder, Holder];
  const check = (holders: readonly Holder[]) =>
    takeOver(
      {
        ...{ ...livePods("a"), node: "here", readNodeStatus: async () => "lost" },
        readHolderStatus: async (_row, { podUid }) => (podUid === "u3" ? "migrating" : "gone"),
      },
      ofWeb,
      ipAllocation("10.0.0.1", { holders }),
    );
  expect(await check([gone])).toEqual({ kind: "taken", needsProbe: true });
  expect(await check([gone, moving])).toEqual({ kind: "taken", predecessor: gone });
});

it.each<[machine: string | undefined, of: string | undefined, isHere: boolean]>([
  ["m1", "m1", true],
  ["m1", undefined, true],
  ["m2", "m1", false],
  [undefined, "m1", false],
])("node-lost: machine %s takes the word of its journal for a holder of %s: %s", async (machine, of, isHere) => {
  const asked: string[] = [];
  const deps = {
    ...{ ...livePods("a"), node: "n1", machine: () => machine, readHolderStatus: async () => "gone" as const },
    readNodeStatus: async (node: string, named: string | undefined) => {
      asked.push(`${node} ${named}`);
      return "lost" as const;
    },
  };
  const holders = [{ ...HOLDER, machine: of }];
  const { kind } = await takeOver(deps, ofWeb, ipAllocation("10.0.0.1", { holders }));
  expect({ kind, asked }).toEqual(isHere ? { kind: "replace", asked: [] } : { kind: "taken", asked: ["n1 m1"] });
});

it("retention: without its pod a shared object is of a node that still has a holder, and of that holder's NIC", () => {
  const own = ipAllocation("10.0.0.1").spec;
  const second = { ...HOLDER, node: "n2", ifName: "net1" };
  const third = { ...HOLDER, node: "there" };
  const { spec: shared } = withSpec(elsewhere(earlierPod), { workload: { ...WEB, ifName: "eth9" }, number: 3 });
  const rest = { ...own, workload: { ...WEB, ifName: "net1" }, number: 3 };
  expect(specWithout(own, shared, [second, third])).toEqual({ ...rest, node: "there", holders: [second, third] });
  expect(specWithout(own, shared, [second])).toEqual({ ...rest, node: "n2", holders: [second] });
  expect(specWithout(own, elsewhere(ofOtherPod).spec, [second])).toStrictEqual({
    ...own,
    node: "n2",
    holders: [second],
  });
  expect(() => specWithout(own, shared, [])).toThrow("A shared object has another holder");
});
