/**
 * `npm run generate` writes every generated file of the repository, then the recorded outcomes in test/vectors, and
 * prints its changes. It needs the results of `npm run build` and no network. Review the difference like code.
 */
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../setup/paths.mjs";
import { generatedJson, generatedSections, generatedTexts, RECORDING_TESTS } from "./generated-files.ts";
import { packageVersions } from "./package-versions.ts";

function write(path: string, content: Buffer): void {
  const target = join(root, path);
  let current: Buffer | undefined;
  try {
    current = readFileSync(target);
  } catch {
    // A new file.
  }
  if (current?.equals(content)) return;
  writeFileSync(target, content);
  console.log(`Wrote ${path}`);
}

const texts = [...(await generatedTexts()), ...generatedJson(), ...generatedSections(), ...packageVersions()];
for (const { path, text } of texts) write(path, Buffer.from(text));

const vitest = join(root, "node_modules", ".bin", "vitest");
const { status, stdout } = spawnSync(vitest, ["run", "--update", "--project", "unit", ...RECORDING_TESTS], {
  cwd: root,
  encoding: "utf8",
  stdio: ["ignore", "pipe", "inherit"],
});
if (status !== 0) {
  console.error(stdout);
  process.exitCode = 1;
}
