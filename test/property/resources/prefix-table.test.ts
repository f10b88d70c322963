import { expect, it } from "vitest";
import {
  formatPrefix,
  maskPrefix,
  type Prefix,
  parsePrefix,
  prefixContains,
  prefixesOverlap,
} from "../../../host/net/prefix.ts";
import { PrefixTable } from "../../../host/net/prefix-table.ts";
import { Seeded } from "../../world/seeded.ts";

const SEED = Number(process.env.SEED ?? 20_261_122);

function prefixOf(chance: Seeded): Prefix {
  const length = chance.chance(0.1) ? chance.pick([0, 8, 32]) : 24 + chance.below(6);
  const text = chance.chance(0.7)
    ? `10.0.0.${chance.below(256)}/${length}`
    : `fd00::${chance.below(99)}/${chance.chance(0.1) ? 0 : 96 + length}`;
  return maskPrefix(parsePrefix(text) ?? expect.fail(text));
}

/** All that overlap the prefix, directly or through others: by address, the widest first. */
function relativesAmong(all: readonly Prefix[], prefix: Prefix): string[] {
  const found = new Set([prefix]);
  for (const each of found) for (const other of all) if (prefixesOverlap(each, other)) found.add(other);
  return all
    .filter((each) => found.has(each))
    .sort((a, b) => (a.ip.value === b.ip.value ? a.length - b.length : a.ip.value < b.ip.value ? -1 : 1))
    .map(formatPrefix);
}

it(`a table of prefixes agrees with a comparison of all of them, seed ${SEED}`, () => {
  const chance = new Seeded(SEED);
  for (let walk = 0; walk < 200; walk++) {
    const table = new PrefixTable<string>();
    const all = new Map<string, Prefix>();
    for (let step = 0; step < 30; step++) {
      const prefix = prefixOf(chance);
      const text = formatPrefix(prefix);
      expect(table.get(prefix)).toBe(all.has(text) ? text : undefined);
      if (!all.has(text)) table.add(prefix, text);
      else table.delete(prefix);
      if (!all.delete(text)) all.set(text, prefix);
      const known = [...all.values()];
      const other = prefixOf(chance);
      expect(table.relativesOf(other)).toEqual(relativesAmong(known, other));
      const around = known.filter((each) => prefixContains(each, other.ip)).sort((a, b) => a.length - b.length);
      expect(table.find(other.ip)).toEqual(around.map(formatPrefix));
    }
  }
});
