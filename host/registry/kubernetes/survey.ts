/**
 * Which addresses of small pools anybody has, asked from the API server by name (allocation rule 11).
 * Effects: lists of the API server, one at a time for each pool.
 */
import { bitsOf, type Ip } from "../../net/ip.ts";
import { parseAllocationName } from "../../resources/ip-allocation.ts";
import { decodeAddress, encodeAddress } from "../address-bytes.ts";
import type { AddressSpan } from "../registry.ts";
import type { AllocationObjects, CallTerms } from "./allocation-objects.ts";

/** The questions of one pool: one is asked, and one more may wait for all who came meanwhile. */
interface Flights {
  current: Promise<readonly string[]>;
  next?: Promise<readonly string[]>;
}

export class Survey {
  readonly #objects: AllocationObjects;
  readonly #terms: CallTerms;
  readonly #flights = new Map<string, Flights>();

  constructor(objects: AllocationObjects, terms: CallTerms) {
    this.#objects = objects;
    this.#terms = terms;
  }

  /** All names of the pool. An answer that was asked for before the call does not count: it may be older than what the caller knows. */
  names(pool: string): Promise<readonly string[]> {
    const flights = this.#flights.get(pool);
    if (flights === undefined) return this.#start(pool);
    flights.next ??= flights.current.then(
      () => this.#start(pool),
      () => this.#start(pool),
    );
    return flights.next;
  }

  #start(pool: string): Promise<readonly string[]> {
    const current = this.#objects.listNames(pool, this.#terms).finally(() => {
      if (this.#flights.get(pool) === flights && flights.next === undefined) this.#flights.delete(pool);
    });
    const flights: Flights = { current };
    this.#flights.set(pool, flights);
    return current;
  }
}

/** The addresses of the names that lie in the span, and the packed ones, each once and in order: 4 or 16 big-endian bytes each. */
export function packUsed(span: AddressSpan, names: readonly string[], packed: Uint8Array): Uint8Array {
  const width = bitsOf(span.family) / 8;
  const found = new Map<bigint, Ip>();
  const add = (ip: Ip): Map<bigint, Ip> => found.set(ip.value, ip);
  for (let at = 0; at < packed.length; at += width) add(decodeAddress(packed.subarray(at, at + width)));
  for (const name of names) {
    const parsed = parseAllocationName(name);
    if (parsed !== undefined && isWithin(span, parsed)) add(parsed.ip);
  }
  const sorted = [...found.values()].sort((a, b) => (a.value < b.value ? -1 : 1));
  const bytes = new Uint8Array(sorted.length * width);
  for (const [index, ip] of sorted.entries()) bytes.set(encodeAddress(ip), index * width);
  return bytes;
}

function isWithin({ space, family, first, last }: AddressSpan, { ip, addressSpace }: { ip: Ip; addressSpace: string }) {
  return space === addressSpace && family === ip.family && first <= ip.value && ip.value <= last;
}
