import { describe, expect, it } from "vitest";
import { formatRange } from "../../../host/net/range.ts";
import { decodeIpPool } from "../../../host/resources/ip-pool.ts";
import { locateAddress } from "../../../host/resources/locate-address.ts";
import {
  describeSource,
  encodeSourceStatus,
  findDoubt,
  NO_REPORT,
  otherMemberOf,
} from "../../../host/resources/pool-source.ts";
import { LEASED, leasingPool, seenAt } from "../../world/leasing-pool.ts";
import { cases } from "../../world/rows.ts";
import { ipPool } from "../../world/subjects.ts";
import { ip, prefix, range } from "../../world/values.ts";

const ALL = ["Resting", "New", "Active", "Draining", "Returning", "Disputed"].map(
  (state, index) => `10.6.0.${(2 * index + 1) * 16}/28 ${state}`,
);

const poolOf = (spec: object, status?: unknown) =>
  decodeIpPool({ ...ipPool("blue", "10.6.0.0/24", spec), status }, "pool");

describe("the addresses of a pool with a source", () => {
  it.each(cases<readonly string[]>`
    are none without a block, and not the subnet ${[]} => none
    are those of blocks that are New, Active or Draining ${ALL}
      => 10.6.0.48-10.6.0.63 10.6.0.80-10.6.0.95 10.6.0.112-10.6.0.127
    are joined ${["10.6.0.32/28 New", "10.6.0.16/28 Active"]} => 10.6.0.16-10.6.0.47
    are those of its subnet ${["10.7.0.16/28 Active", "10.6.0.0/20 Active", "10.6.0.16/28 Active"]} => 10.6.0.16-10.6.0.31
  `)("%s", (_what, blocks, wanted) => {
    const { ranges } = leasingPool("blue", "10.6.0.0/24", blocks).spec;
    expect(ranges.map(formatRange).join(" ") || "none").toBe(wanted);
  });

  it("leave out addresses that no pod can have", () => {
    const { ranges } = leasingPool("six", "::/120", ["::/124 Active"]).spec;
    expect(ranges.map(formatRange)).toEqual(["::2-::f"]);
  });

  it("may be parts of a prefix", () => {
    const { source } = poolOf({ source: { prefix: "10.6.0.128/25", blockSize: 28 } });
    expect(source?.prefix).toEqual({ prefix: prefix("10.6.0.128/25"), blockSize: 28 });
    expect(describeSource(source ?? { range: "" })).toBe("prefix 10.6.0.128/25");
    expect(describeSource({ range: "lan" })).toBe('AddressRange "lan"');
  });

  const blocksOf = (...blocks: readonly object[]) => ({ source: { epoch: "e1", blocks } });
  const good = { block: "10.6.0.16/28", state: "New" };
  it.each<[status: unknown]>([
    ...([[undefined], ["nonsense"], [{ source: 7 }], [{ source: { epoch: "e1", blocks: "nonsense" } }]] as [unknown][]),
    [blocksOf({ ...good, state: "Lost" })],
    [blocksOf(good, { block: "x", state: "New" })],
  ])("are none when the status is %j", (status) => {
    const { spec, source } = poolOf({ source: { range: "seg" } }, status);
    const nothing = { range: "seg", epoch: "", asOf: "", blocks: [], excluded: [], problem: "" };
    expect([spec.ranges, source]).toEqual([[], nothing]);
  });

  it("are those of spec.ips in a pool without one, whatever its status says", () => {
    const status = { source: { epoch: "e1", blocks: [{ block: "10.6.0.16/28", state: "Active" }] } };
    const { spec, source } = poolOf({ ips: ["10.6.0.7"] }, status);
    expect([spec.ranges.map(formatRange), source]).toEqual([["10.6.0.7"], undefined]);
  });
});

it("a status that was written is read", () => {
  const { source } = leasingPool("blue", "10.6.0.0/24", ALL);
  const written = source && encodeSourceStatus(source);
  expect(poolOf({ source: { range: "seg" } }, { source: written }).source).toEqual(source);
  expect(written?.blocks[0]).toEqual({ block: "10.6.0.16/28", state: "Resting" });
});

it("excluded ranges are joined, and of too many the last ones are one", () => {
  const excluded = Array.from({ length: 1_100 }, (_, index) => range(`10.6.${index >> 7}.${2 * (index & 127)}`));
  const written = (ranges: typeof excluded) =>
    encodeSourceStatus({ epoch: "e1", asOf: LEASED, blocks: [], excluded: ranges }).excluded;
  const few = written([...excluded, ...excluded]);
  const ends = [few.length, few[0], few[1_022], few[1_023]];
  expect(ends).toEqual([1_024, "10.6.0.0", "10.6.7.252", "10.6.7.254-10.6.8.150"]);
  expect(written([range("10.6.0.17"), range("10.6.0.16")])).toEqual(["10.6.0.16-10.6.0.17"]);
});

describe("the report about other clusters", () => {
  const report = {
    ...{ reason: "HubAway", heard: "2026-11-27T00:00:00.000Z", member: "east", share: 4 },
    others: [{ member: "west", blocks: 2, ranges: [range("10.6.0.32-10.6.0.63")] }],
  };
  const read = (source: unknown) => poolOf({ source: { range: "seg" } }, { source }).source;

  it("is read as it was written, and names the cluster of an address", () => {
    const source = read(encodeSourceStatus({ epoch: "e1", asOf: LEASED, blocks: [], report }));
    expect(source?.report).toEqual(report);
    const memberOf = (text: string) => source && otherMemberOf(source, ip(text));
    expect([memberOf("10.6.0.40"), memberOf("10.6.0.64")]).toEqual(["west", undefined]);
  });

  it("costs no block if it cannot be read", () => {
    const blocks = [{ block: "10.6.0.16/28", state: "Active" }];
    const source = read({ epoch: "e1", blocks, others: "nonsense" });
    expect([source?.blocks.length, source?.report]).toEqual([1, undefined]);
  });

  it("is bounded: the ranges of all members together, and never the number of blocks", () => {
    const ranges = Array.from({ length: 400 }, (_, index) => range(`10.6.${index >> 7}.${2 * (index & 127)}`));
    const others = ["a", "b", "c"].map((member) => ({ member, blocks: 400, ranges }));
    const written = encodeSourceStatus({ epoch: "e1", asOf: LEASED, blocks: [], report: { ...report, others } });
    const counts = written.others?.map(({ blocks, ips }) => `${blocks} ${ips.length}`);
    expect(counts).toEqual(["400 400", "400 112", "400 0"]);
  });
});

type Of = { readonly epoch?: string; readonly asOf?: string; readonly range?: string };
const LONG = /: the cluster was off, had no controller, or was out of this node's reach, since 2026-/;

it.each<[what: string, seen: ReturnType<typeof seenAt>, of: Of, doubt: RegExp | undefined]>([
  ["confirmed", seenAt("e1"), {}, undefined],
  ["of an earlier epoch", seenAt("e2"), {}, /^until .* in this epoch of the registry$/],
  ["of a prefix", seenAt("e2"), { range: "10.6.0.0/24" }, /^until the IPAM of record has confirmed its blocks in/],
  ["of a registry that is not known yet", seenAt(undefined), {}, /in this epoch/],
  ["of no epoch", seenAt(""), { epoch: "" }, /in this epoch/],
  ["of an agent that has started seven minutes later", seenAt("e1", 7.9), {}, undefined],
  ["of a cluster that was off for longer", seenAt("e1", 8), {}, LONG],
  ["of a clock that is behind", seenAt("e1", -60), {}, undefined],
  ["never confirmed", seenAt("e1"), { asOf: "" }, /reach, all the time$/],
  ["of no time", seenAt("e1"), { asOf: "soon" }, /since soon$/],
])("blocks %s", (_what, seen, of, doubt) => {
  const source = { range: "seg", epoch: "e1", asOf: LEASED, blocks: [], excluded: [], problem: "", ...of };
  const found = findDoubt(source, seen);
  if (doubt === undefined) expect(found).toBeUndefined();
  else expect(found).toMatch(doubt);
});

const RESTING = "10.6.0.16/28";

it.each<[address: string, why: string | undefined, block: string | undefined]>([
  ["10.6.0.49", undefined, '10.6.0.48/28 of AddressRange "seg", New'],
  ["10.6.0.17", `its block ${RESTING} is Resting, and gives no addresses`, `${RESTING} of AddressRange "seg", Resting`],
  ["10.6.0.1", "no block that the pool has leased has it", undefined],
  ["10.6.0.32", 'its block of AddressRange "seg" is cluster "west"\'s', undefined],
])("why %s is not given: %s", (address, excluded, block) => {
  const pool = leasingPool("blue", "10.6.0.0/24", ALL);
  const others = [{ member: "west", blocks: 1, ranges: [range("10.6.0.32-10.6.0.47")] }];
  const source = pool.source && { ...pool.source, report: { ...NO_REPORT, others } };
  const place = { pool: "blue", addressSpace: "", subnet: "10.6.0.0/24", excluded, block };
  expect(locateAddress(ip(address), [{ ...pool, source }], [])).toEqual([place]);
});
