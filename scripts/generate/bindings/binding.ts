/** The raw layers of all languages: the ABI's constants and calls, and the spellings of their names. */
import type { AbiDescription, AbiExport } from "../abi-description.ts";

export interface Constant {
  /** `BAD_HANDLE` */
  readonly name: string;
  readonly value: number;
  readonly doc: string;
}

export interface Call {
  /** `pool_find_run` */
  readonly name: string;
  readonly index: number;
  readonly doc: string;
  /** Its parameters, the exchange buffer before and after, and its result. */
  readonly facts: readonly string[];
  /** Unsigned: all 32 bits count. */
  readonly params: readonly { readonly name: string; readonly isUnsigned: boolean }[];
}

export interface Binding {
  readonly version: AbiDescription["version"];
  readonly statuses: readonly Constant[];
  readonly policies: readonly Constant[];
  readonly ceilings: readonly Constant[];
  /** Where `pool_counts` writes each number. */
  readonly counts: readonly Constant[];
  readonly calls: readonly Call[];
}

export function bindingOf({ version, statuses, policies, ceilings, counts, exports }: AbiDescription): Binding {
  return {
    version,
    statuses: statuses.map(({ name, code, doc }) => ({ name, value: code, doc })),
    policies,
    ceilings,
    counts: counts.map(({ name, at, as, doc }) => ({ name: name.toUpperCase(), value: at, doc: `${as}: ${doc}` })),
    calls: exports.map((entry, index) => ({ ...entry, index, facts: factsOf(entry), params: paramsOf(entry) })),
  };
}

const paramsOf = ({ params }: AbiExport) => params.map(({ name, is }) => ({ name, isUnsigned: is.startsWith("u32") }));

function factsOf({ params, input, output, result, statuses }: AbiExport): string[] {
  return [
    ...params.map(({ name, is }) => `- ${name}: ${is}`),
    ...(input === undefined ? [] : [`- exchange before: ${input}`]),
    ...(output === undefined ? [] : [`- exchange after: ${output}`]),
    `- result: ${[result, ...statuses].join(", ")}`,
  ];
}

/** Breaks a line at blanks, for 120 columns with its prefix. */
function wrap(line: string): string[] {
  const blank = line.length > 113 ? line.lastIndexOf(" ", 113) : -1;
  return blank < 0
    ? [line]
    : [line.slice(0, blank), ...wrap(`${line.startsWith("-") ? "  " : ""}${line.slice(blank + 1)}`)];
}

/** `pool_find_run` and `BAD_HANDLE` → `PoolFindRun` and `BadHandle`. */
export function pascalCase(name: string): string {
  return name.toLowerCase().replaceAll(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase());
}

/** `pool_find_run` → `poolFindRun`. */
export function camelCase(name: string): string {
  return name.toLowerCase().replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}

/** Returns the lines of a comment, each behind the prefix and with its line end. */
export function prefixed(prefix: string, lines: readonly string[]): string {
  return lines
    .flatMap(wrap)
    .map((line) => `${prefix}${line}\n`)
    .join("");
}
