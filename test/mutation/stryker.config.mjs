/** Mutation testing of the modules that decide (docs/mutation.md). `npm run mutate -- --mutate FILE` mutates one file. */

/** Pure functions: selection, picks, plans, decisions about records, detection's verdict, retention, collection. */
export const DECIDING = [
  "host/ipam/{announced-nics,conflict,filters,leak,owner,pick,plan-operation,plan-prefetch,requested-ips,retention,selection,subnet-capacity,subnet-pools}.ts",
  "host/agent/embedded/recovery/plan-recovery.ts",
  "host/agent/gc/plan-reconciliation.ts",
  "host/agent/ipam/sources/*.ts",
  "host/cli/check/plan-release.ts",
  "host/kubernetes/lease/plan-lease.ts",
  "host/registry/kubernetes/{address-states,decide,known-object}.ts",
  "host/controller/{conditions,finalizers,gc,networks,owners,usage}/plan-*.ts",
  "host/controller/subnets/plan/*.ts",
  "host/coordinator/plan/*.ts",
  "host/coordinator/{plan-check,probe}.ts",
  "host/ifacer/plan-*.ts",
];

const isWithProperties = process.env.BERTH_MUTATE === "property";

export default {
  plugins: ["@stryker-mutator/vitest-runner"],
  testRunner: "vitest",
  vitest: { configFile: "test/mutation/vitest.config.ts", related: false },
  coverageAnalysis: "perTest",
  mutate: DECIDING,
  // Texts are held by vectors and by people.
  mutator: { excludedMutations: ["StringLiteral"] },
  ignorePatterns: [
    "/docs",
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
  timeoutMS: 20_000,
  dryRunTimeoutMinutes: 60,
  incremental: true,
  incrementalFile: `node_modules/.cache/mutation-${isWithProperties ? "property" : "unit"}.json`,
  reporters: ["progress-append-only", "clear-text", "json"],
  clearTextReporter: { reportTests: false, reportMutants: false },
  jsonReporter: { fileName: `node_modules/.cache/mutation-report-${isWithProperties ? "property" : "unit"}.json` },
};
