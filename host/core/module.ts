/**
 * One instance of the Wasm core: its exports, and the exchange buffer through which bytes pass; addresses and ranges
 * there are 4 or 16 bytes each, big-endian.
 * Effects: none outside the instance.
 */
import { bitsOf, type Family } from "../net/ip.ts";
import { CoreError } from "./core-error.ts";
import { ABI_VERSION, type CoreExports, Status } from "./core-exports.ts";

const FIRST_EXCHANGE_BYTES = 4096;

/** Both ends belong to the span; `first` ≤ `last`. */
export interface Span {
  readonly first: bigint;
  readonly last: bigint;
}

/** Returns the exports of a fresh instance, untouched. Throws if the module has another ABI. */
export function openExports(module: WebAssembly.Module): CoreExports {
  const exports = new WebAssembly.Instance(module, {}).exports as unknown as CoreExports;
  const major = exports.abi_version() >>> 16;
  if (major === ABI_VERSION.major) return exports;
  throw new CoreError("abi_version", Status.BAD_ARGUMENT, `major ${major}, wanted ${ABI_VERSION.major}`);
}

export class CoreModule {
  readonly exports: CoreExports;
  #octets = new Uint8Array(0);
  #view = new DataView(new ArrayBuffer(0));
  #isShared = false;

  private constructor(module: WebAssembly.Module) {
    this.exports = openExports(module);
  }

  /** Instantiates the module, compiled first if given as bytes. Synchronous. Throws for a core of another ABI. */
  static open(wasm: Uint8Array | ArrayBuffer | WebAssembly.Module): CoreModule {
    const bytes = wasm instanceof Uint8Array ? new Uint8Array(wasm) : wasm;
    const core = new CoreModule(bytes instanceof WebAssembly.Module ? bytes : new WebAssembly.Module(bytes));
    core.reserve(FIRST_EXCHANGE_BYTES);
    return core;
  }

  /**
   * Returns the exports for a caller that bypasses this class. From then on the buffer's position is read before each
   * call, because such calls may move it.
   */
  share(): CoreExports {
    this.#isShared = true;
    return this.exports;
  }

  /** Returns the exchange buffer for input of `lengthBytes`. The view holds until the next call into the core. */
  reserve(lengthBytes: number): DataView {
    if (this.#isShared) this.#derive();
    // A view of memory that has grown is detached, and then its length is 0.
    if (lengthBytes > this.#octets.length) {
      this.check("exchange", this.exports.exchange(lengthBytes), `${lengthBytes} bytes`);
      this.#derive();
    }
    return this.#view;
  }

  /** Returns the exchange buffer after a call that wrote output to it: it may have grown and moved. */
  output(): DataView {
    this.#derive();
    return this.#view;
  }

  /** Copies input to the start of the exchange buffer. */
  write(input: Uint8Array): void {
    this.reserve(input.length);
    // Without input no room was reserved: the view may be of memory that has grown, and writing even zero bytes would
    // throw.
    if (input.length > 0) this.#octets.set(input);
  }

  /** Copies addresses, 4 or 16 big-endian bytes each, to the exchange buffer. Returns their number. */
  writeAddresses(operation: string, family: Family, packed: Uint8Array): number {
    const width = widthOf(family);
    if (packed.length % width !== 0) {
      throw new CoreError(operation, Status.BAD_ARGUMENT, `${packed.length} bytes, wanted a multiple of ${width}`);
    }
    this.write(packed);
    return packed.length / width;
  }

  /** Returns a copy of the output's first bytes. */
  read(lengthBytes: number): Uint8Array {
    this.#derive();
    return this.#octets.slice(0, lengthBytes);
  }

  /** Returns the handle of a set, which the caller drops. The spans may stand in any order and overlap. */
  createSet(family: Family, spans: readonly Span[]): number {
    const width = widthOf(family);
    const view = this.reserve(2 * width * spans.length);
    for (const [at, { first, last }] of spans.entries()) {
      writeAddress(view, 2 * at * width, family, first);
      writeAddress(view, (2 * at + 1) * width, family, last);
    }
    return this.check("set_create", this.exports.set_create(family, spans.length), `${spans.length} ranges`);
  }

  #derive(): void {
    const start = this.exports.exchange(0);
    const lengthBytes = this.exports.exchange_size();
    const buffer = this.exports.memory.buffer;
    if (this.#octets.buffer === buffer && this.#octets.byteOffset === start && this.#octets.length === lengthBytes)
      return;
    this.#octets = new Uint8Array(buffer, start, lengthBytes);
    this.#view = new DataView(buffer, start, lengthBytes);
  }

  /** Returns the result of an operation that succeeded, else throws CoreError. */
  check(operation: string, result: number, got?: string): number {
    if (result >= 0) return result;
    // A failed operation may have moved the exchange buffer.
    if (this.exports.exchange_size() > 0) this.#derive();
    throw new CoreError(operation, result, got);
  }
}

/** Bytes of an address of the family. */
export function widthOf(family: Family): 4 | 16 {
  return family === 4 ? 4 : 16;
}

export function writeAddress(view: DataView, offset: number, family: Family, value: bigint): void {
  if (family === 4) {
    view.setUint32(offset, Number(value));
  } else {
    view.setBigUint64(offset, value >> 64n);
    view.setBigUint64(offset + 8, value); // the view keeps the low 64 bits
  }
}

export function readAddress(view: DataView, offset: number, family: Family): bigint {
  if (family === 4) return BigInt(view.getUint32(offset));
  return (view.getBigUint64(offset) << 64n) | view.getBigUint64(offset + 8);
}

/** Reads a 17-byte address count. */
export function readSize(view: DataView, offset: number): bigint {
  const high = BigInt(view.getUint8(offset)) << BigInt(bitsOf(6));
  return high | readAddress(view, offset + 1, 6);
}
