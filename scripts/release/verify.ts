/**
 * `npm run verify -- DIR`: checks a release directory without network: sums, signatures, SBOMs and provenance. Names
 * what is wrong or missing, and ends with 1 then.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { root } from "../setup/paths.mjs";
import { findProblems } from "./find-problems.ts";
import { parsePublicKey } from "./minisign.ts";

/** The publisher's public key, once there is one. */
const PUBLISHED_KEY = join(root, "scripts", "release", "berth.pub");

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { key: { type: "string" }, unsigned: { type: "boolean", default: false } },
});
const [directory = join(root, "dist", "release")] = positionals;
const keyFile = values.key ?? (existsSync(PUBLISHED_KEY) ? PUBLISHED_KEY : undefined);
if (keyFile === undefined && !values.unsigned) {
  console.error("No public key: name the publisher's with --key FILE, or give --unsigned to leave out the signatures");
  process.exit(1);
}
const key = keyFile === undefined || values.unsigned ? undefined : parsePublicKey(readFileSync(keyFile, "utf8"));
const problems = findProblems(directory, key);
for (const problem of problems) console.error(problem);
const signatures = key === undefined ? "NOT the signatures" : `all signatures by key ${key.id}`;
if (problems.length === 0)
  console.log(`${directory} is as released: sums, SBOMs and provenance fit; checked ${signatures}`);
process.exitCode = problems.length === 0 ? 0 : 1;
