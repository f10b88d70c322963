/** The checker of histories: what it lets pass, and that it catches each breach that it is there for. */
import { describe, expect, it } from "vitest";
import { parseIp } from "../../../host/net/ip.ts";
import type { AllocationState, IpAllocation, IpAllocationSpec } from "../../../host/resources/ip-allocation.ts";
import { decodeIpPool } from "../../../host/resources/ip-pool.ts";
import { decodeAssignments, decodeSubnet } from "../../../host/resources/subnet.ts";
import { AllocationChecker, type Attachment } from "../../../scripts/lab/history/allocation-checker.ts";
import { PoolChecker } from "../../../scripts/lab/history/pool-checker.ts";

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

describe("transitions", () => {
  const check = (name: string, objects: (IpAllocation | undefined)[], breach: RegExp | undefined): void =>
    it(name, () => {
      const breaches = breachesOf(...objects);
      if (breach === undefined) expect(breaches).toEqual([]);
      else expect(breaches.join()).toMatch(breach);
    });

  check("a pod's whole life", [bound("a"), object("Cooling"), undefined, bound("b")], undefined);
  check("deleted without a rest", [bound("a"), undefined], undefined);
  check("taken over while it cools", [bound("a"), object("Cooling"), bound("b")], undefined);
  check("written again for the same pod", [bound("a"), bound("a", { since: "2026-11-20T04:00:00Z" })], undefined);
  check("kept and back", [bound("a", { workload: web }), object("Kept", undefined, { workload: web }), bound("b", { workload: web })], undefined); // biome-ignore format: a row
  check("its identity moves while it is Bound", [bound("a", { workload: web }), elsewhere("b", { workload: web })], undefined); // biome-ignore format: a row
  check("kept no longer", [bound("a", { workload: web }), object("Kept", undefined, { workload: web }), object("Cooling")], undefined); // biome-ignore format: a row
  check("a conflict and its end", [bound("a"), object("Quarantined", undefined, { quarantine: conflict }), undefined], undefined); // biome-ignore format: a row
  check("its node comes back", [bound("a"), object("Quarantined", undefined, { quarantine: { ...conflict, reason: "NodeLost" } }), object("Cooling")], undefined); // biome-ignore format: a row
  check("released and claimed in one write on its node", [bound("a"), bound("b")], undefined);
  check("a conflict on an address whose object was lost", [object("Quarantined", undefined, { quarantine: conflict })], undefined); // biome-ignore format: a row
  check("deleted twice", [bound("a"), undefined, undefined], undefined);

  check("another pod's while it is Bound", [bound("a"), elsewhere("b")], /revision 2, 10.6.0.21: another node's pod's/);
  check("another identity's while it is Bound", [bound("a", { workload: web }), elsewhere("b", { workload: db })], /another node's pod's/); // biome-ignore format: a row
  check("another member's while it is Bound", [bound("a", { workload: web }), elsewhere("b", { workload: { ...web, member: "web-1" } })], /another node's pod's/); // biome-ignore format: a row
  check("another identity's while it is Kept", [bound("a", { workload: web }), object("Kept", undefined, { workload: web }), bound("b", { workload: db })], /another identity/); // biome-ignore format: a row
  check("another pod's while it is Kept", [bound("a", { workload: web }), object("Kept", undefined, { workload: web }), bound("b")], /another identity/); // biome-ignore format: a row
  check("kept for a member that never had it", [bound("a"), object("Kept", undefined, { workload: web })], /kept for a member/); // biome-ignore format: a row
  check("freed while it is Kept", [bound("a", { workload: web }), object("Kept", undefined, { workload: web }), undefined], /from Kept to absent/); // biome-ignore format: a row
  check("created as Cooling", [object("Cooling")], /created as Cooling/);
  check("Cooling becomes Kept", [bound("a"), object("Cooling"), object("Kept", undefined, { workload: web })], /from Cooling to Kept/); // biome-ignore format: a row
  check("a conflict becomes Cooling", [bound("a"), object("Quarantined", undefined, { quarantine: conflict }), object("Cooling")], /a conflict made Cooling/); // biome-ignore format: a row
  check("quarantine becomes Kept", [bound("a"), object("Quarantined", undefined, { quarantine: conflict }), object("Kept", undefined, { workload: web })], /from quarantine to Kept/); // biome-ignore format: a row
});

describe("objects", () => {
  it("the name is not the address", () => {
    const checker = new AllocationChecker();
    checker.written({ name: "10.6.0.22", revision: 1, object: bound("a") });
    expect(checker.breaches.join()).toContain("the name is not the address, which is called 10.6.0.21");
  });
  it("Bound without a holder", () => expect(breachesOf(object("Bound")).join()).toContain("Bound without a holder"));
  it("held while it cools", () =>
    expect(breachesOf(bound("a"), object("Cooling", "a")).join()).toContain("it has a holder"));
  it("quarantined without a reason", () =>
    expect(breachesOf(bound("a"), object("Quarantined")).join()).toContain("a quarantine and its reason"));
  it("another node's", () =>
    expect(breachesOf(bound("a", { node: "n2" })).join()).toContain("node n2 holds none of it"));
  it("moves to another address space", () => {
    const checker = new AllocationChecker();
    const inSpace = { ...bound("a"), spec: { ...bound("a").spec, addressSpace: "lab" } };
    checker.written({ name: "10.6.0.21.lab", revision: 1, object: inSpace });
    checker.written({ name: "10.6.0.21.lab", revision: 2, object: bound("a") });
    expect(checker.breaches).toHaveLength(1);
  });
});

describe("attachments", () => {
  it("a life without a breach", () => {
    const checker = new AllocationChecker({ minReuseMs: 2_000 });
    checker.written({ name: NAME, revision: 1, object: bound("a") });
    checker.answered(nic("a"), 0);
    checker.mustHold(nic("a"));
    expect(checker.attachments).toHaveLength(1);
    checker.leaving(nic("a"), 10);
    checker.written({ name: NAME, revision: 2, object: object("Cooling") });
    checker.written({ name: NAME, revision: 3, object: bound("b") });
    checker.answered(nic("b"), 2_010);
    checker.mustHold(nic("b"));
    expect(checker.breaches).toEqual([]);
    expect([checker.writes, checker.objects.size]).toEqual([3, 1]);
  });
  it("two have one address", () => {
    const checker = new AllocationChecker();
    checker.answered(nic("a"), 0);
    checker.answered(nic("b"), 1);
    expect(checker.breaches).toEqual(["10.6.0.21: given to eth0 of b while eth0 of a has it"]);
  });
  it("an ADD that is repeated is one attachment", () => {
    const checker = new AllocationChecker();
    checker.answered(nic("a"), 0);
    checker.answered(nic("a"), 1);
    expect(checker.breaches).toEqual([]);
    expect(checker.attachments).toHaveLength(1);
  });
  it("answered without an object", () => {
    const checker = new AllocationChecker();
    checker.answered(nic("a"), 0);
    checker.mustHold(nic("a"));
    expect(checker.breaches).toEqual(["10.6.0.21: absent when eth0 of a was answered"]);
  });
  it("answered with another pod's object", () => {
    const checker = new AllocationChecker();
    checker.written({ name: NAME, revision: 1, object: bound("b") });
    checker.answered(nic("a"), 0);
    checker.mustHold(nic("a"));
    expect(checker.breaches).toEqual(["10.6.0.21: Bound eth0 of b when eth0 of a was answered"]);
  });
  it("the object goes while the pod lives", () => {
    const checker = new AllocationChecker();
    checker.written({ name: NAME, revision: 1, object: bound("a") });
    checker.answered(nic("a"), 0);
    checker.mustHold(nic("a"));
    checker.written({ name: NAME, revision: 2, object: undefined });
    expect(checker.breaches).toEqual(["revision 2, 10.6.0.21: absent while eth0 of a lives with it"]);
  });
  it("the object cools while the pod lives", () => {
    const checker = new AllocationChecker();
    checker.written({ name: NAME, revision: 1, object: bound("a") });
    checker.answered(nic("a"), 0);
    checker.mustHold(nic("a"));
    checker.written({ name: NAME, revision: 2, object: object("Cooling") });
    expect(checker.breaches.join()).toContain("Cooling while eth0 of a lives");
  });
  it("the object becomes another pod's on the same node while the pod lives", () => {
    const checker = new AllocationChecker();
    checker.written({ name: NAME, revision: 1, object: bound("a") });
    checker.answered(nic("a"), 0);
    checker.mustHold(nic("a"));
    checker.written({ name: NAME, revision: 2, object: bound("b") });
    expect(checker.breaches.join()).toContain("Bound eth0 of b while eth0 of a lives");
  });
  it("another pod's too soon", () => {
    const checker = new AllocationChecker({ minReuseMs: 2_000 });
    checker.answered(nic("a"), 0);
    checker.leaving(nic("a"), 10);
    checker.answered(nic("b"), 2_009);
    expect(checker.breaches).toEqual(["10.6.0.21: given to eth0 of b 1999 ms after the DEL of a"]);
  });
  it("its own pod's at once", () => {
    const checker = new AllocationChecker({ minReuseMs: 2_000 });
    checker.answered(nic("a"), 0);
    checker.leaving(nic("a"), 10);
    checker.answered(nic("a"), 11);
    expect(checker.breaches).toEqual([]);
  });
  it("its own identity's at once", () => {
    const checker = new AllocationChecker({ minReuseMs: 2_000 });
    checker.answered({ ...nic("a"), identity: "set-1/web-0" }, 0);
    checker.leaving({ ...nic("a"), identity: "set-1/web-0" }, 10);
    checker.answered({ ...nic("b"), identity: "set-1/web-0" }, 11);
    expect(checker.breaches).toEqual([]);
    checker.leaving({ ...nic("b"), identity: "set-1/web-0" }, 20);
    checker.answered({ ...nic("c"), identity: "set-1/web-1" }, 21);
    expect(checker.breaches).toHaveLength(1);
  });
  it("leaves, but was never there", () => {
    const checker = new AllocationChecker();
    checker.leaving(nic("a"), 10);
    expect(checker.breaches).toHaveLength(1);
  });
  it("has left before its place in the history came", () => {
    const checker = new AllocationChecker();
    checker.answered(nic("a"), 0);
    checker.leaving(nic("a"), 10);
    checker.mustHold(nic("a"));
    expect(checker.breaches).toEqual([]);
  });
  it("many breaches are counted, not all listed", () => {
    const checker = new AllocationChecker();
    for (let number = 0; number < 60; number++) checker.report(`${number}`);
    expect(checker.breaches).toHaveLength(51);
    expect(checker.breaches.at(-1)).toBe("and 10 more");
  });
});

type Step = (checker: PoolChecker, revision: number) => void;

const application = { apiVersion: "apps/v1", kind: "Deployment", namespace: "shop", name: "web", uid: "u" };
const generated = { subnet: "lan", application, interface: "eth0", reclaim: true, wanted: 2, reason: "" };

/** A pool that has these now; the controller's unless `mine`. */
function pool(name: string, ips: readonly string[] | undefined, more: object = { generated }): Step {
  const [apiVersion, kind] = ["ipam.vendor.io/v1", "IPPool"];
  const spec = { subnet: "10.6.0.0/24", ...(ips === undefined ? {} : { ips }), ...more };
  const object = decodeIpPool({ apiVersion, kind, metadata: { name }, spec }, name);
  return (checker, revision) => checker.writtenPool({ name, revision, object });
}
const mine = (name: string, ips: readonly string[] | undefined): Step => pool(name, ips, {});
const gone =
  (name: string): Step =>
  (checker, revision) =>
    checker.writtenPool({ name, revision, object: undefined });

/** The Subnet's status says so now. */
function subnet(assigned: Readonly<Record<string, readonly string[]>>): Step {
  const name = "lan";
  const [apiVersion, kind] = ["ipam.vendor.io/v1", "Subnet"];
  const pools = Object.entries(assigned).map(([name, ips]) => ({ name, ips }));
  const read = decodeSubnet({ apiVersion, kind, metadata: { name }, spec: { subnet: "10.6.0.0/24" } }, name);
  const object = { ...read, assignments: decodeAssignments({ pools }, name) };
  return (checker, revision) => checker.writtenSubnet({ name, revision, object });
}

const check = (name: string, steps: readonly Step[], breach?: RegExp): void =>
  it(name, () => {
    const checker = new PoolChecker();
    for (const [index, step] of steps.entries()) step(checker, index + 1);
    if (breach === undefined) expect(checker.breaches).toEqual([]);
    else expect(checker.breaches.join("\n")).toMatch(breach);
  });

const [LOW, HIGH] = ["10.6.0.10-10.6.0.19", "10.6.0.20-10.6.0.29"];

describe("generated pools", () => {
  check("two apart", [pool("a", [LOW]), pool("b", [HIGH])]);
  check("one that has another's address", [pool("a", [LOW]), pool("b", [HIGH, "10.6.0.19"])], /revision 2: pool b has 10.6.0.19, and so has pool a/); // biome-ignore format: a row
  check("an address that goes from one to the other", [pool("a", [LOW]), pool("a", []), pool("b", [LOW])]);
  check("an address of one that is gone", [pool("a", [LOW]), gone("a"), pool("b", [LOW])]);
  check("the same address in another space", [pool("a", [LOW]), pool("b", [LOW], { generated, addressSpace: "x" })]);
});

describe("pools made by hand", () => {
  check("two that overlap", [mine("a", [LOW]), mine("b", [LOW])]);
  check("one inside which a pool is generated", [mine("a", undefined), pool("b", [LOW])], /pool b has 10.6.0.10-10.6.0.19, and so has pool a/); // biome-ignore format: a row
  check("one that is made over a generated pool", [pool("a", [LOW]), mine("b", [LOW]), pool("a", [LOW])]);
  check("a generated pool that grows into it", [pool("a", [LOW]), mine("b", [HIGH]), pool("a", [LOW, "10.6.0.20"])], /pool a has 10.6.0.20, and so has pool b/); // biome-ignore format: a row
});

describe("what a Subnet's status says", () => {
  check("assigned first, then given", [subnet({ a: [LOW] }), pool("a", []), pool("a", [LOW])]);
  check("given from two entries", [subnet({ a: [HIGH, LOW] }), pool("a", ["10.6.0.15-10.6.0.24"])]);
  check("taken back first, then unassigned", [subnet({ a: [LOW] }), pool("a", [LOW]), pool("a", []), subnet({})]);
  check("given without it", [subnet({}), pool("a", [LOW])], /pool a has 10.6.0.10-10.6.0.19, which Subnet lan does not assign/); // biome-ignore format: a row
  check("given beyond it", [subnet({ a: [LOW] }), pool("a", [LOW, HIGH])], /has 10.6.0.20-10.6.0.29, which/);
  check("unassigned while the pool has it", [subnet({ a: [LOW] }), pool("a", [LOW]), subnet({})], /revision 3: pool a has/); // biome-ignore format: a row
  check("assigned twice", [subnet({ a: [LOW], b: ["10.6.0.19-10.6.0.22"] })], /Subnet lan assigns 10.6.0.19-10.6.0.22 to a and to b/); // biome-ignore format: a row
});

it("repeats what it was given", () => {
  const checker = new PoolChecker();
  checker.report("etcd is away");
  expect(checker.breaches).toEqual(["revision 0: etcd is away"]);
});
