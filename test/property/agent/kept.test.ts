/**
 * A workload's member gets its own addresses back, NIC by NIC and family by family, however full the pool is and however little the node knows of
 * it, and nothing beside them is kept for it (retention).
 */
import { expect, it } from "vitest";
import type { IpPool } from "../../../host/resources/ip-pool.ts";
import { pool } from "../../unit/ipam/subjects.ts";
import { Seeded } from "../core/seeded.ts";
import {
  isRefused,
  type KeptNode,
  KeptWorld,
  type LivePod,
  type Member,
  machineOf,
  memberOf,
  type StartOptions,
} from "./kept-world.ts";

/** The same each time, so that the gate says of a commit what it said before; others with BERTH_SEED, and more with BERTH_RUNS. */
const SEED = Number(process.env.BERTH_SEED ?? 1);
const RUNS = Number(process.env.BERTH_RUNS ?? 20);
const RESTARTS = Number(process.env.BERTH_RUNS ?? 4);
const STEPS = 60;

/** What went wrong for members that had addresses before. */
class Tally {
  readonly refused: string[] = [];
  readonly changed: string[] = [];
  readonly left: string[] = [];
  restarts = 0;
  readonly #had = new Map<Member, ReadonlyMap<string, string>>();

  started({ member, addresses }: LivePod, what: string): void {
    if (member.workload === undefined) return;
    const had = this.#had.get(member);
    if (had === undefined) {
      this.#had.set(member, addresses);
      return;
    }
    this.restarts++;
    const [before, now] = [had, addresses].map((each) => [...each].sort().join());
    if (before !== now) this.changed.push(`${what}: ${member.name} had ${before}, has ${now}`);
    this.#had.set(member, addresses);
  }

  failed(member: Member, error: unknown, what: string): void {
    if (!isRefused(error)) throw error;
    if (this.#had.has(member)) this.refused.push(`${what}: ${member.name} ${error.message}`);
  }

  see(world: KeptWorld, what: string): void {
    this.left.push(...world.surplus().map((line) => `${what}: ${line}`));
  }

  get all(): object {
    return { refused: this.refused, changed: this.changed, left: this.left };
  }
}

const NOTHING = { refused: [], changed: [], left: [] };

it.each<[title: string, members: number, selection: "hash" | "ascending", machines: boolean]>([
  ["5 on 5", 5, "hash", false],
  ["20 on 20", 20, "hash", false],
  ["10 on 10 in ascending order", 10, "ascending", false],
  ["5 machines on 5", 5, "hash", true],
])("retention: restarts on nodes that know nothing: %s addresses", async (_, count, selection, machines) => {
  const world = new KeptWorld(
    [pool("blue", "10.6.0.0/24", { ips: [`10.6.0.1-10.6.0.${count}`], selection })],
    ["eth0"],
  );
  const tally = new Tally();
  const members = Array.from({ length: count }, (_, at) => (machines ? machineOf(`m${at}`) : memberOf("db", at)));
  const live: LivePod[] = [];
  for (const member of members) {
    const started = await world.start(member, await world.node());
    tally.started(started, "first");
    live.push(started);
  }
  for (let restart = 0; restart < RESTARTS; restart++) {
    for (const [at, pod] of live.entries()) {
      const what = `restart ${restart}`;
      await world.end(pod);
      try {
        const started = await world.start(pod.member, await world.node());
        tally.started(started, what);
        live[at] = started;
      } catch (error) {
        tally.failed(pod.member, error, what);
      }
      tally.see(world, what);
    }
  }
  expect(tally.all).toEqual(NOTHING);
  expect(tally.restarts).toBe(RESTARTS * count);
});

it.each<[title: string, at: number, source: StartOptions["source"], left: number]>([
  ["that it had before", 0, "CNI_ARGS IP", 0],
  ["that is kept for it, too", 1, "runtimeConfig.ips", 0],
  ["that nobody had", 2, "args.cni.ips", 0],
  // A list of all for each start of a machine would be too dear.
  ["that its claim names", 0, "IPAMClaim shop/db", 1],
])("retention: what is left beside an address that a member asks for by name, %s", async (_, at, source, left) => {
  const world = new KeptWorld([pool("blue", "10.6.0.0/24", { ips: ["10.6.0.1-10.6.0.40"] })], ["eth0"]);
  const member = memberOf("db", 0);
  const first = await world.start(member, await world.node());
  const own = first.addresses.get("eth0/4") ?? expect.fail("It has none");
  await world.end(first);
  const others = ["10.6.0.7", "10.6.0.8", "10.6.0.9"].filter((address) => address !== own);
  await world.keepAlso(own, `${others[0]}`);
  expect(world.surplus()).toHaveLength(1);
  const requested = `${[own, ...others][at]}`;
  const again = await world.start(member, await world.node(), { requested, source });
  expect([...again.addresses.values()]).toEqual([requested]);
  expect(world.surplus()).toHaveLength(left);
});

const BLUE = (last: number, selection: "hash" | "ascending"): IpPool =>
  pool("blue", "10.6.0.0/24", { ips: [`10.6.0.1-10.6.0.${last}`], selection });
const SIX = (last: number): IpPool => pool("six", "fd00::/64", { ips: [`fd00::1-fd00::${last.toString(16)}`] });

/** Sets and machines among plain pods, on three nodes with a memory and on new ones; NICs one by one or all at once. */
async function fuzz(seed: number): Promise<Tally> {
  const random = new Seeded(seed);
  const nics = random.chance(0.5) ? ["eth0"] : ["eth0", "net1"];
  const members = [0, 1, 2, 3].map((at) => memberOf("db", at)).concat([machineOf("a"), machineOf("b")]);
  const others = [0, 1].map((at): Member => ({ name: `plain-${at}`, workload: undefined }));
  const needed = (members.length + others.length) * nics.length;
  const size = needed + random.pick([0, 1, 4, 40]);
  const selection = random.pick(["hash", "ascending"] as const);
  const pools = random.chance(0.5) ? [BLUE(size, selection)] : [BLUE(size, selection), SIX(size)];
  const world = new KeptWorld(pools, nics);
  const nodes = [await world.node(), await world.node(), await world.node()];
  const live = new Map<Member, LivePod>();
  const tally = new Tally();
  const isAtOnce = random.chance(0.3);

  const begin = async (member: Member, what: string, source?: KeptNode): Promise<LivePod | undefined> => {
    const others = nodes.filter((node) => node !== source);
    const node = random.chance(0.3) ? await world.node() : random.pick(others);
    try {
      const started = await world.start(member, node, { isAtOnce });
      tally.started(started, what);
      live.set(member, started);
      return started;
    } catch (error) {
      tally.failed(member, error, what);
      return undefined;
    }
  };

  for (let step = 0; step < STEPS; step++) {
    const what = `seed ${seed}, step ${step}`;
    const member = random.chance(0.8) ? random.pick(members) : random.pick(others);
    const pod = live.get(member);
    if (random.chance(0.2)) await world.pass(random.pick([10, 500, 2_100, 31_000]));
    else if (pod === undefined) await begin(member, what);
    else if (member.run !== undefined && random.chance(0.4)) {
      // The machine migrates: both have its addresses until one of them ends.
      const target = await begin(member, what, pod.node);
      const isUndone = target === undefined || random.chance(0.3);
      if (target !== undefined) await world.end(isUndone ? target : pod);
      if (isUndone) live.set(member, pod);
    } else {
      await world.end(pod);
      live.delete(member);
      if (random.chance(0.7)) await begin(member, what);
    }
    tally.see(world, what);
  }
  return tally;
}

it(`retention: members that come and go among others have their addresses and no more (seed ${SEED})`, async () => {
  for (let seed = SEED; seed < SEED + RUNS; seed++) expect((await fuzz(seed)).all).toEqual(NOTHING);
});
