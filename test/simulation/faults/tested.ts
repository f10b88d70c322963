/** Puts a fault into a copy of the sources and runs the tests that have to notice it. */
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root } from "../../unit/house/sources.ts";
import { applyEdit, type TestedFault } from "./fault.ts";

/** What tests read of the project. */
const COPIED = ["host", "test", "scripts", "deploy", "package.json", "tsconfig.json", "vitest.config.ts"];

interface Result {
  readonly testResults: readonly {
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[];
  }[];
}

/** Returns the name of the first test that fails because of the fault; undefined if none does. */
export function findFailingTest({ name, edits, test: [project, files] }: TestedFault): string | undefined {
  const copy = mkdtempSync(join(tmpdir(), "berth-fault-"));
  try {
    for (const each of COPIED) cpSync(join(root, each), join(copy, each), { recursive: true });
    for (const each of ["node_modules", "dist"]) symlinkSync(join(root, each), join(copy, each));
    for (const edit of edits) {
      const path = join(copy, edit.file);
      writeFileSync(path, applyEdit(readFileSync(path, "utf8"), edit));
    }
    const report = join(copy, "report.json");
    const { stderr } = spawnSync(
      process.execPath,
      [
        join(root, "node_modules/vitest/vitest.mjs"),
        ...["run", "--project", project, "--reporter=json", `--outputFile=${report}`, files],
      ],
      { cwd: copy, encoding: "utf8" },
    );
    const results = readResults(report);
    const all = results?.testResults.flatMap(({ assertionResults }) => assertionResults) ?? [];
    if (all.length === 0) throw new Error(`${name}: the tests could not be run: ${stderr}`);
    return all.find(({ status }) => status === "failed")?.fullName;
  } finally {
    rmSync(copy, { recursive: true });
  }
}

function readResults(path: string): Result | undefined {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return undefined;
  }
}
