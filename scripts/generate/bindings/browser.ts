/**
 * The raw exports for JavaScript: host/core/core-exports.ts, which Berth itself uses and the package berth-core shows.
 */
import type { AbiDescription } from "../abi-description.ts";
import type { GeneratedText } from "../generated-text.ts";

function camelCase(name: string): string {
  return name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}

const LINE_LENGTH = 120;

/** Returns the doc comment, in one line where it fits. */
function comment(text: string, indent = ""): string {
  const short = `${indent}/** ${text} */`;
  if (short.length <= LINE_LENGTH) return short;
  const lines = [""];
  for (const word of text.split(" ")) {
    const longer = `${lines.at(-1)} ${word}`;
    if (`${indent} *${longer}`.length <= LINE_LENGTH) lines.splice(-1, 1, longer);
    else lines.push(` ${word}`);
  }
  return [`${indent}/**`, ...lines.map((line) => `${indent} *${line}`), `${indent} */`].join("\n");
}

export function renderBrowserBindings(abi: AbiDescription): readonly GeneratedText[] {
  const methods = abi.exports.map(({ name, doc, params }) => {
    const list = params.map((param) => `${param.name}: number`).join(", ");
    return `${comment(doc, "  ")}\n  ${name}(${list}): number;`;
  });
  const statuses = abi.statuses.map(({ name, code, doc }) => `${comment(doc, "  ")}\n  ${name}: ${code},`);
  const policies = abi.policies.map(({ name, value, doc }) => `${comment(doc, "  ")}\n  ${name}: ${value},`);
  const ceilings = abi.ceilings.map(
    ({ name, value, doc }) =>
      `${comment(doc)}\nexport const ${name} = ${value.toLocaleString("en-US").replaceAll(",", "_")};`,
  );
  const counts = abi.counts.map(
    ({ name, at, as, doc }) => `${comment(`${as}: ${doc}`, "  ")}\n  ${camelCase(name)}: ${at},`,
  );
  const text = `/**
 * The raw exports of the core, for host/core and the package berth-core; docs/develop/wasm-abi.md lists inputs,
 * outputs and statuses.
 */

/** All parameters and results are i32, or u32 where all 32 bits count; a result below 0 is a status. */
export interface CoreExports {
  readonly memory: WebAssembly.Memory;
${methods.join("\n")}
}

/** Major and minor version of the ABI that this file describes. */
export const ABI_VERSION = { major: ${abi.version.major}, minor: ${abi.version.minor} };

export const Status = {
${statuses.join("\n")}
} as const;

export const Policy = {
${policies.join("\n")}
} as const;

${ceilings.join("\n\n")}

/** The place of each number in the output of pool_counts, in bytes from its start; little-endian unless stated. */
export const CountOffset = {
${counts.join("\n")}
} as const;
`;
  return [{ path: "host/core/core-exports.ts", text }];
}
