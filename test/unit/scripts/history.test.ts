/** The checker of histories: what it lets pass, and that it catches each breach that it is there for. */
import { describe, expect, it } from "vitest";
import { parseIp } from "../../../host/net/ip.ts";
import type { AllocationState, IpAllocation, IpAllocationSpec } from "../../../host/resources/ip-allocation.ts";
import { AllocationChecker, type Attachment } from "../../lab/history/allocation-checker.ts";

const NAME = "10.6.0.21";
const web = { kind: "StatefulSet", namespace: "shop", name: "web", uid: "set-1", member: "web-0" };
const db = { ...web, name: "db", uid: "set-2", member: "db-0" };
const conflict = { reason: "Conflict", mac: "", parent: "" } as const;

function object(state: AllocationState, podUid?: string, more: Partial<IpAllocationSpec> = {}): IpAllocation {
  const ip = parseIp(NAME);
  if (ip === undefined) throw new Error("no address");
  const holder = { namespace: "shop", pod: "web-0", podUid: podUid ?? "", ifName: "eth0", node: "n1" };
  return {
    kind: "IPAllocation",
    name: NAME,
    uid: "object-1",
    resourceVersion: "1",
    deleting: false,
    spec: {
      ...{ ip, addressSpace: "", prefixLength: 24, pool: "blue", state, node: "n1" },
      holders: podUid === undefined ? [] : [holder],
      ...more,
    },
  };
}

const bound = (podUid: string, more: Partial<IpAllocationSpec> = {}) => object("Bound", podUid, more);
/** Bound to a pod of another node. */
const elsewhere = (podUid: string, more: Partial<IpAllocationSpec> = {}): IpAllocation => {
  const { spec, ...rest } = bound(podUid, { ...more, node: "n2" });
  return { ...rest, spec: { ...spec, holders: spec.holders.map((holder) => ({ ...holder, node: "n2" })) } };
};
const nic = (podUid: string, name = NAME): Attachment => ({ name, podUid, ifName: "eth0" });

/** Breaches of one address's objects one after the other. */
function breachesOf(...objects: (IpAllocation | undefined)[]): readonly string[] {
  const checker = new AllocationChecker();
  for (const [index, each] of objects.entries()) checker.written({ name: NAME, revision: index + 1, object: each });
  return checker.breaches;
}

const [COOLING, KEPT] = [object("Cooling"), object("Kept", undefined, { workload: web })];
const [CONFLICT, LOST] = (["Conflict", "NodeLost"] as const).map((reason) =>
  object("Quarantined", undefined, { quarantine: { ...conflict, reason } }),
);
/** Bound for the identity `web`. */
const WEB = bound("a", { workload: web });
const OTHER_MEMBER = { ...web, member: "web-1" };

describe("transitions", () => {
  const fine: [name: string, ...objects: (IpAllocation | undefined)[]][] = [
    ["a pod's whole life", bound("a"), COOLING, undefined, bound("b")],
    ["taken over while it cools", bound("a"), COOLING, bound("b")],
    ["kept and back", WEB, KEPT, bound("b", { workload: web })],
    ["its identity moves while it is Bound", WEB, elsewhere("b", { workload: web })],
    ["a conflict and its end", bound("a"), CONFLICT, undefined],
    ["its node comes back", bound("a"), LOST, COOLING],
    ["released and claimed in one write on its node", bound("a"), bound("b")],
  ];
  it.each(fine)("%s", (_name, ...objects) => expect(breachesOf(...objects)).toEqual([]));

  const breaches: [name: string, breach: RegExp, ...objects: (IpAllocation | undefined)[]][] = [
    ["another pod's while it is Bound", /revision 2, 10.6.0.21: another node's pod's/, bound("a"), elsewhere("b")],
    ["another identity's while it is Bound", /another node's pod's/, WEB, elsewhere("b", { workload: db })],
    ["another member's while it is Bound", /another node's pod's/, WEB, elsewhere("b", { workload: OTHER_MEMBER })],
    ["another identity's while it is Kept", /another identity/, WEB, KEPT, bound("b", { workload: db })],
    ["another pod's while it is Kept", /another identity/, WEB, KEPT, bound("b")],
    ["kept for a member that never had it", /kept for a member/, bound("a"), KEPT],
    ["freed while it is Kept", /from Kept to absent/, WEB, KEPT, undefined],
    ["created as Cooling", /created as Cooling/, COOLING],
    ["Cooling becomes Kept", /from Cooling to Kept/, bound("a"), COOLING, KEPT],
    ["a conflict becomes Cooling", /a conflict made Cooling/, bound("a"), CONFLICT, COOLING],
    ["quarantine becomes Kept", /from quarantine to Kept/, bound("a"), CONFLICT, KEPT],
    ["Bound without a holder", /Bound without a holder/, object("Bound")],
    ["held while it cools", /it has a holder/, bound("a"), object("Cooling", "a")],
    ["quarantined without a reason", /a quarantine and its reason/, bound("a"), object("Quarantined")],
    ["another node's", /node n2 holds none of it/, bound("a", { node: "n2" })],
    ["of a name that is not its address", /the name is not the address/, bound("a", { addressSpace: "lab" })],
  ];
  it.each(breaches)("%s", (_name, breach, ...objects) => expect(breachesOf(...objects).join()).toMatch(breach));
});

describe("attachments", () => {
  type Event = (checker: AllocationChecker) => void;
  const answered = (podUid: string, atMs = 0, identity?: string): Event => {
    const attachment = identity === undefined ? nic(podUid) : { ...nic(podUid), identity };
    return (checker) => checker.answered(attachment, atMs);
  };
  const leaving = (podUid: string, atMs = 10, identity?: string): Event => {
    const attachment = identity === undefined ? nic(podUid) : { ...nic(podUid), identity };
    return (checker) => checker.leaving(attachment, atMs);
  };
  const mustHold: Event = (checker) => checker.mustHold(nic("a"));
  const written =
    (revision: number, object: IpAllocation | undefined): Event =>
    (checker) =>
      checker.written({ name: NAME, revision, object });
  /** Pod a is attached, and its object has come. */
  const attached = [written(1, bound("a")), answered("a"), mustHold];
  const run = (...events: Event[]): AllocationChecker => {
    const checker = new AllocationChecker({ minReuseMs: 2_000 });
    for (const event of events) event(checker);
    return checker;
  };

  it("a life without a breach", () => {
    const checker = run(...attached);
    expect(checker.attachments).toHaveLength(1);
    for (const event of [leaving("a"), written(2, COOLING), written(3, bound("b")), answered("b", 2_010)])
      event(checker);
    checker.mustHold(nic("b"));
    expect(checker.breaches).toEqual([]);
    expect([checker.writes, checker.objects.size]).toEqual([3, 1]);
  });
  const rows: [name: string, events: readonly Event[], breaches: readonly unknown[]][] = [
    [
      "two have one address",
      [answered("a"), answered("b", 1)],
      ["10.6.0.21: given to eth0 of b while eth0 of a has it"],
    ],
    ["answered without an object", [answered("a"), mustHold], ["10.6.0.21: absent when eth0 of a was answered"]],
    [
      "answered with another pod's object",
      [written(1, bound("b")), answered("a"), mustHold],
      ["10.6.0.21: Bound eth0 of b when eth0 of a was answered"],
    ],
    [
      "the object goes while the pod lives",
      [...attached, written(2, undefined)],
      ["revision 2, 10.6.0.21: absent while eth0 of a lives with it"],
    ],
    [
      "the object cools while the pod lives",
      [...attached, written(2, COOLING)],
      [expect.stringContaining("Cooling while eth0 of a lives")],
    ],
    [
      "the object becomes another pod's on the same node while the pod lives",
      [...attached, written(2, bound("b"))],
      [expect.stringContaining("Bound eth0 of b while eth0 of a lives")],
    ],
    [
      "another pod's too soon",
      [answered("a"), leaving("a"), answered("b", 2_009)],
      ["10.6.0.21: given to eth0 of b 1999 ms after the DEL of a"],
    ],
    ["its own pod's at once", [answered("a"), leaving("a"), answered("a", 11)], []],
    ["leaves, but was never there", [leaving("a")], [expect.any(String)]],
    ["has left before its place in the history came", [answered("a"), leaving("a"), mustHold], []],
  ];
  it.each(rows)("%s", (_name, events, breaches) => expect(run(...events).breaches).toEqual(breaches));
  it("its own identity's at once", () => {
    const own = "set-1/web-0";
    const checker = run(answered("a", 0, own), leaving("a", 10, own), answered("b", 11, own));
    expect(checker.breaches).toEqual([]);
    for (const event of [leaving("b", 20, own), answered("c", 21, "set-1/web-1")]) event(checker);
    expect(checker.breaches).toHaveLength(1);
  });
});
