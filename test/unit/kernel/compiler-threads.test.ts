import { expect, it } from "vitest";
import { demoteCompilerThreads } from "../../../host/kernel/compiler-threads.ts";
import { EPERM } from "../../../host/kernel/errno.ts";

it("a kernel that refuses the policy is named with the thread", () => {
  const refuse = (): number => -EPERM;
  expect(() => demoteCompilerThreads({ setScheduler: refuse })).toThrow(
    /^Cannot set the policy of thread \d+: operation not permitted \(EPERM\)$/,
  );
});
