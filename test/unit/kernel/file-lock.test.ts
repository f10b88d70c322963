import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { type FileLock, tryLock } from "../../../host/kernel/file-lock.ts";
import { loadNative } from "../../../host/kernel/native.ts";

function createPath(): string {
  const directory = mkdtempSync(join(tmpdir(), "berth-lock-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  return join(directory, "lock");
}

function lockOf(path: string, text: string): FileLock {
  const tried = tryLock(path, text);
  if (!("lock" in tried)) throw new Error(`held by ${tried.holder}`);
  return tried.lock;
}

it("a lock keeps others away and says who holds it, until it is released", () => {
  const path = createPath();
  writeFileSync(path, "a longer text of an earlier holder\n");
  const lock = lockOf(path, "process 1");
  expect(readFileSync(path, "utf8")).toBe("process 1\n");
  expect(tryLock(path, "process 2")).toEqual({ holder: "process 1" });
  lock.release();
  expect(existsSync(path)).toBe(true);
  lockOf(path, "process 2").release();
});

it("a lock whose file was removed or replaced is not in place", () => {
  const path = createPath();
  const lock = lockOf(path, "process 1");
  expect(lock.isInPlace()).toBe(true);
  renameSync(path, `${path}.old`);
  expect(lock.isInPlace()).toBe(false);
  const second = lockOf(path, "process 2");
  expect([lock.isInPlace(), second.isInPlace()]).toEqual([false, true]);
  for (const each of [lock, second]) each.release();
});

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
