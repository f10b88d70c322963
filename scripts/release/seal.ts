/** What closes a release: provenance, SHA256SUMS and, with a key, a signature of each file beside it. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { tagOf } from "../setup/version.mjs";
import type { Facts } from "./facts.ts";
import { type Key, writeSignature } from "./minisign.ts";
import { writeProvenance } from "./provenance.ts";
import { sha256 } from "./sources.ts";

/** `digests` are the SHA-256 of the artifacts in `directory` by their names. Signatures are not in SHA256SUMS. */
export function sealRelease(directory: string, digests: ReadonlyMap<string, string>, facts: Facts, key?: Key): void {
  const artifacts = [...digests].sort(([a], [b]) => (a < b ? -1 : 1));
  const provenance = writeProvenance(new Map(artifacts), facts);
  const name = `berth-${tagOf(facts.version)}.provenance.json`;
  writeFileSync(join(directory, name), provenance);
  const sums = [...artifacts, [name, sha256(provenance)]].map(([file, digest]) => `${digest}  ${file}\n`);
  writeFileSync(join(directory, "SHA256SUMS"), sums.sort().join(""));
  if (key === undefined) return;
  for (const file of [...digests.keys(), name, "SHA256SUMS"]) {
    const signature = writeSignature(readFileSync(join(directory, file)), key, `${file} of berth ${facts.version}`);
    writeFileSync(join(directory, `${file}.minisig`), signature);
  }
}
