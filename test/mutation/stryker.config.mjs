/** Mutation testing of the modules that decide (docs/mutation.md): mutate.ts says which, and runs StrykerJS. */

const isWithProperties = process.env.BERTH_MUTATE === "property";

export default {
  plugins: [new URL("runner.ts", import.meta.url).href],
  testRunner: "in-process",
  coverageAnalysis: "perTest",
  // Texts are held by vectors and by people.
  mutator: { excludedMutations: ["StringLiteral"] },
  ignorePatterns: [
    "/embeddings",
    "/benchmarks",
    "/deploy/chart/berth/crds",
    "/dist/nodes",
    "/dist/bench",
    "/dist/embeddings",
    "/node_modules/.cache",
  ],
  tempDirName: "dist/mutation",
  disableTypeChecks: false,
  // Stryker rewrites the file of this name with the compiler's former API, which TypeScript 7 does not have; nothing here reads it.
  tsconfigFile: "test/mutation/none.json",
  concurrency: Number(process.env.BERTH_MUTATE_JOBS ?? 1),
  timeoutMS: 120_000,
  dryRunTimeoutMinutes: 60,
  incremental: true,
  incrementalFile: `node_modules/.cache/mutation-${isWithProperties ? "property" : "unit"}.json`,
  reporters: ["progress-append-only", "clear-text", "json"],
  clearTextReporter: { reportTests: false, reportMutants: false },
  jsonReporter: { fileName: `node_modules/.cache/mutation-report-${isWithProperties ? "property" : "unit"}.json` },
};
