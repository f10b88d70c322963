/** The judge of generated pools: what it lets pass, and that it catches each breach that it is there for. */
import { describe, expect, it } from "vitest";
import { decodeIpPool } from "../../../host/resources/ip-pool.ts";
import { decodeAssignments, decodeSubnet } from "../../../host/resources/subnet.ts";
import { PoolJudge } from "../../../scripts/lab/history/pool-judge.ts";

type Step = (judge: PoolJudge, revision: number) => void;

const application = { apiVersion: "apps/v1", kind: "Deployment", namespace: "shop", name: "web", uid: "u" };
const generated = { subnet: "lan", application, interface: "eth0", reclaim: true, wanted: 2, reason: "" };

/** A pool that has these now; the controller's unless `mine`. */
function pool(name: string, ips: readonly string[] | undefined, more: object = { generated }): Step {
  const [apiVersion, kind] = ["ipam.vendor.io/v1", "IPPool"];
  const spec = { subnet: "10.6.0.0/24", ...(ips === undefined ? {} : { ips }), ...more };
  const object = decodeIpPool({ apiVersion, kind, metadata: { name }, spec }, name);
  return (judge, revision) => judge.writtenPool({ name, revision, object });
}
const mine = (name: string, ips: readonly string[] | undefined): Step => pool(name, ips, {});
const gone =
  (name: string): Step =>
  (judge, revision) =>
    judge.writtenPool({ name, revision, object: undefined });

/** The Subnet's status says so now. */
function subnet(assigned: Readonly<Record<string, readonly string[]>>): Step {
  const name = "lan";
  const [apiVersion, kind] = ["ipam.vendor.io/v1", "Subnet"];
  const pools = Object.entries(assigned).map(([name, ips]) => ({ name, ips }));
  const read = decodeSubnet({ apiVersion, kind, metadata: { name }, spec: { subnet: "10.6.0.0/24" } }, name);
  const object = { ...read, assignments: decodeAssignments({ pools }, name) };
  return (judge, revision) => judge.writtenSubnet({ name, revision, object });
}

const check = (name: string, steps: readonly Step[], breach?: RegExp): void =>
  it(name, () => {
    const judge = new PoolJudge();
    for (const [index, step] of steps.entries()) step(judge, index + 1);
    if (breach === undefined) expect(judge.breaches).toEqual([]);
    else expect(judge.breaches.join("\n")).toMatch(breach);
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

it("says what it was told", () => {
  const judge = new PoolJudge();
  judge.report("etcd is away");
  expect(judge.breaches).toEqual(["revision 0: etcd is away"]);
});
