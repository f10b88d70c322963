/** Whether a Subnet has addresses that no pool has. */
import { expect, it } from "vitest";
import { SubnetUse } from "../../../../host/controller/conditions/subnet-use.ts";
import type { ControlledPool, ControlledSubnet } from "../../../../host/controller/objects.ts";
import { generatedPool, subnet } from "./judged.ts";

/** Returns a Subnet of ten addresses; `assigned`: those that its status says the pools have. */
function blue(assigned: readonly string[] = [], name = "blue"): ControlledSubnet {
  const pools = assigned.map((ips, index) => ({ name: `p${index}`, ips: [ips] }));
  return subnet(name, { subnet: "10.6.0.0/24", ips: ["10.6.0.1-10.6.0.10"] }, { status: { pools } });
}

const holds = (name: string, ips: string, from = "blue"): ControlledPool =>
  generatedPool(name, { ips: [ips], wanted: 5, from });

function useOf(subnets: readonly ControlledSubnet[], pools: readonly ControlledPool[]): SubnetUse {
  return new SubnetUse({ pools, subnets, reserved: [] });
}

const hasRoom = (use: SubnetUse, subnet: ControlledSubnet): boolean => (use.numbersOf(subnet)?.free ?? 0) > 0;

const [HALF, REST, ALL] = ["10.6.0.1-10.6.0.5", "10.6.0.6-10.6.0.10", "10.6.0.1-10.6.0.10"] as const;
const given = { status: { pools: [{ name: "g", ips: ["fd00::1"] }] } };
const GREEN = subnet("green", { subnet: "fd00::/120", ips: ["fd00::1-fd00::2"] }, given);

it.each<[what: string, hasRoom: boolean, subnets: readonly ControlledSubnet[], pools: readonly ControlledPool[]]>([
  ["exactly all are assigned, and no pool has them yet", false, [blue([HALF, REST])], []],
  ["pools have all of them, of which its status says nothing", false, [blue()], [holds("a", HALF), holds("b", REST)]],
  ["half is assigned, and another pool has the rest", false, [blue([HALF])], [holds("b", REST)]],
  ["a pool has what is assigned to it, and as many are left", true, [blue([HALF])], [holds("p0", HALF)]],
  ["a pool has what is assigned to it, and that is all", false, [blue([ALL])], [holds("p0", ALL)]],
  ["another Subnet with the same addresses has assigned all of them", false, [blue(), blue([ALL], "twin")], []],
  ["a pool of that one has all of them", false, [blue(), blue([], "twin")], [holds("a", ALL, "twin")]],
  ["a Subnet of the other family has assigned some", true, [blue([HALF]), GREEN], []],
])("a Subnet of ten has room if %s: %s", (_, wanted, subnets, pools) => {
  const [first] = subnets;
  expect(hasRoom(useOf(subnets, pools), first ?? expect.fail())).toBe(wanted);
}); // biome-ignore format: a table

it("the status of another Subnet that cannot be read assigns nothing", () => {
  const bad = subnet("twin", { subnet: "10.6.0.0/24", ips: [ALL] }, { status: { pools: [{ name: "p", ips: ["x"] }] } });
  const own = blue([HALF]);
  const use = useOf([own, bad], []);
  expect([hasRoom(use, own), use.faultOf(bad) === undefined]).toEqual([true, false]);
  expect(() => use.numbersOf(bad)).toThrow();
});
