import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

interface Kind {
  readonly name: string;
  readonly testTimeout: number;
  readonly fileParallelism: boolean;
  /** Of fileParallelism; absent: one for each processor but one. */
  readonly maxWorkers?: number | string;
  readonly setupFiles?: string[];
  readonly globalSetup?: string[];
}

/** One project per kind of test, each with what it may cost; `npm test` runs all but `long`, in this order. */
const kinds: Kind[] = [
  // Some files mostly wait.
  { name: "unit", testTimeout: 20_000, fileParallelism: true, maxWorkers: Math.ceil(1.5 * availableParallelism()) },
  { name: "property", testTimeout: 120_000, fileParallelism: true, maxWorkers: "100%" },
  { name: "simulation", testTimeout: 120_000, fileParallelism: true, maxWorkers: "100%" },
  { name: "fuzz", testTimeout: 120_000, fileParallelism: false },
  { name: "netns", testTimeout: 120_000, fileParallelism: false, globalSetup: ["test/netns/build-addon.ts"] },
  // Most of the time a file waits for its control plane.
  {
    name: "cluster",
    testTimeout: 120_000,
    fileParallelism: true,
    maxWorkers: 5,
    globalSetup: ["test/cluster/plane-pool.ts"],
  },
  { name: "nodes", testTimeout: 120_000, fileParallelism: true, maxWorkers: 2 },
  { name: "e2e", testTimeout: 120_000, fileParallelism: true, maxWorkers: 6 },
  { name: "embeddings", testTimeout: 120_000, fileParallelism: true, maxWorkers: 2 },
  { name: "uml", testTimeout: 60_000, fileParallelism: false, setupFiles: ["test/uml/in-machine.ts"] },
  { name: "long", testTimeout: 3_600_000, fileParallelism: false },
];

/** By scripts/suites.ts: vitest's own `--exclude` does not reach projects. */
const leftOut = process.env.BERTH_LEFT_OUT?.split(",") ?? [];
const isLong = process.env.BERTH_LONG !== undefined;

/**
 * Each file of these kinds has a process of its own. One process runs many files of the others, and loads each module
 * once: a third less processor time for the unit tests. Those files leave nothing behind in the process.
 */
const OWN_PROCESS: ReadonlySet<string> = new Set(["nodes", "long"]);

/** Each poll asks a real server or agent: a seventh less processor time than with vitest's 50 ms. */
const SLOW_POLLS: ReadonlySet<string> = new Set(["cluster", "e2e", "nodes", "long"]);

// Programs in Go collect garbage less often: a sixth less of an API server's processor time, for memory that the
// machine has.
process.env.GOGC ??= "400";
// A worker thread of the product (SQLite's, for each registry) strips the types of its modules once, not at every
// start: 0.03 s for 0.19 s.
process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL("node_modules/.cache/compiled/", import.meta.url));

export default defineConfig({
  test: {
    projects: kinds.map((kind) => ({
      test: {
        ...kind,
        include: [`{test,packages/*/test}/${kind.name}/**/*.test.ts`],
        exclude: [...leftOut, ...(isLong ? [] : ["**/*.long.test.ts"])],
        testTimeout: isLong ? 3_600_000 : kind.testTimeout,
        hookTimeout: kind.testTimeout,
        expect: { poll: { interval: SLOW_POLLS.has(kind.name) ? 200 : 50 } },
        isolate: OWN_PROCESS.has(kind.name),
      },
    })),
  },
});
