/**
 * The raw layer of the Rust embedding: what its macros (embeddings/rust/src/raw/macros.rs) make methods, enums and
 * constants of.
 */
import { type AbiDescription, type AbiExport, isUnsigned } from "../abi-description.ts";
import type { GeneratedText } from "../generated-text.ts";

const WIDTH = 100;

export function renderRustBindings(abi: AbiDescription): readonly GeneratedText[] {
  return [{ path: "embeddings/rust/src/raw/abi.rs", text: `${renderAbi(abi).join("\n")}\n` }];
}

function renderAbi(abi: AbiDescription): string[] {
  return [
    "//! Every call, status and constant of the core.",
    "",
    "use super::macros::{exports, policies, statuses};",
    "use crate::Error;",
    "use wasmi::{Instance, Memory, Module, Store, TypedFunc};",
    "",
    "/// Major and minor version of the ABI that this file describes.",
    `pub const ABI_VERSION: (u16, u16) = (${abi.version.major}, ${abi.version.minor});`,
    ...abi.ceilings.flatMap(({ name, value, doc }) => [
      "",
      ...comment(doc),
      `pub const ${name}: u32 = ${grouped(value)};`,
    ]),
    "",
    "/// Where each number stands in what `pool_counts` writes: bytes from the start of the exchange buffer.",
    "pub mod counts {",
    ...abi.counts.flatMap(({ name, at, as, doc }, index) => [
      ...(index === 0 ? [] : [""]),
      ...comment(`${capital(doc)}: ${as}.`, "    "),
      `    pub const ${name.toUpperCase()}: usize = ${at};`,
    ]),
    "}",
    "",
    "statuses! {",
    ...abi.statuses.map(({ name, code, doc }) => `    ${pascal(name)} = ${code}, ${quoted(name)}, ${quoted(doc)};`),
    "}",
    "",
    "policies! {",
    ...abi.policies.map(({ name, value, doc }) => `    ${pascal(name)} = ${value}, ${quoted(doc)};`),
    "}",
    "",
    "exports! {",
    ...abi.exports.flatMap((entry, index) => [...(index === 0 ? [] : [""]), ...renderExport(entry)]),
    "}",
  ];
}

function renderExport({ name, doc, params, input, output, result, statuses }: AbiExport): string[] {
  const typed = params.map((param) => `${param.name}: ${isUnsigned(param) ? "u32" : "i32"}`);
  const facts = [
    ...params.map((param) => `* \`${param.name}\`: ${param.is}`),
    ...(input === undefined ? [] : [`* exchange before: ${input}`]),
    ...(output === undefined ? [] : [`* exchange after: ${output}`]),
    `* result: ${result}`,
    ...(statuses.length === 0 ? [] : [`* errors: ${statuses.join(", ")}`]),
  ];
  const lines = [...comment(doc, "    "), "    ///", ...facts.flatMap((fact) => comment(fact, "    ", "  "))];
  return [...lines, `    fn ${name}(${typed.join(", ")});`];
}

/**
 * Lines of documentation, none longer than the formatter's width unless a word is; `hanging` goes before all lines
 * but the first.
 */
function comment(text: string, indent = "", hanging = ""): string[] {
  const lines: string[] = [];
  let line = `${indent}///`;
  for (const word of text.split(" ")) {
    if (line.length + 1 + word.length > WIDTH) {
      lines.push(line);
      line = `${indent}///${hanging === "" ? "" : ` ${hanging.slice(1)}`}`;
    }
    line += ` ${word}`;
  }
  return [...lines, line];
}

/** BAD_HANDLE → BadHandle. */
function pascal(name: string): string {
  return name.toLowerCase().replaceAll(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase());
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** 16777216 → 16_777_216. */
function grouped(value: number): string {
  return value.toLocaleString("en").replaceAll(",", "_");
}

function quoted(text: string): string {
  return `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
}
