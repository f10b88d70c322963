/**
 * Whole conversions of test/vectors/convert: each peer's objects, and all files written for them. `vitest run -u`
 * rewrites the expected files. test/cluster/convert.test.ts creates the same input in an API server with the peers' own
 * kinds.
 */
import { readdirSync, statSync } from "node:fs";
import { join, relative } from "node:path";
import { describe, expect, it } from "vitest";
import { root } from "../../../../test/unit/house/sources.ts";
import { PEERS, type Peer } from "../../conversion-plan.ts";
import { readInputFiles } from "../../files.ts";
import { splitNode } from "../../host-local.ts";
import { planFiles } from "../../output.ts";
import { convertFiles } from "../convert-files.ts";

const VECTORS = join(root, "packages", "convert", "test", "vectors");

const PATHS: Readonly<Record<Peer, readonly string[]>> = {
  spiderpool: ["."],
  whereabouts: ["."],
  "host-local": ["worker-1=worker-1", "worker-2=worker-2", "networks.yaml"],
  calico: ["."],
};

/** Converts the input of a peer; `order` arranges the files. */
function convertGolden(peer: Peer, order = <T>(files: readonly T[]): readonly T[] => files) {
  const folder = join(VECTORS, peer, "in");
  const paths = PATHS[peer].map((path) => {
    const split = splitNode(path);
    return { ...split, path: join(folder, split.path) };
  });
  const files = readInputFiles(paths).map((file) => ({ ...file, path: relative(folder, file.path) }));
  return convertFiles(peer, order(files));
}

const filesBelow = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((path) => statSync(join(folder, path)).isFile());

describe.each(PEERS)("a conversion of %s", (peer) => {
  it("writes the expected files", async () => {
    const expected = join(VECTORS, peer, "out");
    const files = planFiles(convertGolden(peer)).filter(({ path }) => path !== "report.json");
    for (const { path, text } of files) await expect(text).toMatchFileSnapshot(join(expected, path));
    expect(filesBelow(expected).sort()).toEqual(files.map(({ path }) => path).sort());
  });

  it("writes the same whatever the order of the files", () => {
    expect(planFiles(convertGolden(peer, (files) => files.toReversed()))).toEqual(planFiles(convertGolden(peer)));
  });
});
