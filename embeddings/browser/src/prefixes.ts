/**
 * Arithmetic of prefixes ("10.0.0.0/24"), done by the core. Host bits in what is passed are ignored.
 * Effects: the exchange buffer.
 */
import { Status } from "../../../host/core/core-exports.ts";
import { readIp, widthOf, writeIp } from "../../../host/core/ip-codec.ts";
import type { CoreModule } from "../../../host/core/module.ts";
import { type Family, formatIp } from "../../../host/net/ip.ts";
import { requireIp, requirePrefix } from "./text.ts";

export class Prefixes {
  readonly #core: CoreModule;

  /** @internal */
  constructor(core: CoreModule) {
    this.#core = core;
  }

  /** The lowest address. */
  first(prefix: string): string {
    const { family, length } = this.#pass(prefix);
    return this.#read(family, "prefix_first", this.#core.exports.prefix_first(family, length));
  }

  /** The highest address. */
  last(prefix: string): string {
    const { family, length } = this.#pass(prefix);
    return this.#read(family, "prefix_last", this.#core.exports.prefix_last(family, length));
  }

  /** The network mask: "255.255.255.0" for 24 in family 4. Throws CoreError above 32, or 128 in family 6. */
  mask(family: Family, length: number): string {
    return this.#read(family, "prefix_mask", this.#core.exports.prefix_mask(family, length), `/${length}`);
  }

  /** The prefix of the same length that follows; undefined after the last one. */
  next(prefix: string): string | undefined {
    const { family, length } = this.#pass(prefix);
    const status = this.#core.exports.prefix_next(family, length);
    return status === Status.NONE ? undefined : `${this.#read(family, "prefix_next", status)}/${length}`;
  }

  /**
   * One of the prefixes of `length` into which the prefix can be split, counted from 0; undefined after the last one.
   */
  part(prefix: string, length: number, index: number): string | undefined {
    const { family, length: whole } = this.#pass(prefix);
    const status = this.#core.exports.prefix_part(family, whole, length, index);
    if (status === Status.OUTSIDE) return undefined;
    return `${this.#read(family, "prefix_part", status, `${prefix} in parts of /${length}`)}/${length}`;
  }

  /** The longest prefix that holds both addresses. Throws CoreError when their families differ. */
  common(a: string, b: string): string {
    const [one, other] = [requireIp(a), requireIp(b)];
    const { family } = one;
    if (other.family !== family) this.#core.check("prefix_common", Status.BAD_FAMILY, `${a} and ${b}`);
    const width = widthOf(family);
    const view = this.#core.reserve(2 * width);
    writeIp(view, 0, one);
    writeIp(view, width, other);
    const length = this.#core.check("prefix_common", this.#core.exports.prefix_common(family));
    return `${this.first(`${a}/${length}`)}/${length}`;
  }

  /** Writes the prefix's address where the core reads it. */
  #pass(prefix: string): { readonly family: Family; readonly length: number } {
    const { ip, length } = requirePrefix(prefix);
    writeIp(this.#core.reserve(16), 0, ip);
    return { family: ip.family, length };
  }

  #read(family: Family, operation: string, status: number, got?: string): string {
    this.#core.check(operation, status, got);
    return formatIp(readIp(this.#core.output(), 0, family));
  }
}
