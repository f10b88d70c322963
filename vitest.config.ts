import { defineConfig } from "vitest/config";

/** One project per kind of test; `npm test` runs them in this order, each with what it may cost. */
const kinds = [
  { name: "unit", testTimeout: 5_000, fileParallelism: true },
  { name: "property", testTimeout: 120_000, fileParallelism: true },
  { name: "netns", testTimeout: 60_000, fileParallelism: false },
  { name: "e2e", testTimeout: 120_000, fileParallelism: false },
];

export default defineConfig({
  test: {
    projects: kinds.map(({ name, testTimeout, fileParallelism }) => ({
      test: { name, include: [`test/${name}/**/*.test.ts`], testTimeout, hookTimeout: testTimeout, fileParallelism },
    })),
  },
});
