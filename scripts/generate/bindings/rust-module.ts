/**
 * The core as Rust: a method for each of its functions. embeddings/rust/src/raw/memory.rs has the memory they work on.
 * Set-up writes it, and rustfmt leaves it alone.
 */
import { createHash } from "node:crypto";
import type { GeneratedText } from "../generated-text.ts";
import { decodeModule, type WasmFunction, type WasmModule } from "../wasm/decode-module.ts";
import { type Dialect, indent, translateFunction } from "../wasm/translate-function.ts";

const TYPE = { i32: "u32", i64: "u64" } as const;
const SIGNED = { i32: "i32", i64: "i64" } as const;

const METHODS = { add: "wrapping_add", sub: "wrapping_sub", mul: "wrapping_mul" } as const;
const OPERATORS = { div_u: "/", rem_u: "%", and: "&", or: "|", xor: "^" } as const;
const COUNTERS = { clz: "leading_zeros", ctz: "trailing_zeros", popcnt: "count_ones" } as const;

function namesOf({ functions, exports }: WasmModule): string[] {
  const names = functions.map((_, index) => `f${index}`);
  for (const [name, index] of exports) names[index] = name;
  return names;
}

function dialectOf(names: readonly string[]): Dialect {
  return {
    literal: (value, type) => `${value}${TYPE[type]}`,
    signed: ({ text, type, literal }) => {
      const own = type === "i64" ? "i64" : "i32";
      return literal === undefined ? `(${text} as ${own})` : `${BigInt.asIntN(own === "i64" ? 64 : 32, literal)}${own}`;
    },
    numberOf: (condition) => `u32::from(${condition})`,
    arithmetic: (name, a, b) =>
      name === "add" || name === "sub" || name === "mul"
        ? `${a}.${METHODS[name]}(${b})`
        : `${a} ${OPERATORS[name]} ${b}`,
    shift: (name, a, by, type) => {
      const count = typeof by === "number" ? by : `(${by})`;
      if (name === "shr_s") return `((${a} as ${SIGNED[type]}) >> ${count}) as ${TYPE[type]}`;
      return `${a} ${name === "shl" ? "<<" : ">>"} ${count}`;
    },
    rotate: (name, a, by) => `${a}.${name === "rotl" ? "rotate_left" : "rotate_right"}(${by} as u32)`,
    count: (name, a, type) => `${TYPE[type]}::from(${a}.${COUNTERS[name]}())`,
    wrap: (a) => `${a} as u32`,
    extend: (a, isSigned) => (isSigned ? `${a} as i32 as i64 as u64` : `u64::from(${a})`),
    call: (index, args) => `self.${names[index]}(${args.join(", ")})`,
    load: (bits, at, offset, type) => `${TYPE[type]}::from(self.memory.load${bits}(${at}, ${offset}))`,
    store: (bits, at, offset, value) => `self.memory.store${bits}(${at}, ${offset}, ${value} as u${bits})`,
    memorySize: () => "self.memory.pages()",
    memoryGrow: (pages) => `self.memory.grow(${pages}, MOST_PAGES)`,
    memoryCopy: (to, from, length) => `self.memory.copy(${to}, ${from}, ${length})`,
    memoryFill: (at, value, length) => `self.memory.fill(${at}, ${value} as u8, ${length})`,
    constant: (name, text) => `let ${name} = ${text};`,
    variable: (name, type) => `let mut ${name} = 0${TYPE[type]};`,
    assign: (name, text) => `${name} = ${text};`,
    statement: (text) => `${text};`,
    return: (text) => (text === undefined ? "return;" : `return ${text};`),
    break: (label) => `break '${label};`,
    continue: (label) => `continue '${label};`,
    trap: () => "unreachable!();",
    block: (label, lines) => [`'${label}: {`, ...indent(lines), "}"],
    loop: (label, lines, isEndReachable) => [
      `'${label}: loop {`,
      ...indent([...lines, ...(isEndReachable ? ["break;"] : [])]),
      "}",
    ],
  };
}

function headOf({ params, result }: WasmFunction, name: string, isExport: boolean): string {
  const parameters = params.map((type, index) => `, mut l${index}: ${TYPE[type]}`).join("");
  const arrow = result === undefined ? "" : ` -> ${TYPE[result]}`;
  return `${isExport ? "pub(super) " : ""}fn ${name}(&mut self${parameters})${arrow} {`;
}

export function renderRustModule(wasm: Uint8Array): GeneratedText {
  const module = decodeModule(wasm);
  const names = namesOf(module);
  const dialect = dialectOf(names);
  const exported = new Set(module.exports.values());
  const methods = module.functions.map((own, index) => {
    const head = headOf(own, names[index] ?? "", exported.has(index));
    return [head, ...indent(translateFunction(module, own, dialect)), "}"];
  });
  const text = `//! berth-core.wasm as Rust, statement by statement.

#![allow(clippy::all, unused)]

use super::memory::Memory;

/// The SHA-256 of the berth-core.wasm that this crate was made from.
pub const MODULE_SHA256: &str = "${createHash("sha256").update(wasm).digest("hex")}";

/// The memory's length at first, and at most: pages of 64 KiB.
pub(super) const FIRST_PAGES: u32 = ${module.memory.initial};
const MOST_PAGES: u32 = ${module.memory.maximum};

/// An instance: its memory, which is all its state.
pub(super) struct Module {
\tpub(super) memory: Memory,
}

impl Module {
${methods.map((lines) => indent(lines).join("\n")).join("\n\n")}
}
`;
  return { path: "embeddings/rust/src/raw/module.rs", text };
}
