/** The raw exports for JavaScript: host/core/core-exports.ts, which Berth uses and the package berth-core shows. */
import type { GeneratedText } from "../generated-text.ts";
import { type Binding, type Call, type Constant, camelCase, prefixed } from "./binding.ts";

export function renderBrowserBindings({
  version,
  statuses,
  policies,
  ceilings,
  counts,
  calls,
}: Binding): GeneratedText {
  const text = `/**
 * The raw exports of the core, for host/core and the package berth-core; docs/develop/wasm-abi.md says what each
 * does, with inputs, outputs and statuses.
 */

/** All parameters and results are i32, or u32 where all 32 bits count; a result below 0 is a status. */
export interface CoreExports {
  readonly memory: WebAssembly.Memory;
${calls.map(member).join("")}}

/** Major and minor version of the ABI that this file describes. */
export const ABI_VERSION = { major: ${version.major}, minor: ${version.minor} };

export const Status = {
${members(statuses)}} as const;

export const Policy = {
${members(policies)}} as const;

${ceilings.map(({ name, value, doc }) => `${comment(doc)}export const ${name} = ${grouped(value)};\n`).join("\n")}
/** The place of each number in the output of pool_counts, in bytes from its start; little-endian unless stated. */
export const CountOffset = {
${members(counts, camelCase)}} as const;
`;
  return { path: "host/core/core-exports.ts", text };
}

function member({ name, params }: Call): string {
  return `  ${name}(${params.map((param) => `${param.name}: number`).join(", ")}): number;\n`;
}

function members(items: readonly Constant[], nameOf = (name: string) => name): string {
  return items.map(({ name, value, doc }) => `${comment(doc, "  ")}  ${nameOf(name)}: ${value},\n`).join("");
}

const grouped = (value: number) => value.toLocaleString("en-US").replaceAll(",", "_");

/** Returns a doc comment, in one line where it fits. */
function comment(text: string, indent = ""): string {
  if (text.length + indent.length <= 113) return `${indent}/** ${text} */\n`;
  return `${indent}/**\n${prefixed(`${indent} * `, [text])}${indent} */\n`;
}
