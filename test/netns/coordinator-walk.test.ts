/**
 * Random walks of a pod's NICs on the real kernel: attached, attached again, checked, taken away, detached, in any
 * order and configuration. After every step the plan is fulfilled and `ip route get` says what coordinator-oracle.ts
 * expects. `WALK_SEED=n` repeats a walk.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { times } from "../world/long-cases.ts";
import { Seeded } from "../world/seeded.ts";
import { expectRoutes } from "./coordinator-oracle.ts";
import { snapshot } from "./coordinator-snapshot.ts";
import { type Kind, Walk } from "./coordinator-walker.ts";
import { deleteNamespaces, makeNamespaces, type Names, openWorld, type World } from "./coordinator-world.ts";

/** Pods that live and die in one walk, and steps of each. */
const ROUNDS = times(3);
const STEPS = 14;

const seed = Number(process.env.WALK_SEED ?? Date.now() % 1_000_000);

/**
 * Returns the state that stays when the last NIC is gone: the node's rules and its table, and settings of all links.
 */
async function lasting(names: Names): Promise<unknown> {
  const { pod, node } = await snapshot(names);
  const isOfPod = (line: string): boolean => !line.includes("/all/");
  const { nft: _, sysctls: __, both, six, ...rest } = node;
  const withoutRule = (list: unknown): unknown =>
    JSON.parse(JSON.stringify(list), (_key, value: unknown) =>
      Array.isArray(value) ? value.filter((each) => !JSON.stringify(each).includes('"priority":900')) : value,
    );
  const sysctls = Array.isArray(pod.sysctls) ? pod.sysctls.filter((line) => isOfPod(String(line))) : [];
  return { pod: { ...pod, sysctls }, node: { ...rest, both: withoutRule(both), six: withoutRule(six) } };
}

const kinds: Kind[] = ["underlay", "ptp", "bridge"];

describe.each(kinds)("a walk of pods that are %s", (kind) => {
  let names: Names;
  let world: World;

  beforeAll(async () => {
    names = makeNamespaces(`bcw${kind[0]}`);
    world = await openWorld(names);
  });

  afterAll(async () => {
    await world[Symbol.asyncDispose]();
    deleteNamespaces(names);
  });

  it(`seed ${seed}`, async () => {
    const chance = new Seeded(seed + kinds.indexOf(kind));
    const before = await lasting(names);
    for (let round = 0; round < ROUNDS; round++) {
      const walk = new Walk({ names, world, chance, kind });
      try {
        for (let step = 0; step < STEPS; step++) {
          await walk.step();
          await walk.checkAll();
          await expectRoutes(names, walk.pod());
        }
        await walk.end();
        expect(await lasting(names)).toEqual(before);
      } catch (error) {
        throw new Error(`Seed ${seed}, ${kind}, round ${round}:\n${walk.story.join("\n")}`, { cause: error });
      }
    }
  });
});
