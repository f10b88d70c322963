/** A run of the profile `segments`: clusters that share a segment, faults, and a check after every step. */

import type { RunOptions, RunReport } from "../../../../test/simulation/run.ts";
import { installTime, SimulatedTime } from "../../../../test/simulation/simulated-time.ts";
import { Timeline } from "../../../../test/simulation/timeline.ts";
import { Seeded } from "../../../../test/world/seeded.ts";
import { SharedSegment } from "./shared-segment.ts";

const NAMES = ["east", "west", "north"];
const MINUTE_MS = 60_000;
/** Longest time until all is as it should be without faults: a lease, a block that drains and is returned. */
const RECOVERY_MS = 60 * MINUTE_MS;

interface Action {
  readonly name: string;
  readonly weight: number;
  readonly act: (segment: SharedSegment, random: Seeded, later: (afterMs: number, work: () => void) => void) => void;
}

const ACTIONS: readonly Action[] = [
  {
    name: "pods are scaled",
    weight: 12,
    act: ({ clusters }, random) => random.pick(clusters).scale(random.below(44)),
  },
  {
    name: "the hub is away",
    weight: 2,
    act: (segment, random, later) => {
      if (segment.isQuiet) return;
      segment.isHubAway = true;
      later(random.pick([MINUTE_MS, 10 * MINUTE_MS, 60 * MINUTE_MS]), () => {
        segment.isHubAway = false;
      });
    },
  },
  { name: "the hub is saved", weight: 2, act: (segment) => segment.saveHub() },
  { name: "the hub is restored", weight: 1, act: (segment) => segment.restoreHub() },
  {
    name: "a cluster is off",
    weight: 2,
    act: (segment, random, later) => {
      const cluster = random.pick(segment.clusters);
      if (segment.isQuiet || cluster.isOff) return;
      cluster.powerOff();
      const forMs = random.pick([MINUTE_MS, 5 * MINUTE_MS, 15 * MINUTE_MS, 40 * MINUTE_MS]);
      if (random.chance(0.7)) later(11 * MINUTE_MS, () => segment.release(cluster));
      later(forMs, () => cluster.powerOn());
      later(forMs + random.below(10 * MINUTE_MS), () => segment.readmit(cluster));
    },
  },
  {
    name: "a cluster is off, is released, and comes back while the hub is away",
    weight: 2,
    act: (segment, random, later) => {
      const cluster = random.pick(segment.clusters);
      if (segment.isQuiet || cluster.isOff) return;
      cluster.powerOff();
      later(11 * MINUTE_MS, () => segment.release(cluster));
      later(12 * MINUTE_MS, () => {
        for (const other of segment.clusters) if (other !== cluster) other.scale(44 + random.below(20));
      });
      later(16 * MINUTE_MS, () => {
        segment.isHubAway = !segment.isQuiet;
        cluster.powerOn();
      });
      later(18 * MINUTE_MS, () => {
        segment.isHubAway = false;
      });
      later(20 * MINUTE_MS, () => segment.readmit(cluster));
    },
  },
  { name: "a cluster is saved", weight: 2, act: ({ clusters }, random) => random.pick(clusters).save() },
  {
    name: "a cluster is restored",
    weight: 1,
    act: (segment, random) => segment.isQuiet || random.pick(segment.clusters).restore(),
  },
  {
    name: "a cluster is copied",
    weight: 1,
    act: (segment, random, later) => {
      if (segment.clusters.length > NAMES.length) return;
      const cluster = random.pick(segment.clusters);
      const copy = segment.copy(cluster);
      copy.powerOn();
      later(random.pick([5 * MINUTE_MS, 30 * MINUTE_MS]), () => segment.discard(copy));
    },
  },
  {
    name: "a controller is killed",
    weight: 3,
    act: ({ clusters }, random, later) => {
      const cluster = random.pick(clusters);
      if (cluster.controllers === 0) return;
      cluster.endController();
      later(random.pick([100, 5_000, 30_000]), () => cluster.isOff || cluster.startController());
    },
  },
  {
    name: "two controllers lead",
    weight: 3,
    act: ({ clusters }, random, later) => {
      const cluster = random.pick(clusters);
      if (cluster.isOff || cluster.controllers !== 1) return;
      cluster.startController();
      later(random.pick([10_000, 60_000]), () => cluster.controllers < 2 || cluster.endController());
    },
  },
  {
    name: "an agent restarts",
    weight: 4,
    act: ({ clusters }, random) => random.pick(clusters).restartAgent(random.below(2)),
  },
];
const TOTAL = ACTIONS.reduce((sum, { weight }) => sum + weight, 0);

function actionAt(seed: number, index: number): { readonly action: Action; readonly random: Seeded } {
  const random = new Seeded(Math.imul(seed, 0x9e3779b1) ^ Math.imul(index + 1, 0x85ebca6b));
  let at = random.below(TOTAL);
  const action = ACTIONS.find(({ weight }) => {
    at -= weight;
    return at < 0;
  });
  return { action: action ?? (ACTIONS[0] as Action), random };
}

export async function runSegment(options: RunOptions): Promise<RunReport> {
  using _ = installTime();
  const time = new SimulatedTime(options.seed);
  const timeline = new Timeline(() => time.nowMs);
  time.onStep = (process, label) => timeline.mark(`${time.nowMs} ${process.name}: ${label}`);
  const people = time.process("people");
  const segment = time.inside(people, () => new SharedSegment({ time, timeline, faults: options.faults }, NAMES));
  const actions = new Map<number, string>();
  const later = (afterMs: number, work: () => void) => void time.schedule(afterMs, "people", people, work);
  const runOn = async (while_: () => boolean): Promise<boolean> => {
    while (while_() && (await time.step())) {
      for (const error of time.uncaught.splice(0)) segment.problems.push(`A bug: ${describe(error)}`);
      segment.check();
      if (segment.problems.length > 0) return false;
    }
    return true;
  };

  let isOver = false;
  const act = async (): Promise<void> => {
    for (let index = 0; !isOver; index++) {
      const { action, random } = actionAt(options.seed, index);
      await time.sleep(5_000 + random.below(2 * MINUTE_MS), "fate");
      if (isOver || options.without?.has(index) === true) continue;
      actions.set(index, action.name);
      timeline.note(`# ${index} ${action.name}`);
      action.act(segment, random, later);
    }
  };
  time.inside(people, () => {
    segment.start();
    void act();
  });
  let isFine = await runOn(() => time.steps < options.steps);
  const lastFaultMs = time.nowMs;
  if (isFine) {
    isOver = true;
    timeline.note("# all faults end");
    time.inside(people, () => segment.calm());
    let faults: readonly string[] = ["nothing was checked"];
    while (isFine && faults.length > 0 && time.nowMs < lastFaultMs + RECOVERY_MS) {
      const untilMs = time.nowMs + MINUTE_MS;
      isFine = await runOn(() => time.nowMs < untilMs);
      time.inside(people, () => segment.calm());
      faults = segment.unfinished();
    }
    if (isFine)
      segment.problems.push(...faults.map((fault) => `${RECOVERY_MS / MINUTE_MS} min after the last fault: ${fault}`));
  }
  segment.close();
  for (const problem of segment.problems) timeline.note(`!! ${problem}`);
  return {
    ...{ options, problems: [...new Set(segment.problems)], foundAt: time.steps, steps: time.steps },
    ...{ elapsedMs: time.nowMs, digest: timeline.digest, actions, adds: segment.adds, restarts: 0, migrations: 0 },
    ...{ mostWrites: 0, leaders: 0, mostComparingMs: 0, recoveryMs: time.nowMs - lastFaultMs, timeline },
  };
}

function describe(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
