/**
 * `npm run verify -- DIR`: checks a release directory without network: sums, SBOMs and provenance. Names wrong and
 * missing parts, and then ends with 1.
 */
import { join } from "node:path";
import { root } from "../setup/paths.mjs";
import { findProblems } from "./find-problems.ts";

const [directory = join(root, "dist", "release")] = process.argv.slice(2);
const problems = findProblems(directory);
for (const problem of problems) console.error(problem);
if (problems.length === 0) console.log(`${directory} is as released: sums, SBOMs and provenance fit`);
process.exitCode = problems.length === 0 ? 0 : 1;
