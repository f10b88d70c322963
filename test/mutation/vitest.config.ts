/** The tests that are run for each mutant: those of the unit tests that execute it, or with BERTH_MUTATE=property those of the property tests. */
import { defineConfig } from "vitest/config";

const LEVEL = process.env.BERTH_MUTATE === "property" ? "property" : "unit";
/** Folders whose tests execute what is mutated. */
const FOLDERS = "{agent,controller,coordinator,ifacer,ipam,plan,registry,resources}";

/** With `--tests`: only these. */
const { BERTH_MUTATE_TESTS: given } = process.env;

export default defineConfig({
  test: {
    include: given?.split(",") ?? [`test/${LEVEL}/${FOLDERS}/**/*.test.ts`],
    testTimeout: 120_000,
    isolate: false,
    fileParallelism: false,
  },
});
