/** The condition Supplied with what earlier passes have found, against the same from nothing. */
import { expect, it } from "vitest";
import { planSupplied } from "../../../host/controller/conditions/plan-supplied.ts";
import { KnownUse } from "../../../host/controller/conditions/subnet-use.ts";
import {
  type ControlledPool,
  type ControlledReservation,
  type ControlledSubnet,
  decodeControlledPool,
  decodeControlledReservation,
  decodeControlledSubnet,
} from "../../../host/controller/objects.ts";
import { Seeded } from "../../world/seeded.ts";

const SEED = Number(process.env.SEED ?? 20_261_122);
const apiVersion = "ipam.vendor.io/v1";

/** Two of them overlap. */
const NETWORKS = { blue: "10.9.0.0/27", lime: "10.9.0.0/28", red: "10.9.1.0/28" } as const;
const NAMES = ["blue", "lime", "red", "gone"] as const;

function ipsIn(chance: Seeded, third: number, most = 10): string[] {
  const first = 1 + chance.below(12);
  return chance.chance(0.2) ? [] : [`10.9.${third}.${first}-10.9.${third}.${first + chance.below(most)}`];
}

function poolOf(chance: Seeded, name: string, generation: number): ControlledPool {
  const subnet = chance.pick(NAMES);
  const third = subnet === "red" ? 1 : 0;
  const application = { apiVersion: "apps/v1", kind: "Deployment", namespace: "shop", name, uid: name };
  const generated = { subnet, application, interface: "eth0", reclaim: true, wanted: chance.below(9), reason: "n" };
  const spec = {
    subnet: third === 1 ? "10.9.1.0/24" : "10.9.0.0/24",
    ips: ipsIn(chance, third),
    ...(chance.chance(0.8) ? { generated } : {}),
  };
  return decodeControlledPool({ apiVersion, kind: "IPPool", metadata: { name, uid: name, generation }, spec });
}

function subnetOf(chance: Seeded, name: keyof typeof NETWORKS, generation: number): ControlledSubnet {
  const third = name === "red" ? 1 : 0;
  const pools = Array.from({ length: chance.below(5) }, () => ({
    name: `p${chance.below(6)}`,
    ips: ipsIn(chance, third),
  }));
  const status = chance.chance(0.1) ? { pools: "broken" } : { pools };
  // Those of one generation have the same specification.
  const ips = generation % 2 === 0 ? {} : { ips: [`10.9.${third}.1-10.9.${third}.7`] };
  const metadata = { name, uid: name, generation };
  return decodeControlledSubnet({
    apiVersion,
    kind: "Subnet",
    metadata,
    spec: { subnet: NETWORKS[name], ...ips },
    status,
  });
}

function reservedOf(chance: Seeded, name: string): ControlledReservation {
  const spec = { ips: [`10.9.0.${1 + chance.below(15)}`] };
  return decodeControlledReservation({ apiVersion, kind: "ReservedIP", metadata: { name, uid: name }, spec });
}

it(`what is kept from pass to pass changes no finding, seed ${SEED}`, () => {
  const chance = new Seeded(SEED);
  const reasons = new Map<string, number>();
  for (let walk = 0; walk < 60; walk++) {
    const known = new KnownUse();
    const pools = new Map<string, ControlledPool>();
    const subnets = new Map<string, ControlledSubnet>();
    const reserved = new Map<string, ControlledReservation>();
    const generations = { blue: 1, lime: 1, red: 1 };
    for (let step = 0; step < 60; step++) {
      const kind = chance.below(10);
      const pool = `p${chance.below(6)}`;
      const subnet = chance.pick(["blue", "lime", "red"] as const);
      if (kind < 5) pools.set(pool, poolOf(chance, pool, step + 1));
      else if (kind === 5) pools.delete(pool);
      else if (kind === 6 && chance.chance(0.3)) subnets.delete(subnet);
      else if (kind < 9) {
        if (chance.chance(0.3)) generations[subnet]++;
        subnets.set(subnet, subnetOf(chance, subnet, generations[subnet]));
      } else if (chance.chance(0.5)) reserved.set("r", reservedOf(chance, "r"));
      else reserved.clear();
      const view = {
        pools: [...pools.values()],
        subnets: [...subnets.values()],
        reserved: [...reserved.values()],
        settings: { maxGeneratedPoolSize: 1_024, maxGeneratedAddressesPerNamespace: chance.pick([0, 0, 20]) },
      };
      const kept = planSupplied({ ...view, known });
      const fresh = planSupplied(view);
      expect(kept).toEqual(fresh);
      for (const { reason } of fresh.pools.values()) reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
    }
  }
  const frequent = [...reasons].filter(([, count]) => count > 50).map(([reason]) => reason);
  expect(frequent.sort()).toEqual(["NamespaceLimit", "SubnetFull", "SubnetGone", "SubnetInvalid", "Supplied"]);
});
