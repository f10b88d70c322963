/**
 * The core as Go: a method for each of its functions, on the memory as a slice of bytes. The text is as gofmt wants it.
 * embeddings/go/memory.go has what Go has no operator for.
 */
import { createHash } from "node:crypto";
import type { GeneratedText } from "../generated-text.ts";
import { decodeModule, type Instruction, type WasmFunction, type WasmModule, walk } from "../wasm/decode-module.ts";
import { type Dialect, indent, translateFunction } from "../wasm/translate-function.ts";

const TYPE = { i32: "uint32", i64: "uint64" } as const;
const BITS = { i32: 32, i64: 64 } as const;

const OPERATORS = { add: "+", sub: "-", mul: "*", div_u: "/", rem_u: "%", and: "&", or: "|", xor: "^" } as const;
const COUNTERS = { clz: "LeadingZeros", ctz: "TrailingZeros", popcnt: "OnesCount" } as const;

const READ_MEMORY = "mem := m.memory";
/** Stands after a call that may have made the memory grow. */
const READ_MEMORY_AGAIN = "mem = m.memory";

/** The method of an export on the module: `pool_find` → `poolFind`. */
export function methodName(name: string): string {
  return name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
}

function namesOf({ functions, exports }: WasmModule): string[] {
  const names = functions.map((_, index) => `f${index}`);
  for (const [name, index] of exports) names[index] = methodName(name);
  return names;
}

/** The functions after whose call the memory may be another slice. */
function findGrowing({ functions }: WasmModule): ReadonlySet<number> {
  const growing = new Set<number>();
  const grows = (one: Instruction): boolean =>
    one.op === "memory.grow" || (one.op === "call" && growing.has(one.index));
  for (let before = -1; before !== growing.size; ) {
    before = growing.size;
    for (const [index, { body }] of functions.entries()) if ([...walk(body)].some(grows)) growing.add(index);
  }
  return growing;
}

/** Literals have the type that what is around them wants, and none of their own. */
function typed(text: string, type: "i32" | "i64"): string {
  return /^\d/.test(text) ? `${TYPE[type]}(${text})` : text;
}

function dialectOf(names: readonly string[]): Dialect {
  return {
    literal: (value) => String(value),
    signed: ({ text, type, literal }) =>
      literal === undefined
        ? `int${type === "i64" ? 64 : 32}(${text})`
        : String(BigInt.asIntN(type === "i64" ? 64 : 32, literal)),
    numberOf: (condition) => `word(${condition})`,
    arithmetic: (name, a, b) => `${a} ${OPERATORS[name]} ${b}`,
    shift: (name, a, by, type) => {
      const count = typeof by === "number" ? by : `(${by})`;
      if (name === "shr_s") return `${TYPE[type]}(int${BITS[type]}(${a}) >> ${count})`;
      return `${typed(a, type)} ${name === "shl" ? "<<" : ">>"} ${count}`;
    },
    rotate: (name, a, by, type) => `bits.RotateLeft${BITS[type]}(${a}, ${name === "rotl" ? "" : "-"}int(${by}))`,
    count: (name, a, type) => `${TYPE[type]}(bits.${COUNTERS[name]}${BITS[type]}(${a}))`,
    wrap: (a) => `uint32(${a})`,
    extend: (a, isSigned) => (isSigned ? `uint64(int64(int32(${a})))` : `uint64(${a})`),
    call: (index, args) => `m.${names[index]}(${args.join(", ")})`,
    load: (bits, at, offset, type) => {
      const loaded = `load${bits}(mem, ${at}, ${offset})`;
      return bits === BITS[type] ? loaded : `${TYPE[type]}(${loaded})`;
    },
    store: (bits, at, offset, value, type) => {
      const narrow = /^\d/.test(value) ? String(BigInt.asUintN(bits, BigInt(value))) : `uint${bits}(${value})`;
      return `store${bits}(mem, ${at}, ${offset}, ${bits === BITS[type] ? value : narrow})`;
    },
    memorySize: () => "uint32(len(mem) / pageBytes)",
    memoryGrow: (pages) => `m.grow(${pages})`,
    memoryCopy: (to, from, length) => `move(mem, ${to}, ${from}, ${length})`,
    memoryFill: (at, value, length) => `fill(mem, ${at}, ${value}, ${length})`,
    constant: (name, text) => `${name} := ${text}`,
    variable: (name, type) => `var ${name} ${TYPE[type]}`,
    assign: (name, text) => `${name} = ${text}`,
    statement: (text) => text,
    return: (text) => (text === undefined ? "return" : `return ${text}`),
    break: (label) => `break ${label}`,
    continue: (label) => `continue ${label}`,
    trap: () => 'panic("unreachable")',
    block: (label, lines) => [`${label}:`, "switch {", "default:", ...indent(lines), "}"],
    loop: (label, lines, isEndReachable) => [
      `${label}:`,
      "for {",
      ...indent([...lines, ...(isEndReachable ? ["break"] : [])]),
      "}",
    ],
  };
}

/** Adds the memory as a variable where it is used: read once, and again after each call that may have made it grow. */
function withMemory(lines: readonly string[], growing: readonly string[]): string[] {
  if (!lines.some((line) => /\bmem\b/.test(line))) return [...lines];
  const grows = (line: string): boolean => growing.some((call) => line.includes(call));
  return [
    READ_MEMORY,
    ...lines.flatMap((line) => (grows(line) ? [line, `${/^\t*/.exec(line)?.[0] ?? ""}${READ_MEMORY_AGAIN}`] : [line])),
  ];
}

/** Go refuses variables that are never read: the results of calls that were dropped, say. */
function withoutUnread(lines: readonly string[]): string[] {
  const reads = new Map<string, number>();
  for (const line of lines)
    for (const [name] of line.replace(/^\t*(?:var )?[tl]\d+(?: :?=|(?= ))/, "").matchAll(/\b[tl]\d+\b/g))
      reads.set(name, (reads.get(name) ?? 0) + 1);
  return lines.flatMap((line) => {
    const [, tabs = "", name = "", value] = /^(\t*)([tl]\d+) :?= (.*)$/.exec(line) ?? [];
    const [, declared = ""] = /^\t*var ([tl]\d+) /.exec(line) ?? [];
    if (declared !== "" && !reads.has(declared)) return [];
    if (value === undefined || reads.has(name) || isParameter(name, lines)) return [line];
    return value.startsWith("m.") ? [`${tabs}${value}`] : [`${tabs}_ = ${value}`];
  });
}

/** Parameters need not be read. */
function isParameter(name: string, lines: readonly string[]): boolean {
  return name.startsWith("l") && !lines.some((line) => line.startsWith(`var ${name} `));
}

/** A label stands one tab to the left of its statement. */
function dedentLabels(line: string): string {
  return /^\t+L\d+:$/.test(line) ? line.slice(1) : line;
}

function parametersOf({ params }: WasmFunction): string {
  return params.map((type, index) => (params[index + 1] === type ? `l${index}` : `l${index} ${TYPE[type]}`)).join(", ");
}

/** Returns the core as Go. `inlined` is another build of the same sources, of which the functions are made. */
export function renderGoModule(core: Uint8Array, inlined: Uint8Array): GeneratedText {
  const module = decodeModule(inlined);
  const names = namesOf(module);
  const dialect = dialectOf(names);
  const growing = ["m.grow(", ...[...findGrowing(module)].map((index) => `m.${names[index]}(`)];
  const methods = module.functions.map((own, index) => {
    const lines = withoutUnread(withMemory(translateFunction(module, own, dialect), growing));
    const result = own.result === undefined ? "" : ` ${TYPE[own.result]}`;
    const head = `func (m *module) ${names[index]}(${parametersOf(own)})${result} {`;
    return [head, ...indent(lines).map(dedentLabels), "}"].join("\n");
  });
  const text = `
package core

import "math/bits"

// ModuleSHA256 is the sum of the berth-core.wasm whose sources this package was made from.
const ModuleSHA256 = "${createHash("sha256").update(core).digest("hex")}"

// The memory's length, in pages.
const (
\tfirstPages = ${module.memory.initial}
\tmostPages  = ${module.memory.maximum}
)

${methods.join("\n\n")}
`;
  return { path: "embeddings/go/module.go", text };
}
