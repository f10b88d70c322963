/** Subnets whose parts are planned by themselves, and left out while they are at rest, against a plan of everything. */
import { expect, it } from "vitest";
import type { SubnetsPlan, SubnetsView } from "../../../host/controller/subnets/model.ts";
import { PartsAtRest, WAITING_PLAN_MS } from "../../../host/controller/subnets/parts-at-rest.ts";
import { planSubnets } from "../../../host/controller/subnets/plan/plan-subnets.ts";
import { times } from "../../world/long-cases.ts";
import { PlannedSubnets } from "../../world/planned-subnets.ts";
import { Seeded } from "../../world/seeded.ts";

const SEED = Number(process.env.SEED ?? 20_261_122);

/** Two of them overlap. */
const SUBNETS = {
  blue: "10.9.0.0/28",
  green: "10.9.1.0/27",
  lime: "10.9.1.0/28",
  red: "10.9.2.0/29",
  six: "fd00:9::/124",
} as const;
const V4 = ["blue", "green", "lime", "red", "missing"];

function textOf(value: unknown): string {
  return JSON.stringify(value, (_, each) => (typeof each === "bigint" ? `${each}n` : each));
}

/** Objects with the same content are the same object, as those that no watch has told of. */
class Known {
  readonly #objects = new Map<string, unknown>();

  one<T>(value: T): T {
    const text = textOf(value);
    const known = this.#objects.get(text) ?? value;
    this.#objects.set(text, known);
    return known as T;
  }

  view(view: SubnetsView): SubnetsView {
    const { demands, subnets, pools, others, strays } = view;
    const all = <T>(list: readonly T[]) => list.map((each) => this.one(each));
    const rest = { others: all(others), strays: all(strays) };
    return { ...view, demands: all(demands), subnets: all(subnets), pools: all(pools), ...rest };
  }
}

function generationOf(spec: object): number {
  let hash = 1;
  for (const character of JSON.stringify(spec)) hash = (Math.imul(hash, 31) + (character.codePointAt(0) ?? 0)) | 0;
  return (hash >>> 1) + 1;
}

/** `lives`: how often each workload was deleted. Another one of its name has a UID of its own. */
function edit(chance: Seeded, world: PlannedSubnets, lives: Map<string, number>): void {
  const name = `web-${chance.below(6)}`;
  const uid = `${name}-${lives.get(name) ?? 0}`;
  const kind = chance.below(11);
  if (kind === 10) {
    // Somebody takes a pool's addresses away by hand.
    const [pool] = [...world.pools].filter(() => chance.chance(0.3));
    if (pool !== undefined) world.pools.set(pool[0], { ...pool[1], spec: { ...pool[1].spec, ips: [] } });
  } else if (kind < 4) {
    const count = 1 + chance.below(5);
    const isV6 = chance.chance(0.2);
    const names = isV6 ? ["six"] : [chance.pick(V4), ...(chance.chance(0.3) ? [chance.pick(V4)] : [])];
    const own = { count, family: isV6 ? 6 : 4, subnets: [...new Set(names)], reclaim: chance.chance(0.8) } as const;
    world.applications.want(name, uid, own);
    world.liveness.delete(`shop/${uid}`);
  } else if (kind === 4) {
    world.applications.end(uid);
    const liveness = chance.pick(["gone", "gone", "alive", "unknown"] as const);
    world.liveness.set(`shop/${uid}`, liveness);
    if (liveness === "gone") lives.set(name, (lives.get(name) ?? 0) + 1);
  } else if (kind === 5) world.byHand = chance.chance(0.5) ? [] : ["10.9.0.4-10.9.0.6"];
  else if (kind === 6) world.excessMs = chance.pick([0, 60_000]);
  else if (kind === 7) {
    const subnet = chance.pick(Object.keys(SUBNETS)) as keyof typeof SUBNETS;
    if (chance.chance(0.2)) world.subnets.delete(subnet);
    else
      world.subnet(subnet, {
        subnet: SUBNETS[subnet],
        ...(chance.chance(0.2) ? { namespaceAffinity: { matchLabels: { team: "a" } } } : {}),
      });
  } else if (kind === 8) {
    world.labels = chance.chance(0.5) ? NO_LABELS : TEAM;
    world.maxPerNamespace = chance.pick([0, 0, 0, 9]);
  } else if (world.held.size > 3) {
    world.held.clear();
    world.strays.clear();
  } else {
    const address = `10.9.${chance.below(3)}.${2 + chance.below(12)}`;
    world.held.add(address);
    // Some of them were given by a pool that has them no more.
    if (chance.chance(0.3)) world.strays.set(address, chance.pick(["former", ...world.pools.keys()]));
  }
}

const NO_LABELS = {};
const TEAM = { team: "a" };

/** Returns the changes of a plan, in no order. */
function effectOf(plan: SubnetsPlan) {
  const targets = plan.networks.flatMap((network) => network.targets);
  return {
    targets: targets
      .filter(({ isChanged }) => isChanged)
      .map(({ name, spans, generated }) => textOf({ name, spans, generated }))
      .sort(),
    growing: plan.networks
      .filter(({ grows }) => grows)
      .map(({ targets: all }) => all.map(({ name }) => name).sort())
      .sort(),
    remove: plan.remove.map(({ object }) => object.name).sort(),
    ask: plan.ask.map(({ uid }) => uid).sort(),
    shortfalls: plan.shortfalls.map(({ message, demand }) => `${demand.application.uid}: ${message}`).sort(),
    excess: [...plan.excess].sort(),
    postponed: [...plan.postponed].sort(),
    waiting: [...plan.waiting].sort(),
  };
}

it(`parts planned by themselves, unless they are at rest, are the plan of the whole, seed ${SEED}`, () => {
  const chance = new Seeded(SEED);
  const counts = { parts: 0, planned: 0, kept: 0, changes: 0 };
  let nowMs = 0;
  for (let walk = 0; walk < times(10); walk++) {
    const world = new PlannedSubnets();
    const known = new Known();
    const parts = new PartsAtRest(() => nowMs);
    const lives = new Map<string, number>();
    for (const [name, subnet] of Object.entries(SUBNETS)) world.subnet(name, { subnet });
    for (let step = 0; step < 60; step++) {
      const held = textOf([...world.held]);
      if (chance.chance(0.5)) edit(chance, world, lives);
      // A plan that waits is kept for so long although an address may be in use.
      if (textOf([...world.held]) !== held) nowMs += WAITING_PLAN_MS;
      for (const [name, pool] of world.pools) {
        const metadata = { ...pool.metadata, generation: generationOf(pool.spec) };
        world.pools.set(name, { ...pool, metadata, ...(chance.chance(0.1) ? { status: { used: step } } : {}) });
      }
      const view = known.view(world.view());
      const partial = parts.plan(view);
      const whole = planSubnets(view);
      const effect = effectOf(whole);
      expect(effectOf(partial)).toEqual(effect);
      counts.changes += effect.targets.length;
      counts.parts += new PartsAtRest(() => nowMs).plan(view).parts.length;
      counts.planned += partial.parts.length;
      counts.kept += partial.kept.size;
      if (chance.chance(0.2)) continue;
      if (chance.chance(0.3)) {
        // The turn of new pools has not come, and there is nothing else.
        for (const part of partial.parts) if (part.onlyCreates) parts.rest(part);
        continue;
      }
      const before = new Map([...world.subnets].map(([name, { status }]) => [name, textOf(status ?? {})]));
      world.carryOut(partial);
      for (const part of partial.parts) {
        const names = part.view.subnets.map(({ object }) => object.name);
        const isIdle = names.every((name) => textOf(world.subnets.get(name)?.status ?? {}) === before.get(name));
        if (isIdle) parts.rest(part);
      }
      if (chance.chance(0.3)) world.finish();
    }
  }
  expect(counts.planned).toBeLessThan(0.75 * counts.parts);
  expect(counts.changes).toBeGreaterThan(times(70));
  expect(counts.kept).toBeGreaterThan(times(7));
});
