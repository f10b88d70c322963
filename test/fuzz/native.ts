/**
 * The targets in C, under libFuzzer with AddressSanitizer and UndefinedBehaviorSanitizer: the shim's parsers, and the
 * core's debug build as C.
 * Effects: processes; the folder that it is given.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ABI, type AbiExport } from "../../scripts/generate/abi-description.ts";
import { root } from "../../scripts/setup/paths.mjs";

export interface NativeTarget {
  /** Flags and sources for the compiler. */
  readonly build: (directory: string) => readonly string[];
  readonly seeds: readonly (string | Uint8Array)[];
  /** Words that inputs are made of. */
  readonly words: readonly string[];
}

export interface Campaign {
  readonly executions: number;
  /** Inputs that reached something new, with the seeds. */
  readonly kept: number;
}

/** Longest input that is tried: bytes. */
export const MAX_INPUT_BYTES = 4096;

const FLAGS = ["-std=gnu11", "-g", "-O1", "-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all"];

function run(command: string, args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd: root, encoding: "utf8", maxBuffer: 2 ** 28 });
  if (status !== 0) throw new Error(`${command} ${args.join(" ")}\n${stdout}${stderr.slice(-8_000)}`);
  return stderr;
}

export function shimTarget(name: "json" | "head" | "text", seeds: readonly string[], words: readonly string[]) {
  const sources = ["http", "json", "text", "io"].map((part) => `native/${part}.c`);
  return { build: () => [`-DTARGET=${name}`, "test/fuzz/shim.c", ...sources], seeds, words };
}

/** Returns `calls.h` of core.c: the exports by their place in the ABI. */
function writeCalls(): string {
  const code = new Map(ABI.statuses.map((status) => [status.name, -status.code]));
  const rows = ABI.exports.map(({ name, params, statuses, result }, index) => {
    const mask = statuses.reduce((bits, status) => bits | (1 << (code.get(status) ?? 0)), 0);
    const makes = result.endsWith("handle") ? 1 : 0;
    const given = params.map((_, at) => `, arguments[${at}]`).join("");
    return {
      call: `    case ${index}: return Z_berth_coreZ_${name}(&core${given});`,
      description: `    {${params.length}, ${makes}, ${mask}},`,
    };
  });
  return `struct description { int parameters, makes; u32 statuses; };
static const struct description descriptions[] = {
${rows.map(({ description }) => description).join("\n")}
};
static struct description describe(u8 which) { return descriptions[which % ${rows.length}]; }
static u32 call(u8 which, const u32 *arguments) {
    switch (which % ${rows.length}) {
${rows.map(({ call }) => call).join("\n")}
    }
    abort();
}
`;
}

/** One call as core.c reads it. Arguments are encoded bytes. */
export function coreCall(name: AbiExport["name"], ...args: number[]): number[] {
  return [ABI.exports.findIndex((entry) => entry.name === name), ...args];
}

export function buildCore(directory: string): readonly string[] {
  const generated = join(directory, "berth_core_wasm.c");
  run("wasm2c", ["--module-name=berth_core", "dist/core-debug/berth-core.wasm", "-o", generated]);
  writeFileSync(join(directory, "calls.h"), writeCalls());
  const folder = "/usr/share/wabt/wasm2c";
  const runtime = [
    "-DNDEBUG",
    "-DWASM_RT_SKIP_SIGNAL_RECOVERY=1",
    "-DWASM_RT_MEMCHECK_SIGNAL_HANDLER=0",
    "-DWASM_RT_TRAP_HANDLER(code)=abort()",
    `-I${folder}`,
    `${folder}/wasm-rt-impl.c`,
  ];
  return [...runtime, "-w", `-I${directory}`, "test/fuzz/core.c", generated];
}

/** Fuzzes the target for some seconds. Throws with libFuzzer's report, which has the input, if a promise is broken. */
export function fuzzNative(target: NativeTarget, seconds: number, seed: number, directory: string): Campaign {
  const corpus = join(directory, "corpus");
  mkdirSync(corpus, { recursive: true });
  for (const [index, bytes] of target.seeds.entries()) writeFileSync(join(corpus, `seed-${index}`), bytes);
  const words = join(directory, "words");
  const escaped = target.words.map((word) => Buffer.from(word).toString("hex").replaceAll(/../g, "\\x$&"));
  writeFileSync(words, `# words\n${escaped.map((word) => `"${word}"\n`).join("")}`);
  const program = join(directory, "fuzz");
  run("clang-14", [...FLAGS, "-o", program, ...target.build(directory)]);
  const limits = ["-timeout=10", "-rss_limit_mb=2500", `-max_len=${MAX_INPUT_BYTES}`, `-artifact_prefix=${directory}/`];
  const options = [`-max_total_time=${Math.ceil(seconds)}`, `-seed=${seed}`, `-dict=${words}`, "-print_final_stats=1"];
  const report = run(program, [...limits, ...options, corpus]);
  const last = [...report.matchAll(/ corp: (\d+)/g)].at(-1)?.[1];
  return { executions: Number(/number_of_executed_units: (\d+)/.exec(report)?.[1]), kept: Number(last) };
}
