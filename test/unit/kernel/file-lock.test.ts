import { rmSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { tryLock } from "../../../host/kernel/file-lock.ts";
import { loadNative } from "../../../host/kernel/native.ts";
import { temporaryDirectory } from "../../world/temporary-directory.ts";

function createPath(): string {
  const directory = temporaryDirectory("berth-lock-", onTestFinished);
  return join(directory, "lock");
}

it("a file that is replaced between opening and locking is opened again", () => {
  const path = createPath();
  const native = loadNative();
  let calls = 0;
  const flock = (fd: number, operation: number): number => {
    calls += 1;
    if (calls === 1) rmSync(path);
    return native.flock(fd, operation);
  };
  const tried = tryLock(path, "process 1", { ...native, flock });
  expect("lock" in tried && tried.lock.isInPlace()).toBe(true);
  expect(calls).toBe(2);
  if ("lock" in tried) tried.lock.release();
});

it("a folder that is missing, and a lock that the kernel refuses, are errors", () => {
  expect(() => tryLock(join(createPath(), "a", "b"), "")).toThrow(/ENOENT/);
  expect(() => tryLock(createPath(), "", { ...loadNative(), flock: () => -38 })).toThrow(/flock of .* failed with -38/);
});
