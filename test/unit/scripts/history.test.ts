/**
 * The checker of histories catches each breach that it is there for. The histories that it must accept are those of the
 * tests that it watches.
 */
import { describe, expect, it } from "vitest";
import type { AllocationState, IpAllocation, IpAllocationSpec } from "../../../host/resources/ip-allocation.ts";
import { AllocationChecker, type Attachment, type Write } from "../../lab/history/allocation-checker.ts";
import { cases } from "../../world/rows.ts";
import { HOLDER, ipAllocation } from "../../world/subjects.ts";
import { ip } from "../../world/values.ts";

const NAME = "10.6.0.21";
const web = { kind: "StatefulSet", namespace: "shop", name: "web", uid: "set-1", member: "web-0" };
const db = { ...web, name: "db", uid: "set-2", member: "db-0" };
const conflict = { reason: "Conflict", mac: "02:00:00:00:00:07", parent: "" } as const;

const object = (state: AllocationState, podUid?: string, more: Partial<IpAllocationSpec> = {}): IpAllocation => {
  const holders = podUid === undefined ? [] : [{ ...HOLDER, podUid }];
  return { ...ipAllocation(NAME), spec: ipAllocation(NAME, { state, holders, ...more }).spec };
};

const bound = (podUid: string, more: Partial<IpAllocationSpec> = {}) => object("Bound", podUid, more);
/** Bound to a pod of another node. */
const elsewhere = (podUid: string, more: Partial<IpAllocationSpec> = {}): IpAllocation => {
  const { spec, ...rest } = bound(podUid, { ...more, node: "n2" });
  return { ...rest, spec: { ...spec, holders: spec.holders.map((holder) => ({ ...holder, node: "n2" })) } };
};
/** The node of the pod's NIC was taken for lost. */
const lostOf = (podUid: string): IpAllocation =>
  object("Quarantined", undefined, { quarantine: { ...conflict, reason: "NodeLost", holder: { ...HOLDER, podUid } } });
/** The same of another address. */
const other = (name: string, { spec }: IpAllocation) => ipAllocation(name, { ...spec, ip: ip(name) });
const nic = (podUid: string, name = NAME): Attachment => ({ name, podUid, ifName: "eth0" });

/** Breaches of one address's objects one after the other. */
function breachesOf(...objects: (IpAllocation | undefined)[]): readonly string[] {
  const checker = new AllocationChecker();
  for (const [index, each] of objects.entries()) checker.written({ name: NAME, revision: index + 1, object: each });
  return checker.breaches;
}

const [COOLING, KEPT] = [object("Cooling"), object("Kept", undefined, { workload: web })];
const quarantined = (reason: "Conflict" | "NodeLost") =>
  object("Quarantined", undefined, { quarantine: { ...conflict, reason } });
const [CONFLICT, LOST] = [quarantined("Conflict"), quarantined("NodeLost")];
/** Bound for the identity `web`. */
const WEB = bound("a", { workload: web });

describe("transitions", () => {
  const breaches: [name: string, breach: RegExp, ...objects: (IpAllocation | undefined)[]][] = [
    ["another pod's while it is Bound", /revision 2, 10.6.0.21: another node's pod's/, bound("a"), elsewhere("b")],
    ["another identity's while it is Kept", /another identity/, WEB, KEPT, bound("b", { workload: db })],
    ["kept for a member that never had it", /kept for a member/, bound("a"), KEPT],
    ["freed while it is Kept", /from Kept to absent/, WEB, KEPT, undefined],
    ["created as Cooling", /created as Cooling/, COOLING],
    ["Cooling becomes Kept", /from Cooling to Kept/, bound("a"), COOLING, KEPT],
    ["a conflict becomes Cooling", /a conflict made Cooling/, bound("a"), CONFLICT, COOLING],
    ["kept for another member after its node was lost", /from quarantine to Kept/, bound("a"), LOST, KEPT],
    ["another pod's while its node is lost", /while its node is lost/, bound("a"), lostOf("a"), elsewhere("b")],
    [
      "another NIC's while it is Kept",
      /kept for another NIC/,
      WEB,
      object("Kept", undefined, { workload: { ...web, ifName: "eth0" } }),
      bound("b", { workload: { ...web, ifName: "net1" } }),
    ],
    ["Bound without a holder", /Bound without a holder/, object("Bound")],
    ["held while it cools", /it has a holder/, bound("a"), object("Cooling", "a")],
    ["quarantined without a reason", /a quarantine and its reason/, bound("a"), object("Quarantined")],
    ["another node's", /node n2 holds none of it/, bound("a", { node: "n2" })],
    ["of a name that is not its address", /the name is not the address/, bound("a", { addressSpace: "lab" })],
  ];
  it.each(breaches)("%s", (_name, breach, ...objects) => expect(breachesOf(...objects).join()).toMatch(breach));
});

type Event = (checker: AllocationChecker) => void;

const written =
  (revision: number, object: IpAllocation | undefined, more: Partial<Write> = {}): Event =>
  (checker) =>
    checker.written({ name: object?.name ?? NAME, revision, object, ...more });
/** Carried out within ten milliseconds before that time. */
const writtenAt = (last: number, object: IpAllocation | undefined): Event =>
  written(last, object, { atMs: { first: last - 10, last } });
const answered =
  (podUid: string, name = NAME): Event =>
  (checker) => {
    checker.answered(nic(podUid, name));
    checker.mustHold(nic(podUid, name));
  };
const leaving =
  (podUid: string, atMs = 10, name = NAME): Event =>
  (checker) =>
    checker.leaving(nic(podUid, name), atMs);
const run = (...events: Event[]): AllocationChecker => {
  const checker = new AllocationChecker({ minReuseMs: 2_000, minConflictMs: 5_000, minLostMs: 4_000 });
  for (const event of events) event(checker);
  return checker;
};
/** Pod a is attached, and its object has come. */
const attached = [written(1, bound("a")), answered("a")];

/** Parts of the breaches. */
const check = (table: TemplateStringsArray, ...inputs: (readonly Event[])[]): void =>
  it.each(cases(table, ...inputs))("%s", (_name, events, breaches) =>
    expect(run(...events).breaches).toEqual(breaches.split(" & ").map((text) => expect.stringContaining(text))),
  );

describe("attachments", () => {
  check`
    two have one address ${[...attached, answered("b")]}
      => when eth0 of b was & given to eth0 of b while eth0 of a has it
    answered without an object ${[answered("a")]} => 10.6.0.21: absent when eth0 of a was answered
    the object goes while the pod lives ${[...attached, written(2, undefined)]}
      => revision 2, 10.6.0.21: absent while eth0 of a lives with it
    leaves, but was never there ${[leaving("a")]} => leaves, but was never answered
  `;
});

describe("a person's writes by hand", () => {
  const hand = { writer: { kind: "hand" } } as const;
  check`
    deletes it, and after it was made again it goes ${[...attached, written(2, undefined, hand), written(3, bound("a")), written(4, undefined)]}
      => revision 4
    restores an older state in which the pod has it, and it goes ${[...attached, (checker) => checker.restored(), (checker) => checker.begin({ name: NAME, revision: 1, object: bound("a") }), written(2, undefined)]}
      => absent while eth0 of a lives
  `;
});

describe("a machine that migrates", () => {
  const db = { kind: "VirtualMachine", namespace: "shop", name: "db", uid: "vm-1", member: "db" };
  const holder = (podUid: string, node: string) => ({ namespace: "shop", pod: podUid, podUid, ifName: "eth0", node });
  const both = object("Bound", "a", { workload: db, node: "n2", holders: [holder("a", "n1"), holder("b", "n2")] });
  const source = [written(1, bound("a", { workload: db })), answered("a")];
  check`
    leaves its source out of the record while that lives ${[...source, written(2, elsewhere("b", { workload: db })), answered("b")]}
      => Bound eth0 of b, db while eth0 of a lives & given to eth0 of b while
    is none: a StatefulSet's pods share nothing ${[written(1, object("Bound", "a", { ...both.spec, workload: web }))]}
      => two holders that are no machine
  `;
});

describe("rests", () => {
  const here = (podUid: string) => writtenAt(2_009, bound(podUid));
  const released = [...attached, leaving("a")];
  check`
    another pod's too soon after the DEL ${[...released, here("b")]} => claimed 1999 ms after the DEL of a
    another node's 0.1 s after a DEL of 2 s ${[...released, writtenAt(2_010, COOLING), writtenAt(2_110, elsewhere("b"))]}
      => taken over after a rest of 110 ms
    free too soon after a conflict ${[writtenAt(10, bound("a")), writtenAt(20, CONFLICT), writtenAt(5_009, undefined)]}
      => 4999 ms after the conflict
    given to a pod a minute after a conflict ${[writtenAt(20, CONFLICT), writtenAt(60_000, bound("b"))]}
      => after the conflict
  `;
});

const lives: Event = (checker) => checker.owner("set-1", { wants: ({ member }) => member === "web-0" });
const kept = [lives, written(1, WEB), answered("a"), leaving("a"), written(2, KEPT)];
const OTHER = "10.6.0.22";
const web2 = (more: Partial<IpAllocationSpec> = {}) => other(OTHER, bound("b", { workload: web, ...more }));
check`
  lose it while their owner lives ${[...kept, written(3, COOLING)]} => released while StatefulSet web lives
  get another address ${[...kept, written(3, web2()), answered("b", OTHER)]}
    => 10.6.0.22: given to eth0 of b, whose 10.6.0.21 is Kept web-0
`;
it("members: a pod whose NIC gets a second address is found, without an owner", () => {
  const checker = run(...attached, written(2, other(OTHER, bound("a"))), answered("a", OTHER));
  expect(checker.breaches).toEqual(["10.6.0.22: given to eth0 of a, whose 10.6.0.21 is Bound eth0 of a"]);
});

describe("a lost node", () => {
  const pod = (first?: number) => (checker: AllocationChecker) =>
    checker.pod("a", first === undefined ? undefined : { first, last: first });
  const handed = object("Quarantined", undefined, { ...lostOf("a").spec, node: "n2" });
  check`
    is that of a pod that is gone for a moment ${[...attached, pod(), pod(10), writtenAt(4_000, lostOf("a"))]}
      => taken for lost less than 4000 ms after the end of pod a
    is that of a pod that is there ${[...attached, pod(), writtenAt(4_020, lostOf("a"))]} => taken for lost
    is given up at once ${[...attached, writtenAt(10, lostOf("a")), writtenAt(3_900, handed)]}
      => handed to another node 3900 ms after its node was lost
  `;
});

describe("refusals", () => {
  const [ONE, TWO] = [bound("a"), other("10.6.0.22", bound("b"))];
  const refused =
    (...during: Event[]): Event =>
    (checker) => {
      const names = [ONE.name, TWO.name];
      const call = checker.asked({ size: 2n, has: ({ name }) => names.includes(name) });
      for (const event of during) event(checker);
      checker.exhausted(call);
    };
  check`
    one is free all the time ${[written(1, ONE), refused()]}
      => an ADD was refused, but never were more than 1 of 2 taken
  `;
});

describe("the writer", () => {
  const by = (node: string | undefined) => ({ writer: { kind: "agent", node } }) as const;
  const controller = { writer: { kind: "controller" } } as const;
  check`
    an agent, of another node ${[written(1, bound("a"), by("n2"))]} => of n1, by n2
    an agent takes a node for lost ${[written(1, bound("a")), written(2, lostOf("a"), by("n1"))]}
      => taken for lost by an agent
    the controller binds ${[written(1, bound("a"), controller)]} => Bound by the controller
  `;
});
