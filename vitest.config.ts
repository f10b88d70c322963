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
  { name: "unit", testTimeout: 20_000, fileParallelism: true, maxWorkers: "100%" },
  { name: "property", testTimeout: 120_000, fileParallelism: true, maxWorkers: "100%" },
  { name: "netns", testTimeout: 60_000, fileParallelism: false },
  // Most of the time a file waits for its control plane.
  {
    name: "cluster",
    testTimeout: 120_000,
    fileParallelism: true,
    maxWorkers: 3,
    globalSetup: ["test/cluster/plane-pool.ts"],
  },
  { name: "nodes", testTimeout: 120_000, fileParallelism: false },
  { name: "e2e", testTimeout: 120_000, fileParallelism: true, maxWorkers: 2 },
  { name: "embeddings", testTimeout: 120_000, fileParallelism: true, maxWorkers: 2 },
  { name: "uml", testTimeout: 60_000, fileParallelism: false, setupFiles: ["test/uml/in-machine.ts"] },
  { name: "long", testTimeout: 3_600_000, fileParallelism: false },
];

export default defineConfig({
  test: {
    projects: kinds.map((kind) => ({
      test: { ...kind, include: [`test/${kind.name}/**/*.test.ts`], hookTimeout: kind.testTimeout },
    })),
  },
});
