/** One scale run: start, roll-out, load, a zone outage, a rolling upgrade; the time and cost of each. */
import { percentiles, tableOf } from "../../../benchmarks/harness/table.ts";
import { formatFigure, formatTable, percentile } from "../../lab/statistics.ts";
import { installTime, type Process, SimulatedTime } from "../simulated-time.ts";
import { type ScaleNode, type ScaleShape, ScaleWorld } from "./scale-world.ts";

export interface ScaleOptions extends ScaleShape {
  /** Pods that start each second. */
  readonly rate: number;
  /** Duration of the load after all pods have started: seconds. */
  readonly loadS: number;
}

/** Processor time is the server's, by the model, and that of the controller's code, which is real: milliseconds. */
interface Totals {
  readonly requests: number;
  readonly deliveries: number;
  readonly serverMs: number;
  readonly controllerMs: number;
}

interface Phase {
  readonly name: string;
  readonly fromS: number;
  readonly from: Totals;
  /** At its end. */
  to: Totals;
  seconds: number;
  addMs: readonly number[];
  /** Longest time that a request waited for a processor, and that an event was late. */
  worstWaitMs: number;
  worstLagMs: number;
  readonly notes: string[];
}

export interface ScaleReport {
  readonly phases: readonly Phase[];
  /** From the eviction of a lost zone's pods until all of them had addresses elsewhere: seconds. */
  readonly recoveryS: number;
  readonly failures: Readonly<Record<string, number>>;
  readonly pods: number;
  /** Without an address, and records of pods that are gone: at the end. */
  readonly waiting: number;
  readonly stale: number;
}

const LOAD = "pods start";
const ROLL_OUT_RATE = 100;
const EVICTION_S = 60;
const OUTAGE_S = 120;
const UPGRADE_SHARE = 0.05;
const UPGRADE_DOWN_MS = 3_000;
/** A phase that takes longer does not end. */
const PATIENCE_S = 480;

/** `say` hears of each phase. */
export async function runScale(options: ScaleOptions, say: (line: string) => void = () => {}): Promise<ScaleReport> {
  const run = new ScaleRun(options, say);
  using _ = installTime();
  return await run.run();
}

class ScaleRun {
  readonly #options: ScaleOptions;
  readonly #say: (line: string) => void;
  readonly #time = new SimulatedTime(1);
  readonly #world: ScaleWorld;
  readonly #fate: Process;
  readonly #phases: Phase[] = [];
  #controllerMs = 0;
  #running: Process | undefined;
  #runningSince = process.threadCpuUsage();

  constructor(options: ScaleOptions, say: (line: string) => void) {
    this.#options = options;
    this.#say = say;
    this.#fate = this.#time.process("fate");
    this.#world = new ScaleWorld(this.#time, options);
    this.#time.onStep = (next) => this.#account(next);
  }

  /** The main thread's processor time since the last event belongs to the process that had it. */
  #account(next: Process): void {
    const watched = this.#world.controllerProcess;
    if ((next === watched) === (this.#running === watched)) return;
    const now = process.threadCpuUsage();
    if (this.#running === watched)
      this.#controllerMs += (now.user + now.system - this.#runningSince.user - this.#runningSince.system) / 1_000;
    this.#running = next;
    this.#runningSince = now;
  }

  async run(): Promise<ScaleReport> {
    const { nodes, pods, pools, rate, loadS } = this.#options;
    const world = this.#world;
    this.#begin(`${nodes} agents start`);
    world.inside(() => world.furnish());
    for (const [index, node] of world.nodes.entries())
      this.#later(() => world.startAgent(node), 5_000 + (index * 60_000) / nodes);
    await this.#for(6);
    await this.#until(() => world.nodes.every((node) => this.#isReady(node)));

    this.#begin(`roll-out of ${pools} workloads`);
    for (let index = 0; index < pools; index++)
      this.#later(() => world.putWorkload(index), (index * 1_000) / ROLL_OUT_RATE);
    await this.#until(() => world.completePools === pools);
    this.#phase.notes.push(`created within ${pools / ROLL_OUT_RATE} s, their pools complete after ${this.#elapsedS} s`);

    this.#begin(`${rate} ${LOAD} a second`);
    for (let index = 0; index < pods; index++)
      this.#later(() => world.createPod(index % pools), (index * 1_000) / rate);
    await this.#for(Math.ceil(pods / rate));
    await this.#until(() => world.waiting === 0);

    this.#begin(`${rate / 2} pods a second end and start`);
    this.#churn(rate / 2, loadS);
    await this.#for(loadS + 8);
    await this.#until(() => world.waiting === 0);

    const recoveryS = await this.#loseZone();
    await this.#upgrade();
    this.#end();
    const failures = Object.fromEntries(world.failures);
    const { waiting, stale } = world;
    return { phases: this.#phases, recoveryS, failures, pods: world.pods.size, waiting, stale };
  }

  async #loseZone(): Promise<number> {
    const world = this.#world;
    const { rate } = this.#options;
    this.#begin("a third of the nodes is lost");
    const zone = world.nodes.filter(({ index }) => Math.floor((index * 3) / world.nodes.length) === 1);
    world.inside(() => world.cut(zone));
    await this.#for(EVICTION_S);
    world.inside(() => {
      for (const node of zone) world.setReady(node, false);
    });
    const lost = zone.flatMap(({ pods }) => [...pods]);
    for (const [index, pod] of lost.entries())
      this.#later(
        () => {
          world.endPod(pod);
          world.createPod(pod.workload);
        },
        (index * 1_000) / rate,
      );
    await this.#for(Math.ceil(lost.length / rate));
    await this.#until(() => world.waiting === 0);
    const recoveryS = this.#elapsedS - EVICTION_S;
    this.#phase.notes.push(
      `${lost.length} pods evicted after ${EVICTION_S} s; all had addresses elsewhere ${recoveryS} s later`,
    );
    await this.#for(Math.max(1, OUTAGE_S - this.#elapsedS));
    this.#begin("the zone comes back within 20 s");
    for (const [index, node] of zone.entries())
      this.#later(() => world.restoreNodes([node]), (index * 20_000) / zone.length);
    await this.#for(21);
    await this.#until(() => zone.every((node) => this.#isReady(node)) && world.stale === 0);
    this.#phase.notes.push(`no record of a pod that is gone was left after ${this.#elapsedS} s`);
    return recoveryS;
  }

  async #upgrade(): Promise<void> {
    const world = this.#world;
    const { nodes } = world;
    const batch = Math.max(1, Math.ceil(nodes.length * UPGRADE_SHARE));
    this.#begin(`all agents are upgraded, ${batch} at a time`);
    this.#churn(this.#options.rate / 4, 60);
    for (let first = 0; first < nodes.length; first += batch) {
      const some = nodes.slice(first, first + batch);
      world.inside(() => {
        for (const node of some) world.stopAgent(node);
      });
      for (const node of some) this.#later(() => world.startAgent(node), UPGRADE_DOWN_MS);
      await this.#for(Math.ceil(UPGRADE_DOWN_MS / 1_000));
      await this.#until(() => some.every((node) => this.#isReady(node)));
    }
    this.#phase.notes.push(`each was away for ${UPGRADE_DOWN_MS / 1_000} s and its lists`);
    await this.#until(() => world.waiting === 0);
  }

  #isReady({ machine, readyAtMs, isDown }: ScaleNode): boolean {
    return isDown || (machine === undefined ? readyAtMs <= this.#time.nowMs : machine.isServing);
  }

  /** Pods end, and others of the same workloads start in their place. */
  #churn(rate: number, seconds: number): void {
    const world = this.#world;
    const { random } = this.#fate;
    const live = [...world.pods];
    for (let index = 0; index < rate * seconds; index++) {
      const [pod] = live.splice(random.below(live.length), 1);
      this.#later(
        () => {
          if (pod === undefined || pod.isEnding || pod.address === undefined || pod.node.isDown) return;
          world.endPod(pod);
          world.createPod(pod.workload);
        },
        (index * 1_000) / rate,
      );
    }
  }

  #later(work: () => void, afterMs: number): void {
    this.#time.schedule(afterMs, "plan", this.#world.plane, work);
  }

  get #phase(): Phase {
    return this.#phases.at(-1) as Phase;
  }

  get #nowS(): number {
    return Math.round(this.#time.nowMs / 1_000);
  }

  get #elapsedS(): number {
    return this.#nowS - this.#phase.fromS;
  }

  #begin(name: string): void {
    if (this.#phases.length > 0) this.#end();
    this.#say(`${this.#nowS} s: ${name}`);
    this.#world.addMs = [];
    Object.assign(this.#world.model, { worstWaitMs: 0, worstLagMs: 0 });
    const from = this.#totals();
    const empty = { seconds: 0, addMs: [], worstWaitMs: 0, worstLagMs: 0, notes: [] };
    this.#phases.push({ name, fromS: this.#nowS, from, to: from, ...empty });
  }

  #totals(): Totals {
    const { requests, deliveries, processors } = this.#world.model;
    return { requests, deliveries, serverMs: processors.usedMs, controllerMs: this.#controllerMs };
  }

  #end(): void {
    const phase = this.#phase;
    phase.seconds = this.#elapsedS;
    phase.addMs = this.#world.addMs;
    phase.to = this.#totals();
    const { model } = this.#world;
    phase.worstWaitMs = model.worstWaitMs;
    phase.worstLagMs = model.worstLagMs;
  }

  async #for(seconds: number): Promise<void> {
    for (let second = 0; second < seconds; second++) {
      let isDue = false;
      this.#time.schedule(1_000, "a second", this.#fate, () => {
        isDue = true;
      });
      while (!isDue && (await this.#time.step())) {
        const [error] = this.#time.uncaught.splice(0);
        if (error !== undefined) throw error;
      }
    }
  }

  async #until(isTrue: () => boolean): Promise<void> {
    while (!isTrue()) {
      const { controller, waiting } = this.#world;
      if (this.#elapsedS > PATIENCE_S)
        throw new Error(`"${this.#phase.name}" does not end: ${waiting} pods wait; ${controller?.status.problems}`);
      await this.#for(1);
    }
  }
}

/** The table of the phases, the guards of the design, and the refusals. */
export function describeScale({ phases, recoveryS, failures }: ScaleReport): string {
  const perSecond = (key: keyof Totals, { from, to, seconds }: Phase): number => (to[key] - from[key]) / seconds;
  const table = tableOf<Phase>(
    "",
    [
      ["Phase", ({ name, notes }) => [name, ...notes].join("; ")],
      ["s", ({ seconds }) => String(seconds)],
      ["ADDs", ({ addMs }) => String(addMs.length)],
      ...percentiles<Phase>("ms", ({ addMs }) => addMs, [0.5, 0.99]),
      ["requests/s", (phase) => perSecond("requests", phase)],
      ["events/s", (phase) => perSecond("deliveries", phase)],
      ["processors", (phase) => perSecond("serverMs", phase) / 1_000],
      ["requests wait, s", ({ worstWaitMs }) => worstWaitMs / 1_000],
      ["events are late, s", ({ worstLagMs }) => worstLagMs / 1_000],
      ["controller, processors", (phase) => perSecond("controllerMs", phase) / 1_000],
    ],
    phases,
  );
  const loaded = phases.find(({ name }) => name.includes(LOAD));
  const lateS = Math.max(...phases.map(({ worstLagMs }) => worstLagMs)) / 1_000;
  const guards = [
    ["ADD p99 while pods start, ms", percentile(loaded?.addMs ?? [], 0.99), 10],
    ["events are late, s", lateS, 1],
    ["recovery from a zone outage, s", recoveryS, 60],
  ] as const;
  const judged = guards.map(
    ([what, value, limit]) => `* ${what}: ${formatFigure(value)}, guard ${limit}: ${value <= limit ? "met" : "MISSED"}`,
  );
  const refused = Object.entries(failures).map(([reason, count]) => `* ${count} ADDs refused and repeated: ${reason}`);
  return [formatTable(table), "", ...judged, ...refused].join("\n");
}
