/**
 * The Python embedding's raw layer, written from assembly/abi.json: one method per export, statuses, policies,
 * ceilings and counts. The text is laid out as black does, 88 columns wide.
 */
import { type AbiDescription, type AbiExport, isUnsigned } from "../abi-description.ts";
import type { GeneratedText } from "../generated-text.ts";

const COLUMNS = 88;

export function renderPythonBindings(abi: AbiDescription): readonly GeneratedText[] {
  const text = [
    ...header(abi),
    ...abi.ceilings.flatMap(({ name, value, doc }) => ["", ...comment(doc), `${name}: Final = ${thousands(value)}`]),
    ...enumeration("Status", "What the core answers when it is not a result.", abi.statuses, ({ code }) => code),
    ...enumeration("Policy", "In which order free addresses of the window are taken.", abi.policies, (p) => p.value),
    ...statusTexts(abi),
    ...counts(abi),
    ...signatures(abi),
    ...exportsClass(abi),
  ];
  return [{ path: "embeddings/python/src/berth_core/abi.py", text: `${text.join("\n")}\n` }];
}

function header({ version, conventions }: AbiDescription): string[] {
  return [
    '"""The ABI of the core.',
    "",
    ...Object.entries(conventions).flatMap(([name, doc]) => wrap(`${name}: ${doc}`, "", "    ")),
    '"""',
    "",
    "from abc import ABC, abstractmethod",
    "from enum import IntEnum",
    "from typing import Final",
    "",
    "# Major and minor version of the ABI that this module describes.",
    `ABI_VERSION: Final = (${version.major}, ${version.minor})`,
  ];
}

function enumeration<T extends { readonly name: string; readonly doc: string }>(
  name: string,
  doc: string,
  members: readonly T[],
  numberOf: (member: T) => number,
): string[] {
  const lines = members.flatMap((member) => [
    "",
    ...comment(member.doc, "    "),
    `    ${member.name} = ${numberOf(member)}`,
  ]);
  return ["", "", `class ${name}(IntEnum):`, `    """${doc}"""`, ...lines];
}

function statusTexts({ statuses }: AbiDescription): string[] {
  const lines = statuses.flatMap(({ name, doc }) => {
    const line = `    Status.${name}: "${doc}",`;
    return line.length <= COLUMNS ? [line] : [`    Status.${name}: (`, `        "${doc}"`, "    ),"];
  });
  return ["", "", "# What each status means.", "STATUS_TEXTS: Final[dict[Status, str]] = {", ...lines, "}"];
}

function counts(abi: AbiDescription): string[] {
  const lines = abi.counts.flatMap(({ name, at, as, doc }) => [
    ...comment(`${as}: ${doc}`, "    "),
    `    ${name.toUpperCase()} = ${at}`,
  ]);
  return [
    "",
    "",
    "class CountsOffset(IntEnum):",
    '    """Where each number stands in what pool_counts writes."""',
    "",
    ...lines,
  ];
}

function signatures({ exports }: AbiDescription): string[] {
  const codeOf = ({ params }: AbiExport) => params.map((param) => (isUnsigned(param) ? "I" : "i")).join("");
  return [
    "",
    "",
    '# The parameters of each export: "i" is an i32, "I" a u32.',
    "SIGNATURES: Final[dict[str, str]] = {",
    ...exports.map((operation) => `    "${operation.name}": "${codeOf(operation)}",`),
    "}",
  ];
}

function exportsClass({ exports }: AbiDescription): string[] {
  return [
    "",
    "",
    "class Exports(ABC):",
    '    """The exports of the core, one method each; a result below 0 is a Status."""',
    "",
    "    @abstractmethod",
    "    def call(self, name: str, *args: int) -> int:",
    '        """Calls an export by its name."""',
    ...exports.flatMap(method),
  ];
}

function method(operation: AbiExport): string[] {
  const { name, doc, params, input, output, result, statuses } = operation;
  const names = params.map((param) => param.name);
  const facts = [
    ...params.map((param) => `${param.name}: ${param.is}`),
    ...(input === undefined ? [] : [`Exchange before: ${input}`]),
    ...(output === undefined ? [] : [`Exchange after: ${output}`]),
    `Result: ${[result, ...(statuses.length === 0 ? [] : [`or ${statuses.join(", ")}`])].join("; ")}`,
  ];
  const [first = "", ...more] = wrap(`"""${doc}`, "        ", "        ");
  return [
    "",
    ...definition(name, ["self", ...names.map((param) => `${param}: int`)].join(", ")),
    first,
    ...more,
    "",
    ...facts.flatMap((fact) => wrap(fact, "        ", "            ")),
    '        """',
    `        return self.call(${[`"${name}"`, ...names].join(", ")})`,
  ];
}

function definition(name: string, params: string): string[] {
  const line = `    def ${name}(${params}) -> int:`;
  return line.length <= COLUMNS ? [line] : [`    def ${name}(`, `        ${params}`, "    ) -> int:"];
}

function comment(doc: string, indent = ""): string[] {
  return wrap(doc, `${indent}# `, `${indent}# `);
}

/** Lines of at most COLUMNS; the first begins with `first`, the others with `next`. */
function wrap(text: string, first: string, next: string): string[] {
  const lines: string[] = [];
  let line = first;
  for (const word of text.split(" ")) {
    const start = lines.length === 0 ? first : next;
    if (line !== start && line.length + 1 + word.length > COLUMNS) {
      lines.push(line);
      line = `${next}${word}`;
    } else {
      line += line === start ? word : ` ${word}`;
    }
  }
  return [...lines, line];
}

function thousands(value: number): string {
  return value.toLocaleString("en").replaceAll(",", "_");
}
