/** The tests of which `npm run mutate` runs those that execute a module of stryker.config.json. */
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/unit/{agent,controller,ipam,registry,resources}/**/*.test.ts"],
    testTimeout: 30_000,
    isolate: false,
  },
});
