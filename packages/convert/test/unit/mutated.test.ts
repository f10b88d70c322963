/**
 * Golden input with random changes: whatever it contains, the written manifests pass Berth's decoders, and nothing
 * throws. Networks and annotations are checked as they are made.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { checkPools } from "../../../../host/resources/check-pools.ts";
import { decodeManifests, type Resource } from "../../../../host/resources/manifest.ts";
import { root } from "../../../../test/unit/house/sources.ts";
import { Seeded } from "../../../../test/world/seeded.ts";
import { PEERS, type Peer } from "../../conversion-plan.ts";
import { planFiles } from "../../output.ts";
import { convertFiles, yaml } from "../convert-files.ts";

const RUNS = 40;

const VALUES: readonly unknown[] = [
  ...[null, true, -1, 2 ** 60, "", "x", " ", "{}", "[1]"],
  ...["10.6.0.0/24", "10.41.0.0/20", "fd00::/64", "::1", "10.0.0.1-10.0.0.9"],
  ...["0.0.0.0/0", "a".repeat(400), "\u0000\u202e", "__proto__", [], {}, [[]], [null], { a: { b: [] } }],
];

/** Returns the value with one part in `1 / rate` replaced, removed or doubled. */
function mutate(value: unknown, chance: Seeded, rate = 0.02): unknown {
  if (chance.chance(rate)) return chance.pick(VALUES);
  if (Array.isArray(value)) {
    const changed = value.map((item) => mutate(item, chance, rate));
    return chance.chance(rate) ? [...changed, ...changed] : changed;
  }
  if (typeof value === "object" && value !== null)
    return Object.fromEntries(
      Object.entries(value)
        .filter(() => !chance.chance(rate))
        .map(([key, inner]) => [chance.chance(rate) ? `${key}x` : key, mutate(inner, chance, rate)]),
    );
  if (typeof value === "string" && /^[[{]/.test(value.trim())) {
    try {
      return JSON.stringify(mutate(JSON.parse(value), chance, rate));
    } catch {}
  }
  return value;
}

function goldenDocuments(peer: Peer): unknown[] {
  const folder = join(root, "packages", "convert", "test", "vectors", peer, "in");
  const names = readdirSync(folder).filter((name) => name.endsWith(".yaml"));
  return names.flatMap((name) =>
    parseAllDocuments(readFileSync(join(folder, name), "utf8")).map((each) => each.toJS()),
  );
}

it.each(PEERS)("%s: objects made of random input are valid", (peer) => {
  const documents = goldenDocuments(peer);
  let pools = 0;
  for (let seed = 1; seed <= RUNS; seed++) {
    const chance = new Seeded(seed);
    const files = planFiles(convertFiles(peer, yaml(...documents.map((document) => mutate(document, chance)))));
    const manifests = files.filter(({ path }) => /^manifests\/[123]/.test(path));
    const resources = manifests.flatMap(({ path, text }): Resource[] => decodeManifests(text, `seed ${seed}, ${path}`));
    const found = resources.filter((resource) => resource.kind === "IPPool");
    expect([...checkPools(found).refused], `seed ${seed}`).toEqual([]);
    pools += found.length;
  }
  expect(pools).toBeGreaterThan(RUNS / 2);
});
