import { expect, it } from "vitest";
import { lostNode } from "../../../../host/controller/gc/check-allocation.ts";
import { AddressesElsewhere } from "../../../../host/controller/gc/garbage-collector.ts";
import type { IpAllocation } from "../../../../host/resources/ip-allocation.ts";
import { Seeded } from "../../../world/seeded.ts";
import { allocation } from "../conditions/judged.ts";

const NODES = ["n1", "n2", "n3"];

/** Returns an allocation of one of three nodes; some were another's, which is lost. */
function anyOf(chance: Seeded, number: number): IpAllocation {
  const address = `10.6.0.${number}`;
  const holder = { namespace: "shop", pod: "web", podUid: "u", ifName: "eth0", node: chance.pick(NODES) };
  const node = chance.pick(NODES);
  if (chance.chance(0.5)) return allocation(address, "p", "Bound", { node });
  const quarantine = { reason: "NodeLost", mac: "", holder } as IpAllocation["spec"]["quarantine"];
  return allocation(address, "p", "Quarantined", { node, quarantine });
}

it("finds the allocations of a lost node that are another's now, as a search through all of them does", () => {
  const chance = new Seeded(Number(process.env.SEED ?? 20_261_122));
  const all = new Map<string, IpAllocation>();
  for (let number = 1; number < 20; number++) {
    const value = anyOf(chance, number);
    all.set(value.name, value);
  }
  const elsewhere = new AddressesElsewhere(all.values());
  let found = 0;
  for (let step = 0; step < 2_000; step++) {
    const value = anyOf(chance, 1 + chance.below(30));
    const { name: key } = value;
    const before = all.get(key);
    if (before !== undefined && chance.chance(0.4)) {
      all.delete(key);
      elsewhere.apply({ kind: "gone", key, before });
    } else {
      all.set(key, value);
      elsewhere.apply({ kind: "set", key, value, before });
    }
    for (const node of NODES) {
      const searched = [...all.values()].filter((each) => each.spec.node !== node && lostNode(each) === node);
      expect([...elsewhere.of(node)].sort()).toEqual(searched.map(({ name }) => name).sort());
      found += searched.length;
    }
  }
  expect(found).toBeGreaterThan(2_000);
});
