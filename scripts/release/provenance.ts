/**
 * The provenance of a release: a statement of in-toto, version 1, with the predicate of SLSA, version 1
 * (https://slsa.dev/spec/v1.0/provenance). It has no time of its own, so the same commit gives the same bytes.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../setup/paths.mjs";
import type { Facts } from "./facts.ts";
import pinned from "./sources.json" with { type: "json" };
import { sha256 } from "./sources.ts";

export const STATEMENT = "https://in-toto.io/Statement/v1";
export const PREDICATE = "https://slsa.dev/provenance/v1";
/** Names, not addresses of pages. */
const BUILD_TYPE = "https://ipam.vendor.io/berth/release/v1";
const BUILDER = "https://ipam.vendor.io/berth/npm-run-release";

/** `digests` are the SHA-256 of the artifacts by their names. */
export function writeProvenance(digests: ReadonlyMap<string, string>, facts: Facts): Buffer {
  const { version, revision, timeSeconds } = facts;
  const statement = {
    _type: STATEMENT,
    subject: [...digests].map(([name, digest]) => ({ name, digest: { sha256: digest } })),
    predicateType: PREDICATE,
    predicate: {
      buildDefinition: {
        buildType: BUILD_TYPE,
        externalParameters: { version, revision, sourceDateEpoch: timeSeconds },
        resolvedDependencies: dependencies(revision),
      },
      runDetails: { builder: { id: BUILDER } },
    },
  };
  return Buffer.from(`${JSON.stringify(statement, undefined, 2)}\n`);
}

/** The commit, the lock of all npm packages, and the pinned downloads. */
function dependencies(revision: string) {
  const { node, debian } = pinned;
  const { version, ...executables } = node;
  return [
    { name: "berth", digest: { gitCommit: revision.replace(/-dirty$/, "") } },
    { name: "package-lock.json", digest: { sha256: sha256(readFileSync(join(root, "package-lock.json"))) } },
    ...Object.values(executables).map(({ package: name, executableSha256 }) => ({
      ...{ name: `executable of ${name}`, uri: `pkg:npm/${name}@${version}` },
      digest: { sha256: executableSha256 },
    })),
    ...debian.packages.map(({ name, version, architecture, sha256: digest }) => ({
      uri: `pkg:deb/debian/${name}@${encodeURIComponent(version)}?arch=${architecture}`,
      digest: { sha256: digest },
    })),
  ];
}
