/**
 * One instance of the Wasm core: its exports, and the exchange buffer through which bytes pass.
 * Used by pool-space.ts and range-set.ts; nothing else sees handles or memory.
 * Effects: none outside the instance.
 */
import { CoreError } from "./core-error.ts";
import { ABI_VERSION, type CoreExports, Status } from "./core-exports.ts";

const FIRST_EXCHANGE_BYTES = 4096;

export class CoreModule {
  readonly exports: CoreExports;
  #octets = new Uint8Array(0);
  #view = new DataView(new ArrayBuffer(0));

  private constructor(exports: CoreExports) {
    this.exports = exports;
    this.reserve(FIRST_EXCHANGE_BYTES);
  }

  /** Compiles and instantiates the module, synchronously. Throws when the bytes are no core of this ABI. */
  static open(wasm: Uint8Array | ArrayBuffer): CoreModule {
    const bytes = wasm instanceof Uint8Array ? new Uint8Array(wasm) : wasm;
    const exports = new WebAssembly.Instance(new WebAssembly.Module(bytes), {}).exports as unknown as CoreExports;
    const major = exports.abi_version() >>> 16;
    if (major !== ABI_VERSION.major) {
      throw new CoreError("abi_version", Status.BAD_ARGUMENT, `major ${major}, wanted ${ABI_VERSION.major}`);
    }
    return new CoreModule(exports);
  }

  /** The exchange buffer for input of `lengthBytes`. The view holds until the next call into the core. */
  reserve(lengthBytes: number): DataView {
    // A view of memory that has grown is detached, and then its length is 0.
    if (lengthBytes > this.#octets.length) {
      this.check("exchange", this.exports.exchange(lengthBytes), `${lengthBytes} bytes`);
      this.#derive();
    }
    return this.#view;
  }

  /** The exchange buffer after a call that wrote output to it: it may have grown and moved. */
  output(): DataView {
    this.#derive();
    return this.#view;
  }

  /** Copies input to the start of the exchange buffer. */
  write(input: Uint8Array): void {
    this.reserve(input.length);
    this.#octets.set(input);
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

  /** The result of an operation that succeeded, else a CoreError. */
  check(operation: string, result: number, got?: string): number {
    if (result < 0) throw new CoreError(operation, result, got);
    return result;
  }
}
