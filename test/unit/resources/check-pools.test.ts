import { expect, it } from "vitest";
import { checkPools, problemsOf } from "../../../host/resources/check-pools.ts";
import { decodeIpPool, type IpPool } from "../../../host/resources/ip-pool.ts";
import { costRatio } from "../../world/cpu-time.ts";
import { ipPool } from "../../world/subjects.ts";

const poolOf = (name: string, subnet: string, more: object = {}): IpPool =>
  decodeIpPool(ipPool(name, subnet, more), "pool");

type Row = [title: string, pools: IpPool[], accepted: string[], problems: string[]];
const ips = (name: string, ...list: string[]) => poolOf(name, "10.0.0.0/24", { ips: list });
const lab = { addressSpace: "lab" };
/** Pool "a" or "z" around pool "b", which is there already. */
const around = (name: string, subnet: string) =>
  `IPPool "${name}" is refused: its subnet ${subnet} partly overlaps 10.0.1.0/24 of IPPool "b"`;

const INSIDE = 'its subnet 10.0.1.0/24 partly overlaps 10.0.0.0/16 of IPPool "a"; make them equal or disjoint';
const [wide, b, all] = [poolOf("a", "10.0.0.0/16"), poolOf("b", "10.0.1.0/24"), poolOf("z", "0.0.0.0/0")];

const routed = (name: string, length: number) => poolOf(name, `10.6.0.0/${length}`, { gateway: "10.6.0.1", ips: [] });
const linked = (name: string, length: number) => poolOf(name, `fd06::/${length}`, { gateway: "fe80::1", ips: [] });
const good = (name: string, length: number, ...ips: string[]): IpPool => {
  return { ...poolOf(name, `10.6.0.0/${length}`, { ips }), isReady: true };
};

it.each<Row>([
  ["equal subnets with disjoint ranges", [ips("a", "10.0.0.1-10.0.0.9"), ips("b", "10.0.0.10")], ["a", "b"], []],
  [
    "equal subnets with shared addresses",
    [ips("a", "10.0.0.1-10.0.0.9", "10.0.0.20"), ips("b", "10.0.0.5", "10.0.0.9-10.0.0.30")],
    ["a", "b"],
    [],
  ],
  ["a subnet inside an earlier one", [wide, b, poolOf("c", "10.1.0.0/24")], ["a", "c"], [`"b" is refused: ${INSIDE}`]],
  ["a subnet around an earlier one", [b, wide, all], ["b"], [around("a", "10.0.0.0/16"), around("z", "0.0.0.0/0")]],
  ["one segment, by its router", [routed("a", 24), routed("b", 23)], ["a", "b"], []],
  ["one segment, when both were good", [good("a", 23), good("b", 24)], ["a", "b"], []],
  ["one segment, shared", [good("a", 23, "10.6.0.5"), good("b", 24, "10.6.0.5")], ["a", "b"], []],
  ["a good pool around another", [routed("a", 24), good("b", 23)], ["a"], ['"b" is refused']],
  ["a router of every link", [linked("a", 64), linked("b", 60)], ["a"], ['"b" is refused']],
  [
    "other families and spaces",
    [poolOf("a", "10.0.0.0/8"), poolOf("b", "10.0.0.0/16", lab), poolOf("c", "::/0"), poolOf("d", "10.0.0.0/24", lab)],
    ["a", "b", "c"],
    ['10.0.0.0/16 of IPPool "b" of address space "lab"'],
  ],
])("checkPools of %s", (_title, pools, accepted, problems) => {
  const check = checkPools(pools);
  expect(check.accepted.map(({ name }) => name)).toEqual(accepted);
  expect(problemsOf(check.accepted, check.refused)).toEqual(
    problems.map((problem) => expect.stringContaining(problem)),
  );
});

const manyPools = (count: number) =>
  Array.from({ length: count }, (_, i) => poolOf(`p${i}`, `fd00:${(i + 1).toString(16)}::/${48 + (i % 32)}`));

it("checkPools does not compare every two pools: 16 times as many take less than a fifth of 256 times as long", () => {
  const [few, many] = [manyPools(250), manyPools(4_000)];
  const check = (pools: readonly IpPool[]) => () => expect(checkPools(pools).accepted).toHaveLength(pools.length);
  expect(costRatio(check(few), check(many))).toBeLessThan(51);
}, 120_000);
