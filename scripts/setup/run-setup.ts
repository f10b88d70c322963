/**
 * Set-up for only some runs, called by the run itself: `npm run demo -- --cluster` builds a control plane, `npm run
 * demo` does not.
 * Effects: those of scripts/setup.mjs; ends this process when it fails, after the reason was printed.
 */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { root } from "./paths.mjs";

export function runSetup(...targets: readonly string[]): void {
  const argv = [join(root, "scripts", "setup.mjs"), ...targets];
  const { status } = spawnSync(process.execPath, argv, { stdio: "inherit" });
  if (status !== 0) process.exit(status ?? 1);
}
