/**
 * The core as an embedding sees it: exports by name and the exchange buffer, with nothing of host/core in between.
 * Effects: reads the built modules; the instances' memory.
 */
import { readFileSync } from "node:fs";

export type Build = "release" | "debug";

const FOLDERS: Record<Build, string> = { release: "core", debug: "core-debug" };

export function readCore(build: Build): Uint8Array {
  return readFileSync(new URL(`../../../dist/${FOLDERS[build]}/berth-core.wasm`, import.meta.url));
}

const modules = (["release", "debug"] as const).map(
  (build) => [build, new WebAssembly.Module(readCore(build))] as const,
);
const moduleOf = new Map<Build, WebAssembly.Module>(modules);

export class RawCore {
  readonly #exports: { readonly memory: WebAssembly.Memory } & Record<string, unknown>;
  readonly memory: WebAssembly.Memory;

  constructor(build: Build) {
    const module = moduleOf.get(build);
    if (module === undefined) throw new Error(`no build ${build}`);
    this.#exports = new WebAssembly.Instance(module, {}).exports as { memory: WebAssembly.Memory };
    this.memory = this.#exports.memory;
  }

  call(name: string, ...args: number[]): number {
    return (this.#exports[name] as (...args: number[]) => number)(...args);
  }

  /** Writes input to the exchange buffer. */
  put(bytes: Uint8Array): void {
    const at = this.call("exchange", bytes.length);
    if (at < 0) throw new Error(`exchange(${bytes.length}) = ${at}`);
    new Uint8Array(this.memory.buffer).set(bytes, at);
  }

  /** A copy of the first bytes of the exchange buffer. */
  take(length: number): Uint8Array {
    return new Uint8Array(this.memory.buffer.slice(this.call("exchange", 0), this.call("exchange", 0) + length));
  }

  /** Everything that the core remembers. */
  state(): Uint8Array {
    return new Uint8Array(this.memory.buffer.slice(0, this.call("state_bytes")));
  }

  /** A fresh instance of a build with this one's state. */
  clone(build: Build): RawCore {
    const clone = new RawCore(build);
    const missing = this.memory.buffer.byteLength - clone.memory.buffer.byteLength;
    if (missing > 0) clone.memory.grow(missing / 65536);
    new Uint8Array(clone.memory.buffer).set(this.state());
    return clone;
  }
}

/** Big-endian bytes of a number. */
export function bytesOf(value: bigint, length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  let rest = value;
  for (let index = length - 1; index >= 0; index--) {
    bytes[index] = Number(rest & 255n);
    rest >>= 8n;
  }
  return bytes;
}

/** The number that big-endian bytes say. */
export function numberOf(bytes: Uint8Array): bigint {
  return bytes.reduce((value, byte) => (value << 8n) | BigInt(byte), 0n);
}

export function joinBytes(parts: readonly Uint8Array[]): Uint8Array {
  const joined = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}

/** FNV-1a, 64 bits, little-endian. */
export function checksumOf(bytes: Uint8Array): Uint8Array {
  let hash = 0xcbf29ce484222325n;
  for (const byte of bytes) hash = ((hash ^ BigInt(byte)) * 0x100000001b3n) & 0xffffffffffffffffn;
  return bytesOf(hash, 8).reverse();
}
