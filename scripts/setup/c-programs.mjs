/**
 * Small programs in C, a file or two each: those of the benchmarks (the runner, the floor's empty program, the deletion
 * of a pod's namespace, the trivial agent), and those of real nodes.
 * Effects: dist.
 */
import { mkdirSync, renameSync } from "node:fs";
import { dirname, join } from "node:path";
import { run } from "./command.mjs";
import { moduleFolder } from "./go.mjs";
import { referenceTool, root } from "./paths.mjs";
import { buildStep } from "./stamp.mjs";

const WARNINGS = ["-O2", "-Wall", "-Wextra"];
const STATIC = ["-static", "-s"];

export const benchPrograms = () => [
  benchStep("runner", "gcc", WARNINGS),
  benchStep("empty", "musl-gcc", ["-O2", ...STATIC]),
  benchStep("unmount", "musl-gcc", [...WARNINGS, ...STATIC]),
  benchStep("echo-agent", "musl-gcc", [...WARNINGS, ...STATIC]),
];

function benchStep(name, compiler, flags) {
  const sources = [join(root, "benchmarks", "harness", `${name}.c`)];
  return compileStep(`bench/${name}`, { compiler, flags, inputs: sources });
}

/** The first process of a pod's sandbox, and of a node. */
export function pauseStep() {
  const inputs = [join(root, "test", "lab", "nodes", "pause.c")];
  return compileStep("nodes/pause", { compiler: "musl-gcc", flags: [...WARNINGS, ...STATIC], inputs });
}

/** CRI-O's program in C that makes the namespaces of pods, from its module. */
export function pinnsStep() {
  const { module } = referenceTool("crio");
  const sourcesOf = () => ["pinns.c", "sysctl.c"].map((name) => join(moduleFolder(module), "pinns", "src", name));
  const flags = ["-std=c99", "-Os", ...STATIC];
  return compileStep("nodes/pinns", { compiler: "gcc", flags, inputs: [], texts: [module], sourcesOf });
}

function compileStep(program, { compiler, flags, inputs, texts = [], sourcesOf = () => inputs }) {
  const output = join(root, "dist", program);
  return buildStep({
    name: program,
    inputs,
    outputs: [output],
    texts: [compiler, ...flags, ...texts],
    build: () => {
      mkdirSync(dirname(output), { recursive: true });
      run(compiler, [...flags, "-o", `${output}.tmp`, ...sourcesOf()]);
      renameSync(`${output}.tmp`, output);
    },
  });
}
