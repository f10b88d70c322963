/** The hook that CONTRIBUTING.md sets up, in a repository of git's own. */
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { root } from "../../../scripts/setup/paths.mjs";
import { runCommand } from "../../lab/command.ts";
import { temporaryDirectory } from "../../world/temporary-directory.ts";

it.each([
  ["a".repeat(70), true],
  ["ä".repeat(70), true],
  ["a".repeat(71), false],
  [`fixup! ${"a".repeat(70)}`, true],
])("a commit %s is made: %s", async (subject, isMade) => {
  const folder = temporaryDirectory("berth-hook-", onTestFinished);
  const git = (...words: string[]) => runCommand(["git", "-C", folder, ...words]);
  await git("init", "-q");
  const who = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
  const hooks = ["-c", `core.hooksPath=${join(root, "scripts", "hooks")}`];
  const { exitCode, stderr } = await git(...who, ...hooks, "commit", "--allow-empty", "-m", `${subject}\n\nWhy.`);
  expect([exitCode, stderr]).toEqual(isMade ? [0, ""] : [1, expect.stringContaining("has 71 characters")]);
});
