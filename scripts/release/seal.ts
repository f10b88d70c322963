/** The seal of a release: provenance and SHA256SUMS. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { tagOf } from "../setup/version.mjs";
import type { Facts } from "./facts.ts";
import { writeProvenance } from "./provenance.ts";
import { sha256 } from "./sources.ts";

/** `digests` are the SHA-256 of the artifacts in `directory` by their names. */
export function sealRelease(directory: string, digests: ReadonlyMap<string, string>, facts: Facts): void {
  const artifacts = [...digests].sort(([a], [b]) => (a < b ? -1 : 1));
  const provenance = writeProvenance(new Map(artifacts), facts);
  const name = `berth-${tagOf(facts.version)}.provenance.json`;
  writeFileSync(join(directory, name), provenance);
  const sums = [...artifacts, [name, sha256(provenance)]].map(([file, digest]) => `${digest}  ${file}\n`);
  writeFileSync(join(directory, "SHA256SUMS"), sums.sort().join(""));
}
