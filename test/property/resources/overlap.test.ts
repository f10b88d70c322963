/** Overlap of pools, found in one walk, compared with a check of each address of each pool against each other pool. */

import { expect, it } from "vitest";
import { formatIp } from "../../../host/net/ip.ts";
import { MAX_NAMED, planOverlap } from "../../../host/resources/plan-overlap.ts";
import { Seeded } from "../../world/seeded.ts";

const SEED = Number(process.env.SEED ?? 1_511);
const BASE = 10n << 24n;

function owner(chance: Seeded, name: string) {
  const has = new Set<number>();
  const ranges = Array.from({ length: chance.below(4) }, () => {
    const first = chance.below(120);
    const last = first + chance.below(12);
    for (let at = first; at <= last; at++) has.add(at);
    return {
      first: { family: 4, value: BASE + BigInt(first) },
      last: { family: 4, value: BASE + BigInt(last) },
    } as const;
  });
  return { name, spec: { addressSpace: chance.chance(0.2) ? "lab" : "", family: 4, ranges } as const, has };
}

it(`planOverlap agrees with a comparison of all with all, seed ${SEED}`, () => {
  const chance = new Seeded(SEED);
  for (let walk = 0; walk < 600; walk++) {
    const owners = Array.from({ length: chance.below(12) }, (_, index) => owner(chance, `p${index}`));
    const found = planOverlap(owners);
    for (const one of owners) {
      const near = owners.filter((other) => other !== one && other.spec.addressSpace === one.spec.addressSpace);
      const shared = [...one.has].filter((at) => near.some(({ has }) => has.has(at))).sort((a, b) => a - b);
      const partners = near.filter(({ has }) => shared.some((at) => has.has(at))).map(({ name }) => name);
      const sharing = found.get(one.name);
      expect(found.has(one.name)).toBe(shared.length > 0);
      expect(sharing?.count ?? 0n).toBe(BigInt(shared.length));
      if (sharing === undefined) continue;
      expect(sharing.first).toBe(formatIp({ family: 4, value: BASE + BigInt(shared[0] ?? -1) }));
      expect(sharing.others).toHaveLength(Math.min(partners.length, MAX_NAMED));
      expect(partners).toEqual(expect.arrayContaining([...sharing.others]));
      expect(sharing.hasMore).toBe(partners.length > MAX_NAMED);
    }
  }
});
