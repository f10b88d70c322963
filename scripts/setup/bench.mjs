/**
 * The programs of the benchmarks: the small runner, the floor's empty program, what deletes a pod's namespace, the
 * trivial agent, the caller through libcni.
 * Effects: dist/bench.
 */
import { mkdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import { run } from "./command.mjs";
import { goProgramStep } from "./go.mjs";
import { root } from "./paths.mjs";
import { buildStep } from "./stamp.mjs";

const programs = [
  { name: "runner", compiler: "gcc", flags: ["-O2", "-Wall", "-Wextra"] },
  { name: "empty", compiler: "musl-gcc", flags: ["-O2", "-static", "-s"] },
  { name: "unmount", compiler: "musl-gcc", flags: ["-O2", "-Wall", "-Wextra", "-static", "-s"] },
  { name: "echo-agent", compiler: "musl-gcc", flags: ["-O2", "-Wall", "-Wextra", "-static", "-s"] },
];

export function benchSteps() {
  const caller = { name: "bench caller", source: "benchmarks/node/caller", program: "bench/caller" };
  return [...programs.map(compileStep), goProgramStep(caller)];
}

function compileStep({ name, compiler, flags }) {
  const source = join(root, "benchmarks", "harness", `${name}.c`);
  const output = join(root, "dist", "bench", name);
  return buildStep({
    name: `bench ${name}`,
    inputs: [source],
    outputs: [output],
    texts: [compiler, ...flags],
    build: () => {
      mkdirSync(join(root, "dist", "bench"), { recursive: true });
      run(compiler, [...flags, "-o", `${output}.tmp`, source]);
      renameSync(`${output}.tmp`, output);
    },
  });
}
