/** Addresses of machines other than pods. No pool of any address space hands them out. */
import { countLeading } from "../lib/search.ts";
import { compareIp, equalIp, type Ip } from "../net/ip.ts";
import type { Range } from "../net/range.ts";

export interface OccupiedIp {
  readonly ip: Ip;
  /** A clause: `the node has it on "eth0"`. */
  readonly why: string;
}

export class OccupiedIps {
  /** Ascending. */
  readonly #all: readonly OccupiedIp[];

  /** Of several entries with one address the first counts. */
  constructor(entries: readonly OccupiedIp[]) {
    const sorted = entries.toSorted((a, b) => compareIp(a.ip, b.ip));
    this.#all = sorted.filter(({ ip }, index) => {
      const before = sorted[index - 1];
      return before === undefined || !equalIp(before.ip, ip);
    });
  }

  /** Returns the entries in the range, ascending. */
  within({ first, last }: Range): readonly OccupiedIp[] {
    const start = countLeading(this.#all, ({ ip }) => compareIp(ip, first) < 0);
    const end = countLeading(this.#all, ({ ip }) => compareIp(ip, last) <= 0);
    return this.#all.slice(start, end);
  }

  find(ip: Ip): OccupiedIp | undefined {
    return this.within({ first: ip, last: ip })[0];
  }

  /** Returns the addresses in exactly one of both. */
  differenceTo(other: OccupiedIps): Ip[] {
    const missingIn = (those: OccupiedIps, these: OccupiedIps): Ip[] =>
      these.#all.flatMap(({ ip }) => (those.find(ip) === undefined ? [ip] : []));
    return [...missingIn(other, this), ...missingIn(this, other)];
  }
}

export const NONE_OCCUPIED = new OccupiedIps([]);
