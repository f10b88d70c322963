/**
 * A pool's map as bytes: its head as JSON, then for each state a snapshot of the core (docs/develop/wasm-abi.md,
 * Snapshots) of the addresses in it.
 *
 *   0  "BRTM" │ 4  version u8, 0 u24 │ 8  length of the head u32, little-endian │ 12  head, UTF-8 │
 *   planes, as the head says
 */
import { widthOf, writeAddress } from "../../../host/core/module.ts";
import type { PoolSpace } from "../../../host/core/pool-space.ts";
import { rangesOf, spansOf, withoutSpans } from "../../../host/core/spans.ts";
import { formatIp } from "../../../host/net/ip.ts";
import { formatPrefix, prefixContains } from "../../../host/net/prefix.ts";
import { type Range, rangeOfPrefix, rangesOverlap } from "../../../host/net/range.ts";
import { MAP_STATES, type MapHeader, type MapState, mapHeader } from "./map-records.ts";
import type { MapAllocation, MapPool, MapReservation } from "./map-source.ts";
import { describeSegments, rangesOfSegments, type Segments, segmentsOf } from "./segments.ts";
import { stateFor, type Viewer } from "./viewer.ts";

const MAP_MAGIC = "BRTM";
const MAP_VERSION = 1;

interface MapQuestion {
  readonly pool: MapPool;
  readonly allocations: Iterable<MapAllocation>;
  readonly reserved: readonly MapReservation[];
  readonly viewer: Viewer;
}

/** Uses memory of the core until it returns. */
export function encodeMap(space: PoolSpace, { pool, allocations, reserved, viewer }: MapQuestion): Uint8Array {
  const inside = [...allocations].filter((each) => isIn(pool, each));
  const segments = segmentsOf(pool.subnet, inside);
  const byState = Map.groupBy(inside, (allocation) => stateFor(viewer, allocation));
  const planes = MAP_STATES.flatMap((state) => {
    const members = byState.get(state);
    return members === undefined ? [] : [encodePlane(space, segments, state, packAddresses(members, segments))];
  });
  return joinMap(headOf({ pool, reserved, viewer, segments }, planes), planes);
}

interface Plane {
  readonly state: MapState;
  readonly used: number;
  readonly snapshot: Uint8Array;
}

/** Returns whether the address lies in the pool's subnet, whichever pool it was claimed from. */
export function isIn(
  { subnet, addressSpace }: MapPool,
  allocation: Pick<MapAllocation, "ip" | "addressSpace">,
): boolean {
  return allocation.addressSpace === addressSpace && prefixContains(subnet, allocation.ip);
}

function packAddresses(allocations: readonly MapAllocation[], { family }: Segments): Uint8Array {
  const width = widthOf(family);
  const view = new DataView(new ArrayBuffer(allocations.length * width));
  for (const [at, { ip }] of allocations.entries()) writeAddress(view, at * width, family, ip.value);
  return new Uint8Array(view.buffer);
}

/** `packed`: addresses of 4 or 16 big-endian bytes each; those outside of the segments are left out. */
function encodePlane(space: PoolSpace, segments: Segments, state: MapState, packed: Uint8Array): Plane {
  using pool = space.createPool({ ranges: rangesOfSegments(segments), masked: [] });
  const used = pool.claimMany(packed);
  return { state, used, snapshot: pool.save() };
}

type HeadQuestion = Pick<MapQuestion, "pool" | "reserved" | "viewer"> & { readonly segments: Segments };

function headOf({ pool, reserved, viewer, segments }: HeadQuestion, planes: readonly Plane[]): MapHeader {
  const { subnet, ranges, excluded, gateway, addressSpace, exceptions, elsewhere = [] } = pool;
  const { family } = subnet.ip;
  const offered = rangesOf(withoutSpans(spansOf(ranges), spansOf(excluded)), family);
  const whole = rangeOfPrefix(subnet);
  const held = reserved
    .filter((each) => each.addressSpace === addressSpace)
    .flatMap(({ name, ranges: all }) => all.map((range) => ({ ...range, name: viewer === "all" ? name : "" })))
    .filter((range) => rangesOverlap(range, whole));
  const leased = elsewhere.flatMap(({ member, ranges: all }) =>
    all.map((range) => ({ ...describeRange(range), member: viewer === "all" ? member : "" })),
  );
  return {
    pool: pool.name,
    subnet: formatPrefix(subnet),
    family,
    segments: describeSegments(segments),
    ...(segments.islands === undefined ? {} : { islands: segments.islands }),
    ranges: offered.map(describeRange),
    reserved: held.map((range) => ({ ...describeRange(range), name: range.name })),
    ...(leased.length === 0 ? {} : { elsewhere: leased }),
    ...(gateway === undefined ? {} : { gateway: formatIp(gateway) }),
    ...(exceptions.length === 0 || viewer !== "all"
      ? {}
      : { exceptions: exceptions.map(({ ip, why }) => ({ address: formatIp(ip), why })) }),
    planes: planes.map(({ state, used, snapshot }) => ({ state, bytes: snapshot.length, used })),
  };
}

function describeRange({ first, last }: Range): { readonly first: string; readonly last: string } {
  return { first: formatIp(first), last: formatIp(last) };
}

function joinMap(head: MapHeader, planes: readonly Plane[]): Uint8Array {
  const text = Buffer.from(JSON.stringify(mapHeader.parse(head)));
  const start = Buffer.alloc(12);
  start.write(MAP_MAGIC, "latin1");
  start.writeUInt8(MAP_VERSION, 4);
  start.writeUInt32LE(text.length, 8);
  return Buffer.concat([start, text, ...planes.map(({ snapshot }) => snapshot)]);
}
