import { describe, expect, it } from "vitest";
import { formatRange } from "../../../../../host/net/range.ts";
import { decodeIpPool, type IpPool } from "../../../../../host/resources/ip-pool.ts";
import { cases } from "../../../../../test/world/rows.ts";
import { ipPool } from "../../../../../test/world/subjects.ts";
import { ip } from "../../../../../test/world/values.ts";
import { type Adoption, type ClusterAddresses, planAdoption } from "../../../blocks/plan-adoption.ts";
import type { RangeMember } from "../../../range-member.ts";
import { memberOf, rangeOf } from "./range-object.ts";

const pool = (name: string, ips?: readonly string[], spec: object = {}): IpPool =>
  decodeIpPool(ipPool(name, "10.6.0.0/24", { ...(ips && { ips }), ...spec }), name);

/** `10.6.0.20 lan shop/a` */
const used = (...texts: string[]): ClusterAddresses["used"] =>
  texts.map((text) => {
    const [address = "", of = "", pod = ""] = text.split(" ");
    return { ip: ip(address), pool: of, holder: `pod ${pod}` };
  });

interface Facts {
  readonly spec?: object;
  /** Beside a and b, which have no blocks. */
  readonly members?: readonly RangeMember[];
  readonly pools: readonly IpPool[];
  readonly adopted?: readonly string[];
  readonly used?: ClusterAddresses["used"];
  readonly others?: readonly ClusterAddresses[];
}

function plan({ spec, members = [], pools, adopted = ["lan"], used = [], others = [] }: Facts): Adoption {
  const member = members.find(({ spec }) => spec.member === "a") ?? memberOf("a");
  return planAdoption({ range: rangeOf(spec), members, member, adopted, own: { name: "a", pools, used }, others });
}

const west = (pools: readonly IpPool[], ...texts: string[]): ClusterAddresses => ({
  name: "west",
  pools,
  used: used(...texts),
});

describe("a pool of whole blocks", () => {
  it("may have them on the hub already", () => {
    const members = [memberOf("a", ["10.6.0.16/28"])];
    expect(plan({ members, pools: [pool("lan", ["10.6.0.16-10.6.0.31"])] }).problems).toEqual([]);
  });

  it("without ips has all of the subnet", () => {
    const found = plan({ members: [memberOf("a", [], {}, 16)], pools: [pool("lan")] });
    expect([Object.keys(found.blocks).length, found.gained, found.problems]).toEqual([16, [], []]);
  });
});

it("ragged ends are gained, but for addresses that the range or the pool excludes, and the edges of the subnet", () => {
  const found = plan({
    spec: { gateway: "10.6.0.1", nodeIPs: ["10.6.0.2-10.6.0.3"] },
    pools: [pool("lan", ["10.6.0.8-10.6.0.19"], { excludeIPs: ["10.6.0.30-10.6.0.31"] })],
  });
  expect(Object.keys(found.blocks)).toEqual(["10.6.0.0/28", "10.6.0.16/28"]);
  expect(found.gained.map(formatRange)).toEqual(["10.6.0.4-10.6.0.7", "10.6.0.20-10.6.0.29"]);
});

it("addresses that a pool excludes stay excluded on the hub: an adoption that broke off has widened the pool", () => {
  const spec = { excludeIPs: ["10.6.0.16-10.6.0.19"] };
  const { excluded } = plan({ spec, pools: [pool("lan", ["10.6.0.16-10.6.0.31"], spec)] });
  expect(excluded.map(formatRange)).toEqual(spec.excludeIPs);
});

const lan = (...ips: string[]) => [pool("lan", ips)];
const whole = lan("10.6.0.16-10.6.0.31");
const leased = (member: string) => [memberOf(member, ["10.6.0.16/28"])];
const otherPool = { "10.6.0.16/28": { pool: "p", request: "r", since: "2026-01-01T00:00:00Z" } };
const a = used("10.6.0.17 lan shop/a");
const cut = (ips: string, ...texts: string[]) => [west([pool("cut", [ips])], ...texts)];
const half = cut("10.6.0.24-10.6.0.31", "10.6.0.25 cut shop/b");

it.each(cases<Facts>`
  a pool that is not there ${{ pools: [] }} => There is no pool "lan" in subnet 10.6.0.0/24
  a pool that leases already ${{ pools: [pool("lan", undefined, { source: { range: "lan" } })] }}
    => leases its blocks from AddressRange "lan" already
  a block of two pools ${{ pools: [...lan("10.6.0.16-10.6.0.23"), pool("x", ["10.6.0.24-10.6.0.31"])] }}
    => Block 10.6.0.16/28 is of several pools: "lan", "x"
  a block that another member has leased ${{ members: leased("b"), pools: lan("10.6.0.16-10.6.0.20"), used: a }}
    => Block 10.6.0.16/28 is leased to "b"; here it has 10.6.0.17 of pod shop/a
  a block of the own cluster's other pool ${{ members: [memberOf("a", [], { blocks: otherPool })], pools: lan("10.6.0.16-10.6.0.20") }}
    => is leased for pool "p"
  a block that two clusters use ${{ pools: lan("10.6.0.16-10.6.0.23"), used: a, others: half }}
    => Block 10.6.0.16/28 is used by two clusters: a (10.6.0.17 of pod shop/a) and west (pool "cut", 10.6.0.25 of pod shop/b)
  an address that is in use twice ${{ pools: whole, used: a, others: [west([], "10.6.0.17 cut shop/b")] }}
    => Address 10.6.0.17 is in use twice: a, pod shop/a; west, pod shop/b
  a range of another cluster that the hub would lease ${{ pools: whole, others: cut("10.6.0.64-10.6.0.70") }}
    => Pool "cut" of west has 10.6.0.64-10.6.0.70, which any member could lease
  the same of the own cluster ${{ pools: [...whole, pool("rest", ["10.6.0.64"])] }}
    => Pool "rest" of a has 10.6.0.64, which
  an address outside of the pool that is in use ${{ pools: whole, used: used("10.6.0.77 lan shop/a") }}
    => outside of the pools' ips are in use: 10.6.0.77 of pod shop/a
  an address of a node that is in use ${{ spec: { nodeIPs: ["10.6.0.17"] }, pools: whole, used: a }}
    => that the range excludes are in use: 10.6.0.17
  a share that is too small ${{ pools: lan("10.6.0.0-10.6.0.127") }} => "a" would have 8 blocks, and may have 4
  a contested member ${{ members: [memberOf("a", [], { contested: true })], pools: whole }} => "a" is contested
`)("in the way is %s", (_, facts, problem) => {
  const also = /Block \S+ is used by two clusters/;
  const { problems } = plan(facts);
  expect(problems.filter((text) => text.includes(problem) || !also.test(text))).toEqual([
    expect.stringContaining(problem),
  ]);
});

it("blocks that other clusters have cut may be excluded, or leased", () => {
  const { problems } = plan({
    spec: { excludeIPs: ["10.6.0.64-10.6.0.79"] },
    members: [memberOf("b", ["10.6.0.32/28"])],
    pools: [pool("lan", ["10.6.0.16-10.6.0.31"])],
    others: [west([pool("cut", ["10.6.0.40", "10.6.0.64-10.6.0.70"])], "10.6.0.65 cut shop/b")],
  });
  expect(problems).toEqual([]);
});
