/**
 * The raw layer of the C embedding: a header with one function per export, the statuses, policies, ceilings and
 * offsets; and its source.
 */
import { type AbiDescription, type AbiExport, isUnsigned } from "../abi-description.ts";
import type { GeneratedText } from "../generated-text.ts";

/** Columns of a comment. */
const WIDTH = 130;

export function renderCBindings(abi: AbiDescription): readonly GeneratedText[] {
  return [
    { path: "embeddings/c/include/berth_raw.h", text: renderHeader(abi) },
    { path: "embeddings/c/src/raw.c", text: renderSource(abi) },
  ];
}

function renderHeader({ version, statuses, policies, ceilings, counts, exports }: AbiDescription): string {
  const status = statuses.map(({ name, code, doc }) => ({ name: `STATUS_${name}`, value: code, doc }));
  const count = counts.map(({ name, at, as, doc }) => ({
    name: `COUNTS_AT_${name.toUpperCase()}`,
    value: at,
    doc: `${as}: ${doc}`,
  }));
  return `${comment([
    "The raw calls of the core, for callers that want ordinals or the exchange buffer.",
    "",
    "A result below 0 is a status. Input is read from the start of the exchange buffer and output is written there.",
    "Any call may move the buffer: ask berth_raw_exchange(core, 0) again, and berth_core_memory for its place in this process.",
    "Addresses there are big-endian, other numbers little-endian unless stated.",
  ])}
#ifndef BERTH_RAW_H
#define BERTH_RAW_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* One instance; berth_core_open makes it. */
struct berth_core;

/* The version of the ABI that this header describes. */
enum { BERTH_ABI_MAJOR = ${version.major}, BERTH_ABI_MINOR = ${version.minor} };

/* Statuses: a function's answers below 0. */
${enumeration("berth_status", status)}

/* In which order free addresses of the window are taken. */
${enumeration("berth_policy", policies)}

/* Ceilings of one instance. */
${enumeration("", ceilings)}

/* The place of each number in the output of berth_raw_pool_counts, in bytes from its start. */
${enumeration("", count)}

/* The meaning of a status as a sentence, and its name ("BAD_HANDLE"). Never NULL; any number is allowed. */
const char *berth_strerror(int status);
const char *berth_status_name(int status);

${exports.map(declaration).join("\n\n")}

/* X(name, number of parameters) for every export: for a table of them. */
#define BERTH_RAW_EXPORTS(X) \\
${exports.map(({ name, params }) => `    X(${name}, ${params.length})`).join(" \\\n")}

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
`;
}

function renderSource({ statuses, exports }: AbiDescription): string {
  const rows = statuses.map(({ name, code, doc }) => `    {${code}, ${JSON.stringify(name)}, ${JSON.stringify(doc)}},`);
  return `#include "internal.h"

/* By the code without its sign. */
static const struct {
    int code;
    const char *name;
    const char *text;
} statuses[] = {
${rows.join("\n")}
};

const char *berth_strerror(int status)
{
    return status <= 0 && status >= ${Math.min(...statuses.map(({ code }) => code))} ? statuses[-status].text : "Not a status.";
}

const char *berth_status_name(int status)
{
    return status <= 0 && status >= ${Math.min(...statuses.map(({ code }) => code))} ? statuses[-status].name : "UNKNOWN";
}

${exports.map(definition).join("\n\n")}
`;
}

function prototype({ name, params }: AbiExport): string {
  const list = params.map((param) => `${isUnsigned(param) ? "uint32_t" : "int32_t"} ${param.name}`);
  return `int32_t berth_raw_${name}(${["struct berth_core *core", ...list].join(", ")})`;
}

function declaration(entry: AbiExport): string {
  const { doc, params, input, output, result, statuses } = entry;
  const facts = params.map(({ name, is }) => `${name}: ${is}`);
  if (input !== undefined) facts.push(`exchange before: ${input}`);
  if (output !== undefined) facts.push(`exchange after: ${output}`);
  facts.push(`result: ${[result, ...statuses.slice(0, 1).map((status) => `or ${status}`)].join("; ")}`);
  const more = statuses.slice(1).map((status) => `, ${status}`);
  return `${comment([doc, ...facts.slice(0, -1), `${facts.at(-1)}${more.join("")}`])}\n${prototype(entry)};`;
}

/** The parameters' type in wasm2c's code is that of all 32 bits. */
function definition(entry: AbiExport): string {
  const args = entry.params.map((param) => (isUnsigned(param) ? param.name : `(uint32_t)${param.name}`));
  return `${prototype(entry)}
{
    return (int32_t)Z_berth_coreZ_${entry.name}(${["&core->wasm", ...args].join(", ")});
}`;
}

interface Constant {
  readonly name: string;
  readonly value: number;
  readonly doc: string;
}

function enumeration(name: string, constants: readonly Constant[]): string {
  const items = constants.map((item) => `    /* ${item.doc} */\n    BERTH_${item.name} = ${item.value},`);
  return `enum ${name === "" ? "" : `${name} `}{\n${items.join("\n")}\n};`;
}

/** One line, or a block that is broken at blanks. */
function comment(lines: readonly string[]): string {
  const [line = "", ...others] = lines.flatMap(wrap);
  if (others.length === 0) return `/* ${line} */`;
  return ["/*", ...[line, ...others].map((text) => ` * ${text}`.trimEnd()), " */"].join("\n");
}

function wrap(line: string): string[] {
  const most = WIDTH - 6;
  const blank = line.length > most ? line.lastIndexOf(" ", most) : -1;
  return blank < 0 ? [line] : [line.slice(0, blank), ...wrap(line.slice(blank + 1))];
}
