/** A map as the server encodes it with the core, and as the page reads it, address by address. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readCoreWasm } from "../../../../host/core/instance.ts";
import { PoolSpace } from "../../../../host/core/pool-space.ts";
import { formatIp, parseIp } from "../../../../host/net/ip.ts";
import { parsePrefix } from "../../../../host/net/prefix.ts";
import { parseRange, rangeContains } from "../../../../host/net/range.ts";
import type { AllocationState } from "../../../../host/resources/ip-allocation.ts";
import { Seeded } from "../../../../test/world/seeded.ts";
import { LIGHT } from "../../page/colours.ts";
import { squareOf } from "../../page/hilbert.ts";
import { KINDS, type Kind, readMap } from "../../page/map-model.ts";
import { countBits, TILE, TilePainter } from "../../page/tiles.ts";
import { encodeMap } from "../../server/encode-map.ts";
import { MAP_STATES } from "../../server/map-records.ts";
import type { MapAllocation, MapPool } from "../../server/map-source.ts";

const space = PoolSpace.open(readCoreWasm());
const SEED = Number(process.env.SEED ?? 20261122);

function poolOf(subnet: string, ranges: readonly string[], excluded: readonly string[] = []): MapPool {
  const prefix = parsePrefix(subnet);
  if (prefix === undefined) throw new Error(subnet);
  const parse = (texts: readonly string[]) => texts.flatMap((text) => parseRange(text) ?? []);
  const common = {
    gateway: undefined,
    exceptions: [],
    isDefault: false,
    isDisabled: false,
    generated: undefined,
    conditions: [],
  };
  return {
    name: "blue",
    subnet: prefix,
    addressSpace: "",
    ranges: parse(ranges),
    excluded: parse(excluded),
    ...common,
  };
}

function allocation(address: string, state: AllocationState, namespace = "shop"): MapAllocation {
  const ip = parseIp(address);
  if (ip === undefined) throw new Error(address);
  const holder = { namespace, pod: "web-0", ifName: "eth0", node: "n1" };
  return { ip, addressSpace: "", pool: "blue", state, holders: [holder] };
}

const states = MAP_STATES.filter((state) => state !== "InUse");

describe("a map", () => {
  it.each([
    ["10.0.0.0/29", "10.0.0.1-10.0.0.5"],
    ["10.0.0.0/24", "10.0.0.10-10.0.0.200"],
    ["10.0.0.0/23", "10.0.0.0-10.0.1.255"],
    ["10.0.0.0/17", "10.0.3.0-10.0.77.4"],
    ["10.0.0.0/16", "10.0.0.0-10.0.255.255"],
    ["fd00::/116", "fd00::-fd00::fff"],
  ])("of %s is the same for the page as for the server", (subnet, range) => {
    const random = new Seeded(SEED);
    const bare = poolOf(subnet, [range]);
    const { ip, length } = bare.subnet;
    const size = 2 ** ((ip.family === 4 ? 32 : 128) - length);
    const wanted = new Map<number, AllocationState>();
    // Runs, and single addresses.
    for (let turn = 0; turn < 200; turn++) {
      const first = random.below(size);
      const state = random.pick(states);
      for (let at = first; at < Math.min(size, first + random.pick([1, 1, 1, 70])); at++) wanted.set(at, state);
    }
    const text = (number: number) => formatIp({ ...ip, value: ip.value + BigInt(number) });
    // Also of a part that the pool has, and that is reserved.
    const leased = [`${text(0)}-${text(3)}`, `${text(size - 3)}-${text(size - 2)}`].flatMap(
      (each) => parseRange(each) ?? [],
    );
    const pool = { ...bare, elsewhere: [{ member: "west", blocks: 2, ranges: leased }] };
    const allocations = [...wanted].map(([number, state]) => allocation(text(number), state));
    const reserved = [
      { name: "lab", addressSpace: "", ranges: [parseRange(`${text(2)}-${text(5)}`)].flatMap((r) => r ?? []) },
    ];
    const model = readMap(encodeMap(space, { pool, allocations, reserved, viewer: "all" }));
    expect(model.size).toBe(size);
    const kinds = Array.from({ length: size }, (_, number): Kind => {
      const state = wanted.get(number);
      if (state !== undefined) return state;
      if (number >= 2 && number <= 5) return "Reserved";
      const here = { ...ip, value: ip.value + BigInt(number) };
      if (leased.some((each) => rangeContains(each, here))) return "Elsewhere";
      return pool.ranges.some((each) => rangeContains(each, here)) ? "Free" : "Outside";
    });
    expect(Array.from({ length: size }, (_, number) => KINDS[model.kindAt(number)])).toEqual(kinds);
    const counts = model.count({ first: 0, bits: Math.log2(size) });
    for (const kind of KINDS) expect(counts[kind], kind).toBe(kinds.filter((each) => each === kind).length);
    for (const number of [0, 1, size - 1]) {
      expect(model.addressAt(number)).toBe(text(number));
      expect(model.numberOf({ ...ip, value: ip.value + BigInt(number) })).toBe(number);
    }
  });

  it("of a /64 shows the islands in use, each with its neighbours", () => {
    const pool = poolOf("fd00::/64", ["fd00::-fd00::ffff:ffff:ffff:ffff"]);
    const used = ["fd00::1", "fd00::2:0:0:ff00", "fd00::ffff:ffff:ffff:ffff"];
    const allocations = used.map((address) => allocation(address, "Bound"));
    const model = readMap(encodeMap(space, { pool, allocations, reserved: [], viewer: "all" }));
    expect([model.size, model.header.islands]).toEqual([768, 3]);
    expect(model.count({ first: 0, bits: 10 })).toMatchObject({ Bound: 3, Free: 765 });
    const numbers = used.map((address) => model.numberOf(parseIp(address) ?? { family: 6, value: 0n }));
    expect(numbers).toEqual([1, 256, 767]);
    expect(numbers.map((number) => model.addressAt(number ?? 0))).toEqual(used);
    expect(model.numberOf({ family: 6, value: (0xfdn << 120n) | 0x1234_0000n })).toBeUndefined();
  });

  it("hides whose the addresses of other namespaces are", () => {
    const pool = poolOf("10.0.0.0/24", ["10.0.0.0-10.0.0.255"]);
    const allocations = [
      allocation("10.0.0.1", "Bound", "shop"),
      allocation("10.0.0.2", "Kept", "mail"),
      { ...allocation("10.0.0.3", "Cooling", "shop"), holders: [] },
    ];
    const model = readMap(encodeMap(space, { pool, allocations, reserved: [], viewer: new Set(["shop"]) }));
    expect([1, 2, 3, 4].map((number) => KINDS[model.kindAt(number)])).toEqual(["Bound", "InUse", "InUse", "Free"]);
  });

  it("follows changes", () =>
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.integer({ min: 0, max: 4095 }), fc.integer({ min: 0, max: 5 }))), (changes) => {
        const pool = poolOf("10.0.0.0/20", ["10.0.0.0-10.0.15.255"]);
        const model = readMap(encodeMap(space, { pool, allocations: [], reserved: [], viewer: "all" }));
        const twin = new Map<number, number>();
        for (const [number, state] of changes) {
          model.set(number, state);
          twin.set(number, state);
        }
        for (const [number, state] of twin) expect(model.kindAt(number)).toBe(state);
        const used = [...twin.values()].filter((state) => state !== 0).length;
        expect(model.count({ first: 0, bits: 12 }).Free).toBe(4096 - used);
      }),
    ));

  it("is refused by the page when it is cut short, or of another version", () => {
    const pool = poolOf("10.0.0.0/16", ["10.0.0.0-10.0.255.255"]);
    const allocations = Array.from({ length: 900 }, (_, at) =>
      allocation(`10.0.${at % 250}.${(7 * at) % 256}`, "Bound"),
    );
    const bytes = encodeMap(space, { pool, allocations, reserved: [], viewer: "all" });
    expect(() => readMap(bytes.subarray(0, bytes.length - 600))).toThrow("end too early");
    expect(() => readMap(Uint8Array.of(...bytes.subarray(0, 4), 2, ...bytes.subarray(5)))).toThrow("reload the page");
  });

  it("has the same pixels when a tile is painted as when each is asked for alone", () => {
    const random = new Seeded(SEED);
    const pool = poolOf("10.0.0.0/8", ["10.0.0.0-10.200.255.255"]);
    const model = readMap(encodeMap(space, { pool, allocations: [], reserved: [], viewer: "all" }));
    for (let turn = 0; turn < 400_000; turn++) model.set(random.below(2 ** 24), random.pick([1, 1, 1, 2, 4]));
    const painter = new TilePainter(model, LIGHT);
    const pixels = new Uint32Array(TILE * TILE);
    for (const level of [0, 1, 2, 3, 4]) {
      const above = model.levels - 8 - level;
      const index = random.below(4 ** above);
      const tile = squareOf(index, above, model.orientation);
      painter.paint(pixels, level, tile.x, tile.y);
      const wanted = Array.from({ length: 2_000 }, () => {
        const inside = random.below(4 ** 8);
        const { x, y } = squareOf(inside, 8, tile.orientation);
        return [pixels[y * TILE + x], painter.pixelAt((index * 4 ** 8 + inside) * 4 ** level, level)] as const;
      });
      expect(wanted.filter(([painted, single]) => painted !== single)).toEqual([]);
    }
  });

  it("counts the addresses of a pixel as one by one", () =>
    fc.assert(
      fc.property(
        fc.uint32Array({ minLength: 128, maxLength: 128 }),
        fc.integer({ min: 0, max: 5 }),
        (plane, level) => {
          const each = 4 ** level;
          for (let start = 0; start < 4096; start += each) {
            let wanted = 0;
            for (let at = start; at < start + each; at++) wanted += ((plane[at >>> 5] ?? 0) >>> (at & 31)) & 1;
            expect(countBits(plane, start, level)).toBe(wanted);
          }
        },
      ),
      { numRuns: 20 },
    ));
});
