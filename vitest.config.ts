import { defineConfig } from "vitest/config";

/** One project per kind of test, each with what it may cost; `npm test` runs all but `long`, in this order. */
const kinds = [
  { name: "unit", testTimeout: 5_000, fileParallelism: true },
  { name: "property", testTimeout: 120_000, fileParallelism: true },
  { name: "netns", testTimeout: 60_000, fileParallelism: false },
  { name: "e2e", testTimeout: 120_000, fileParallelism: false },
  { name: "long", testTimeout: 3_600_000, fileParallelism: false },
];

export default defineConfig({
  test: {
    projects: kinds.map(({ name, testTimeout, fileParallelism }) => ({
      test: { name, include: [`test/${name}/**/*.test.ts`], testTimeout, hookTimeout: testTimeout, fileParallelism },
    })),
  },
});
