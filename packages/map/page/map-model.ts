/** A map in the page: the known states of its addresses, as one bit per address and state. */
import { bitsOf, formatIp, type Ip, parseIp } from "../../../host/net/ip.ts";
import type { MapHeader, MapState } from "../server/map-records.ts";
import type { Orientation } from "./hilbert.ts";
import { readSnapshot, setBit, setRun } from "./snapshot.ts";

/** All that a square can be, in the order of the colours. */
export const KINDS = [
  "Free",
  "Bound",
  "Cooling",
  "Kept",
  "Quarantined",
  "InUse",
  "Reserved",
  "Elsewhere",
  "Outside",
] as const;

export type Kind = (typeof KINDS)[number];

/** As the API numbers states: Bound is 1. */
const STATES = KINDS.slice(1, 6) as readonly MapState[];

const BOUND = 1;
const RESERVED = 6;
const ELSEWHERE = 7;
const OUTSIDE = 8;

/** An aligned part of the map: numbers from `first` on, 2^`bits` of them. */
export interface Block {
  readonly first: number;
  readonly bits: number;
}

type Counts = Record<Kind, number>;

export class MapModel {
  readonly header: MapHeader;
  /** Addresses on the map. */
  readonly size: number;
  /** The curve has 4^levels squares; those past `size` are empty. */
  readonly levels: number;
  /** Orientation of the curve: a map that fills half of its square lies on its side. */
  readonly orientation: Orientation;
  /** By kind; undefined: no address is of the kind. Those from Reserved on hold used addresses, too. */
  readonly planes: (Uint32Array | undefined)[] = [];
  /** Addresses that are neither free nor bound: all other planes in one. */
  readonly others: Uint32Array;
  readonly #firsts: readonly bigint[];
  readonly #bits: number;

  constructor(header: MapHeader, snapshots: readonly Uint8Array[]) {
    this.header = header;
    this.#firsts = header.segments.map(({ first }) => parseIp(first)?.value ?? 0n);
    this.#bits = header.segments[0]?.bits ?? 0;
    this.size = this.#firsts.length * 2 ** this.#bits;
    const bits = Math.max(8, Math.ceil(Math.log2(Math.max(1, this.size))));
    this.levels = Math.ceil(bits / 2);
    this.orientation = bits % 2 === 1 ? 1 : 0;
    for (const [at, { state }] of header.planes.entries()) {
      this.planes[STATES.indexOf(state) + 1] = readSnapshot(snapshots[at] ?? new Uint8Array());
    }
    this.#fillOutside();
    for (const { first, last } of header.reserved) {
      this.#fill(RESERVED, parseIp(first)?.value ?? 0n, parseIp(last)?.value ?? -1n);
    }
    for (const { first, last } of header.elsewhere ?? []) {
      this.#fill(ELSEWHERE, parseIp(first)?.value ?? 0n, parseIp(last)?.value ?? -1n);
    }
    this.#keepOutsideApart();
    this.others = this.#newPlane();
    const [one, ...more] = this.planes.slice(BOUND + 1).filter((plane) => plane !== undefined);
    if (one !== undefined) this.others.set(one);
    for (const plane of more) {
      for (let word = 0; word < plane.length; word++) this.others[word] = (this.others[word] ?? 0) | (plane[word] ?? 0);
    }
  }

  /** Returns the number of the kind of an address: a state, else Reserved, Elsewhere, Outside, else Free. */
  kindAt(number: number): number {
    for (let kind = 1; kind <= OUTSIDE; kind++) if (this.#has(kind, number)) return kind;
    return 0;
  }

  /** Takes a change: 0 is free. */
  set(number: number, state: number): void {
    for (let kind = 1; kind <= STATES.length; kind++) {
      const plane = this.planes[kind];
      if (plane !== undefined) setBit(plane, number, kind === state);
      else if (kind === state) setBit(this.#plane(kind), number, true);
    }
    setBit(
      this.others,
      number,
      state > BOUND || [RESERVED, ELSEWHERE, OUTSIDE].some((kind) => this.#has(kind, number)),
    );
  }

  #has(kind: number, number: number): boolean {
    return (((this.planes[kind]?.[number >>> 5] ?? 0) >>> (number & 31)) & 1) === 1;
  }

  addressAt(number: number): string {
    return formatIp({ family: this.header.family, value: this.#valueAt(number) });
  }

  /** Returns undefined for an address that is not on the map. */
  numberOf(ip: Ip): number | undefined {
    if (ip.family !== this.header.family) return undefined;
    const at = this.#firsts.findLastIndex((first) => first <= ip.value);
    const offset = ip.value - (this.#firsts[at] ?? 0n);
    return at < 0 || offset >> BigInt(this.#bits) !== 0n ? undefined : at * 2 ** this.#bits + Number(offset);
  }

  /** Returns the addresses on the map that the pool hands out, as numbers: first and last of each run. */
  ownRuns(): (readonly [first: number, last: number])[] {
    const span = 1n << BigInt(this.#bits);
    return this.header.ranges.flatMap(({ first, last }) => {
      const [low, high] = [parseIp(first)?.value ?? 0n, parseIp(last)?.value ?? -1n];
      return this.#firsts.flatMap((start, at) => {
        const [from, to] = [low > start ? low - start : 0n, high < start + span ? high - start : span - 1n];
        const base = at * 2 ** this.#bits;
        return from > to ? [] : [[base + Number(from), base + Number(to)] as const];
      });
    });
  }

  /** Returns the block as a prefix; of several islands the first and the last address. */
  describe({ first, bits }: Block): string {
    if (bits <= this.#bits) return `${this.addressAt(first)}/${bitsOf(this.header.family) - bits}`;
    const last = Math.min(first + 2 ** bits, this.size) - 1;
    return this.#firsts.length === 1 ? this.header.subnet : `${this.addressAt(first)} to ${this.addressAt(last)}`;
  }

  /** Returns the block as a prefix; of several islands the first address. */
  nameOf({ first, bits }: Block): string {
    return bits <= this.#bits ? this.describe({ first, bits }) : this.addressAt(first);
  }

  /** Counts the kinds of the block's addresses. */
  count({ first, bits }: Block): Counts {
    const counts = Object.fromEntries(KINDS.map((kind) => [kind, 0])) as Counts;
    const end = Math.min(first + 2 ** bits, this.size);
    if (bits < 5 || end % 32 !== 0) {
      for (let number = first; number < end; number++) counts[KINDS[this.kindAt(number)] ?? "Free"]++;
      return counts;
    }
    let rest = Math.max(0, end - first);
    for (let kind = 1; kind <= OUTSIDE; kind++) {
      const plane = this.planes[kind];
      if (plane === undefined) continue;
      let sum = 0;
      for (let word = first >>> 5; word < end >>> 5; word++)
        sum += popCount((plane[word] ?? 0) & ~this.#before(kind, word));
      counts[KINDS[kind] ?? "Free"] = sum;
      rest -= sum;
    }
    counts.Free = rest;
    return counts;
  }

  /** The bits of a word with precedence over a kind: of states, and for Elsewhere and Outside all before them. */
  #before(kind: number, word: number): number {
    let bits = 0;
    if (kind >= RESERVED) for (let each = 1; each < kind; each++) bits |= this.planes[each]?.[word] ?? 0;
    return bits;
  }

  #valueAt(number: number): bigint {
    const first = this.#firsts[Math.floor(number / 2 ** this.#bits)] ?? 0n;
    return first + BigInt(number % 2 ** this.#bits);
  }

  #plane(kind: number): Uint32Array {
    const plane = this.planes[kind] ?? this.#newPlane();
    this.planes[kind] = plane;
    return plane;
  }

  /** Room for whole chunks, as those of a snapshot. */
  #newPlane(): Uint32Array {
    return new Uint32Array(Math.ceil(this.size / 4096) * 128);
  }

  /** Fills the plane of addresses outside the pool's ranges, which ascend. */
  #fillOutside(): void {
    let next = 0n;
    for (const { first, last } of this.header.ranges) {
      const [low, high] = [parseIp(first)?.value ?? 0n, parseIp(last)?.value ?? -1n];
      if (low > next) this.#fill(OUTSIDE, next, low - 1n);
      next = high + 1n;
    }
    this.#fill(OUTSIDE, next, 1n << BigInt(bitsOf(this.header.family)));
  }

  /** Addresses of other clusters are outside of the pool, and count once. */
  #keepOutsideApart(): void {
    const [elsewhere, outside] = [this.planes[ELSEWHERE], this.planes[OUTSIDE]];
    if (elsewhere === undefined || outside === undefined) return;
    for (let word = 0; word < outside.length; word++) outside[word] = (outside[word] ?? 0) & ~(elsewhere[word] ?? 0);
  }

  /** Sets the bits of the addresses `low` to `high` that are on the map. */
  #fill(kind: number, low: bigint, high: bigint): void {
    for (const [at, start] of this.#firsts.entries()) {
      const end = start + (1n << BigInt(this.#bits)) - 1n;
      if (high < start || end < low) continue;
      const from = low < start ? 0 : Number(low - start);
      const to = Number((high > end ? end : high) - start);
      setRun(this.#plane(kind), at * 2 ** this.#bits + from, at * 2 ** this.#bits + to + 1);
    }
  }
}

export function popCount(word: number): number {
  let bits = word - ((word >>> 1) & 0x55555555);
  bits = (bits & 0x33333333) + ((bits >>> 2) & 0x33333333);
  return Math.imul((bits + (bits >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}

/** Reads the answer to GET /api/v1/map (docs/develop/http.md). */
export function readMap(bytes: Uint8Array): MapModel {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (new TextDecoder().decode(bytes.subarray(0, 4)) !== "BRTM" || bytes[4] !== 1) {
    throw new Error("The server answers in a form that this page does not know: reload the page");
  }
  let at = 12 + view.getUint32(8, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(12, at))) as MapHeader;
  const snapshots = header.planes.map((plane) => {
    at += plane.bytes;
    return bytes.subarray(at - plane.bytes, at);
  });
  return new MapModel(header, snapshots);
}
