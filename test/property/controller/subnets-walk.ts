/**
 * One walk: what people, workloads, nodes and the network do to the controllers, at random, and what has to be true
 * in the end.
 */
import { Seeded } from "../../world/seeded.ts";
import type { WalkController } from "./subnets-controller.ts";
import { ALLOCATIONS, CONFIG_MAPS, flush, POOLS, RESERVED, SUBNETS, SubnetsWorld } from "./subnets-controller.ts";
import { checkEnd } from "./subnets-end.ts";
import { edit, makeSubnet } from "./subnets-people.ts";
import type { Wanted } from "./subnets-workloads.ts";

export const STEPS = [
  // To which a failed walk is made simpler.
  "nothing",
  ...[
    "call",
    "rounds",
    "hear",
    "time",
    "come",
    "scale",
    "go",
    "rename",
    "move",
    "hear of workloads",
    "subnet",
    "edit subnet",
  ],
  ...["delete subnet", "pool by hand", "delete pool", "reserve", "claim", "release", "crash", "start", "limits"],
] as const;

export interface Step {
  readonly kind: (typeof STEPS)[number];
  /** Decides the rest. */
  readonly dice: number;
}

const NAMES = ["web", "api", "db"];

export interface WalkResult {
  readonly problems: readonly string[];
  readonly log: readonly string[];
  readonly gains: number;
  readonly losses: number;
}

class Walk {
  readonly world: SubnetsWorld;
  readonly faultShare: number;

  constructor(faultShare: number, poolWritesPerSecond: number | undefined) {
    this.faultShare = faultShare;
    this.world = new SubnetsWorld(poolWritesPerSecond);
  }

  async run(steps: readonly Step[]): Promise<WalkResult> {
    const { world } = this;
    const { checker } = world;
    await makeSubnet(world, "a");
    await makeSubnet(world, "b");
    for (let left = 2; left > 0; left--) await world.start();
    for (const step of steps) {
      world.step++;
      await this.#step(step.kind, new Seeded(step.dice));
      await flush();
      if (checker.breaches.length > 0) break;
    }
    const problems = checker.breaches.length > 0 ? [] : await this.#end();
    for (const controller of [...world.controllers]) world.crash(controller);
    const { gains, losses } = checker;
    return { problems: [...checker.breaches, ...problems], log: world.log, gains, losses };
  }

  async #step(kind: Step["kind"], random: Seeded): Promise<void> {
    const { world } = this;
    const { workloads } = world;
    const controller = world.controllers[random.below(world.controllers.length)];
    switch (kind) {
      case "nothing":
        return;
      case "call":
        return this.#calls(random);
      case "rounds":
        return this.#rounds(random);
      case "hear":
        return controller?.deliver(
          random.pick([POOLS, POOLS, SUBNETS, ALLOCATIONS, RESERVED, CONFIG_MAPS]),
          1 + random.below(5),
        );
      case "time":
        return world.advance(random.pick([10, 10, 50, 50, 200, 1_500, 3_000, 6_000]));
      case "come": {
        const name = random.pick(NAMES);
        if (!workloads.living.has(name))
          this.#note(`${name} comes`, () => workloads.come(name, world.next("w"), this.#wanted(random)));
        return;
      }
      case "scale": {
        const [name, count] = [random.pick(NAMES), random.below(9)];
        return this.#note(`${name} wants ${count}`, () => workloads.change(name, (wanted) => ({ ...wanted, count })));
      }
      case "go": {
        const name = random.pick(NAMES);
        return this.#note(`${name} goes`, () => workloads.go(name));
      }
      case "rename": {
        const name = random.pick(NAMES);
        const before = workloads.living.get(name);
        if (before === undefined) return;
        if (random.below(2) === 0)
          return this.#note(`${name} is made anew around its pods`, () => workloads.recreate(name, world.next("w")));
        return this.#note(`${name} is made anew`, () => {
          workloads.go(name);
          workloads.come(name, world.next("w"), before.wanted);
        });
      }
      case "move":
        return this.#move(random);
      case "hear of workloads":
        return controller?.hearWorkloads();
      case "claim":
        return this.#claim(random);
      case "release":
        return this.#release(random);
      case "crash":
        return controller === undefined ? undefined : world.crash(controller);
      case "start":
        return world.controllers.length < 3 ? void (await world.start()) : world.calls.step(random, this.faultShare);
      default:
        return edit(this.world, kind, random);
    }
  }

  /** One call, or some in a row. */
  async #calls(random: Seeded): Promise<void> {
    for (let left = random.pick([1, 1, 2, 4, 8]); left > 0; left--) {
      this.world.calls.step(random, this.faultShare);
      await flush();
    }
  }

  /** Some time in which things go well: one controller hears all, and its calls are answered soon. */
  async #rounds(random: Seeded): Promise<void> {
    const { world } = this;
    const controller = world.controllers[random.below(world.controllers.length)];
    controller?.hearWorkloads();
    for (let left = 1 + random.below(12); left > 0; left--) {
      await world.advance(random.pick([10, 50, 50, 200, 2_000]));
      for (let calls = world.calls.all.length; calls > 0; calls--) {
        world.calls.step(random, this.faultShare / 4);
        await flush();
      }
      controller?.deliverAll();
    }
  }

  #wanted(random: Seeded): Wanted {
    return {
      subnets: this.#subnets(random),
      count: random.below(8),
      reclaim: random.chance(0.6),
      nics: random.chance(0.8) ? ["eth0"] : ["eth0", "net1"],
    };
  }

  #subnets(random: Seeded): readonly string[] {
    return random.pick([
      ["a"],
      ["a"],
      ["b"],
      ["a", "b"],
      ["b", "a"],
      ["wide"],
      ["part"],
      ["far"],
      ["a", "six"],
      ["wide", "b"],
    ]);
  }

  #move(random: Seeded): void {
    const name = random.pick(NAMES);
    const [subnets, pods] = [this.#subnets(random), random.below(4)];
    this.#note(`${name} moves to ${subnets.join()}, ${pods} pods are to follow`, () =>
      this.world.workloads.change(name, ({ former: _, ...wanted }) => {
        const former = pods === 0 ? undefined : { subnets: wanted.subnets, count: pods };
        return { ...wanted, subnets, former };
      }),
    );
  }

  #note(text: string, act: () => void): void {
    this.world.note(text);
    act();
  }

  /** A node takes an address of a pool that it knows, which may be an old version: its name is the lock. */
  async #claim(random: Seeded): Promise<void> {
    const { world } = this;
    const pools = [...world.checker.pools.values()].filter(
      ({ addresses, isDeleting }) => addresses.size > 0 && !isDeleting,
    );
    if (pools.length === 0) return;
    const pool = random.pick(pools);
    const address = random.pick([...pool.addresses]);
    const name = nameOf(address, pool.addressSpace);
    const holder = { namespace: "shop", pod: "p", podUID: world.next("p"), interface: "eth0", node: "n1" };
    const spec = {
      address,
      addressSpace: pool.addressSpace,
      prefixLength: 28,
      pool: pool.name,
      state: "Bound",
      node: "n1",
      holders: [holder],
    };
    await world.kubectl("POST", ALLOCATIONS, { metadata: { name }, spec });
  }

  async #release(random: Seeded): Promise<void> {
    const all = this.world.list(ALLOCATIONS);
    if (all.length > 0) await this.world.kubectl("DELETE", `${ALLOCATIONS}/${random.pick(all).metadata.name}`);
  }

  /** All faults end, and one controller lives. */
  async #end(): Promise<readonly string[]> {
    const { world } = this;
    world.step++;
    world.note("-- calm");
    const [survivor] = world.controllers;
    for (const controller of world.controllers.slice(1)) world.crash(controller);
    world.calls.finish();
    world.isCalm = true;
    await flush();
    const controller = survivor ?? (await world.start());
    if (!(await this.#answerWith(controller))) return ["The controller does not come to rest"];
    if (world.checker.breaches.length > 0) return [];
    return [...controller.problems, ...checkEnd(world)];
  }

  /** False when it goes on writing. */
  async #answerWith(controller: WalkController): Promise<boolean> {
    const { world } = this;
    controller.hearWorkloads();
    for (let quiet = 0, rounds = 0; quiet < 4; rounds++) {
      if (rounds > 60) return false;
      const before = world.writes;
      await world.advance(11_000);
      const delivered = controller.deliverAll();
      await flush();
      quiet = world.writes === before && delivered === 0 ? quiet + 1 : 0;
    }
    return true;
  }
}

function nameOf(address: string, space: string): string {
  const name = address.includes(":")
    ? `fd00-0000-0000-0000-0000-0000-0000-${address.split("::")[1]?.padStart(4, "0")}`
    : address;
  return space === "" ? name : `${name}.${space}`;
}

/** `poolWritesPerSecond`: of each controller; undefined: as many as come. */
export function walk(
  steps: readonly Step[],
  faultShare: number,
  poolWritesPerSecond: number | undefined,
): Promise<WalkResult> {
  return new Walk(faultShare, poolWritesPerSecond).run(steps);
}
