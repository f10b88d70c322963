/**
 * The raw layer of the Go embedding: statuses, policies, ceilings, offsets, and one method per export.
 * The text is as gofmt wants it.
 */
import { type AbiDescription, type AbiExport, isUnsigned } from "../abi-description.ts";
import type { GeneratedText } from "../generated-text.ts";

/** Words that Go spells in capitals. */
const INITIALISMS: Readonly<Record<string, string>> = { abi: "ABI", ok: "OK" };

/** Columns of a comment's text. */
const COMMENT_WIDTH = 110;

/** `pool_find_run` → `PoolFindRun`. */
function exported(name: string): string {
  const words = name.toLowerCase().split("_");
  return words.map((word) => INITIALISMS[word] ?? word.charAt(0).toUpperCase() + word.slice(1)).join("");
}

/** `part_length` → `partLength`. */
function local(name: string): string {
  const word = exported(name);
  return word.charAt(0).toLowerCase() + word.slice(1);
}

/** A status as Go names an error: `BAD_HANDLE` → `ErrBadHandle`. */
function statusName({ name, code }: AbiDescription["statuses"][number]): string {
  return code < 0 ? `Err${exported(name)}` : `Status${exported(name)}`;
}

/** Rows as gofmt aligns them: each cell but the last is padded to its column. */
function align(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) => row.map((cell, i) => (i === row.length - 1 ? cell : cell.padEnd(widths[i] ?? 0))).join(" "));
}

/** Breaks a line at blanks; what follows on starts below the text of a list item. */
function wrap(line: string): string[] {
  const lines: string[] = [];
  const hang = line.startsWith("  - ") ? "    " : "";
  for (let rest = line; rest !== ""; ) {
    const blank = rest.length > COMMENT_WIDTH ? rest.lastIndexOf(" ", COMMENT_WIDTH) : rest.length;
    lines.push(rest.slice(0, blank));
    rest = blank < rest.length ? hang + rest.slice(blank + 1) : "";
  }
  return lines;
}

function comment(text: string, indent = ""): string {
  const lines = text.split("\n").flatMap((line) => (line === "" ? [""] : wrap(line)));
  return lines.map((line) => `${indent}//${line === "" ? "" : ` ${line}`}`).join("\n");
}

/** As Go writes the text of an error: no capital at the start of a sentence, no full stop. */
function errorText(doc: string): string {
  const sentences = doc.replace(/\.$/, "").split(". ");
  return sentences.map((sentence) => sentence.charAt(0).toLowerCase() + sentence.slice(1)).join("; ");
}

/** A group of constants, each under its comment; gofmt does not align what comments part. */
function constants(items: readonly { readonly name: string; readonly value: string; readonly doc: string }[]): string {
  const rows = items.map(({ name, value, doc }) => `${comment(`${name}: ${doc}`, "\t")}\n\t${name} ${value}`);
  return `const (\n${rows.join("\n")}\n)`;
}

function statuses({ statuses }: AbiDescription): string {
  const values = statuses.map((status) => ({
    name: statusName(status),
    value: `Status = ${status.code}`,
    doc: status.doc,
  }));
  const table = (cell: (status: AbiDescription["statuses"][number]) => string) =>
    align(statuses.map((status) => [`${-status.code}:`, `${JSON.stringify(cell(status))},`]));
  const rows = (cells: string[]) => cells.map((row) => `\t${row}`).join("\n");
  return `// Status is what an export answers below 0. As an error it is what [errors.Is] finds in every refusal of the core.
type Status int32

${constants(values)}

// By the code without its sign.
var statusNames = [...]string{
${rows(table(({ name }) => name))}
}

var statusTexts = [...]string{
${rows(table(({ doc }) => errorText(doc)))}
}`;
}

function numbers({ version, policies, ceilings, counts }: AbiDescription): string {
  return `// The version of the ABI that this package speaks.
const (
\tABIMajor = ${version.major}
\tABIMinor = ${version.minor}
)

// Policy says which free address of the window is next.
type Policy int32

${constants(policies.map(({ name, value, doc }) => ({ name: exported(name), value: `Policy = ${value}`, doc })))}

// Ceilings of one [Core].
${constants(ceilings.map(({ name, value, doc }) => ({ name: exported(name), value: `= ${value}`, doc })))}

// Where [Raw.PoolCounts] writes what.
${constants(
  counts.map(({ name, at, as, doc }) => ({
    name: `CountsAt${exported(name)}`,
    value: `= ${at}`,
    doc: `${as}: ${doc}.`,
  })),
)}`;
}

function typeOf(param: AbiExport["params"][number]): string {
  return isUnsigned(param) ? "uint32" : "int32";
}

/** `pool int32, start, count uint32`: neighbours share their type. */
function parameters(params: AbiExport["params"]): string {
  return params
    .map((param, i) => {
      const next = params[i + 1];
      const shared = next !== undefined && typeOf(next) === typeOf(param);
      return shared ? local(param.name) : `${local(param.name)} ${typeOf(param)}`;
    })
    .join(", ");
}

function method({ name, doc, params, input, output, result, statuses }: AbiExport, index: number): string {
  const lines = [`${exported(name)} calls ${name}. ${doc}`, ""];
  lines.push(...params.map((param) => `  - ${local(param.name)}: ${param.is}`));
  if (input !== undefined) lines.push(`  - exchange before: ${input}`);
  if (output !== undefined) lines.push(`  - exchange after: ${output}`);
  lines.push(`  - result: ${statuses.length === 0 ? result : `${result}; or ${statuses.join(", ")}`}`);
  const stack = params.map((param, i) => {
    const word = isUnsigned(param) ? local(param.name) : `uint32(${local(param.name)})`;
    return `\tr.stack[${i}] = uint64(${word})\n`;
  });
  return `${comment(lines.join("\n"))}
func (r *Raw) ${exported(name)}(${parameters(params)}) int32 {
${stack.join("")}\treturn r.call(${index})
}`;
}

/** The exports by name; a method knows its own by its index. */
function exportTable({ exports }: AbiDescription): string {
  const rows = exports.map(({ name, params }) => `\t{${JSON.stringify(name)}, ${params.length}},`);
  return `// The exports' names and their numbers of parameters.
var exports = [...]struct {
\tname   string
\tparams int
}{
${rows.join("\n")}
}

// Words that hold the parameters, or the result, of any export.
const stackWords = ${Math.max(1, ...exports.map(({ params }) => params.length))}`;
}

export function renderGoBindings(abi: AbiDescription): readonly GeneratedText[] {
  const parts = [statuses(abi), numbers(abi), exportTable(abi), ...abi.exports.map(method)];
  return [{ path: "embeddings/go/abi.go", text: `\npackage core\n\n${parts.join("\n\n")}\n` }];
}
