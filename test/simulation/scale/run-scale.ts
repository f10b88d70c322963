/** One scale run: start, roll-out, load, a zone outage, an etcd restore, a rolling upgrade; what each took and cost. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { percentile } from "../../lab/statistics.ts";
import { networkDirectory } from "../network-directory.ts";
import { installTime, type Process, SimulatedTime } from "../simulated-time.ts";
import type { Calibration } from "./calibration.ts";
import { type ScaleNode, type ScaleShape, ScaleWorld } from "./scale-world.ts";

export interface ScaleOptions extends ScaleShape {
  readonly seed: number;
  /** Pods that start each second. */
  readonly rate: number;
  /** Duration of the load after all pods have started: seconds. */
  readonly loadS: number;
}

/** One second of simulated time. */
export interface Sample {
  readonly atS: number;
  readonly phase: string;
  readonly pods: number;
  readonly waiting: number;
  /** Since the last sample. */
  readonly requests: Readonly<Record<string, number>>;
  readonly deliveries: number;
  readonly deliveredBytes: number;
  readonly adds: number;
  readonly addP50Ms: number;
  readonly addP99Ms: number;
  /** Processors in use. */
  readonly serverUse: number;
  readonly serverWaitMs: number;
  readonly watchLagMs: number;
  /** Real processor time of the controller's code: milliseconds. */
  readonly controllerCpuMs: number;
}

export interface Phase {
  readonly name: string;
  readonly seconds: number;
  readonly addP50Ms: number;
  readonly addP99Ms: number;
  readonly adds: number;
  readonly requestsPerSecond: number;
  readonly deliveriesPerSecond: number;
  readonly serverUse: number;
  readonly worstWaitMs: number;
  readonly worstLagMs: number;
  /** Processor time of the controller for a second. */
  readonly controllerUse: number;
  readonly notes: readonly string[];
}

export interface ScaleReport {
  readonly options: ScaleOptions;
  readonly samples: readonly Sample[];
  readonly phases: readonly Phase[];
  readonly steps: number;
  /** Processor time of all threads. */
  readonly cpuSeconds: number;
  /** The most memory that the process had. */
  readonly mostMib: number;
  /** Memory of one full agent in MiB, and its requests for one pod by kind. */
  readonly agentMib: number;
  readonly agentRequests: Readonly<Record<string, number>>;
  /** After the restore of etcd: live pods without a record, and records of pods that are gone. */
  readonly restored: { readonly missing: number; readonly stale: number };
  readonly failures: Readonly<Record<string, number>>;
}

const EVICTION_S = 60;
const OUTAGE_S = 120;
const RESTORED_S = 60;
const UPGRADE_SHARE = 0.05;
const UPGRADE_DOWN_MS = 3_000;
const PATIENCE_S = 240;

export function readCalibration(): Calibration {
  return JSON.parse(readFileSync(join(import.meta.dirname, "calibration.json"), "utf8"));
}

export async function runScale(options: ScaleOptions, say: (line: string) => void = () => {}): Promise<ScaleReport> {
  const run = new ScaleRun(options, say);
  using _ = installTime();
  return await run.run();
}

class ScaleRun {
  readonly #options: ScaleOptions;
  readonly #say: (line: string) => void;
  readonly #time: SimulatedTime;
  readonly #world: ScaleWorld;
  readonly #fate: Process;
  readonly #samples: Sample[] = [];
  readonly #phases: Phase[] = [];
  readonly #cpuMs = new Map<Process, number>();
  #phase = "start";
  #phaseFrom = 0;
  #notes: string[] = [];
  #restored = { missing: -1, stale: -1 };
  /** All ADDs of the phase. */
  #addMs: number[] = [];
  #running: Process | undefined;
  #runningSince = process.threadCpuUsage();
  #last = { requests: new Map<string, number>(), deliveries: 0, bytes: 0, usedMs: 0, controllerMs: 0 };
  #sampledMs = 0;
  readonly #cpuBefore = process.cpuUsage();

  constructor(options: ScaleOptions, say: (line: string) => void) {
    this.#options = options;
    this.#say = say;
    this.#time = new SimulatedTime(options.seed);
    this.#fate = this.#time.process("fate");
    const cniConfDirectory = networkDirectory();
    this.#world = new ScaleWorld({
      time: this.#time,
      shape: options,
      calibration: readCalibration(),
      cniConfDirectory,
    });
    this.#time.onStep = (next) => this.#account(next);
  }

  /** The main thread's processor time since the last event belongs to the process that had it. */
  #account(next: Process): void {
    const watched = this.#world.controllerProcess;
    if ((next === watched) === (this.#running === watched)) return;
    const now = process.threadCpuUsage();
    if (this.#running !== undefined) {
      const spent = (now.user + now.system - this.#runningSince.user - this.#runningSince.system) / 1_000;
      this.#cpuMs.set(this.#running, (this.#cpuMs.get(this.#running) ?? 0) + spent);
    }
    this.#running = next;
    this.#runningSince = now;
  }

  async run(): Promise<ScaleReport> {
    const { pods, pools, rate, loadS } = this.#options;
    const world = this.#world;
    const beforeMib = rss();
    world.inside(() => world.furnish());
    await this.#for(5);
    this.#begin("agents start");
    for (const [index, node] of world.nodes.entries())
      this.#later(() => world.startAgent(node), (index * 60_000) / world.nodes.length);
    await this.#until(() => world.nodes.every((node) => this.#isReady(node)));
    await this.#for(5);
    const agentMib =
      (rss() - beforeMib) / Math.max(1, world.nodes.filter(({ machine }) => machine !== undefined).length);

    this.#begin(`roll-out of ${pools} workloads`);
    for (let index = 0; index < pools; index++) this.#later(() => world.putWorkload(index), (index * 1_000) / 100);
    await this.#until(() => world.completePools === pools);
    const lateS = Math.max(0, ...this.#samples.map(({ watchLagMs }) => watchLagMs)) / 1_000;
    this.#note(
      `${pools} pools complete after ${this.#elapsedS()} s, workloads created at 100 a second; events came ${lateS.toFixed(1)} s late at most`,
    );

    this.#begin(`${rate} pods a second`);
    const requestsBefore = new Map(world.network.ofAgents);
    const fullBefore = world.fullAdds;
    for (let index = 0; index < pods; index++)
      this.#later(() => world.createPod(index % pools), (index * 1_000) / rate);
    await this.#for(Math.ceil(pods / rate));
    await this.#until(() => world.waiting === 0 || this.#isStuck());
    const fullAdds = world.fullAdds - fullBefore;
    const agentRequests = Object.fromEntries(
      [...world.network.ofAgents].map(([kind, count]) => [
        kind,
        (count - (requestsBefore.get(kind) ?? 0)) / Math.max(1, fullAdds),
      ]),
    );
    this.#note(`${world.adds} pods had addresses after ${this.#elapsedS()} s; ${world.waiting} waited`);

    this.#begin("pods come and go");
    this.#churn(rate / 2, loadS);
    await this.#for(loadS + 8);
    await this.#until(() => world.waiting === 0 || this.#isStuck());

    await this.#zoneOutage();
    await this.#restoreEtcd();
    await this.#upgrade();
    this.#end();
    return {
      options: this.#options,
      samples: this.#samples,
      phases: this.#phases,
      steps: this.#time.steps,
      cpuSeconds: this.#cpuSeconds,
      mostMib: process.resourceUsage().maxRSS / 2 ** 10,
      agentMib,
      agentRequests,
      restored: this.#restored,
      failures: Object.fromEntries(world.failures),
    };
  }

  async #zoneOutage(): Promise<void> {
    const world = this.#world;
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
        (index * 1_000) / this.#options.rate,
      );
    const evictedS = this.#nowS();
    await this.#for(Math.ceil(lost.length / this.#options.rate));
    await this.#until(() => world.waiting === 0 || this.#isStuck());
    this.#note(
      `${lost.length} pods, evicted after ${EVICTION_S} s, had addresses elsewhere ${this.#nowS() - evictedS} s later, but for ${world.waiting}`,
    );
    await this.#for(Math.max(1, OUTAGE_S - this.#elapsedS()));
    this.#begin("the zone comes back");
    for (const [index, node] of zone.entries())
      this.#later(() => world.restoreNodes([node]), (index * 20_000) / zone.length);
    await this.#for(21);
    await this.#until(() => (zone.every((node) => this.#isReady(node)) && world.stale === 0) || this.#isStuck(), 5);
    this.#note(
      `${zone.length} nodes booted within 20 s; all agents served and no stale record was left ${this.#elapsedS()} s after the first`,
    );
  }

  async #restoreEtcd(): Promise<void> {
    const world = this.#world;
    this.#begin("etcd is restored");
    const copy = world.server.snapshot();
    this.#churn(this.#options.rate / 4, RESTORED_S);
    await this.#for(RESTORED_S + 2);
    const restoredS = this.#nowS();
    world.network.isDown = true;
    world.network.breakWatches();
    await this.#for(5);
    world.inside(() => {
      world.server.restore(copy, ["/apis/ipam.vendor.io/v1/ipallocations"]);
    });
    world.network.isDown = false;
    const lost = world.missing;
    // Each agent reads its own allocations again, and watches.
    for (const { machine } of world.nodes)
      if (machine === undefined)
        this.#later(() => {
          for (let request = 0; request < 16; request++)
            world.model.request(
              { method: "GET", path: "/apis/ipam.vendor.io/v1/ipallocations", query: { limit: 500 } },
              this.#time.nowMs,
            );
        }, this.#fate.random.below(5_000));
    // A full agent's record of a pod that is gone is in the way of a light one until it is collected.
    let isRepairing = true;
    const repair = (): void => {
      world.repairLight();
      if (isRepairing) this.#later(repair, 5_000);
    };
    this.#later(repair, 2_500);
    await this.#for(5);
    await this.#until(() => world.missing === 0 || this.#isStuck(), 1);
    const elapsed = (): string =>
      `${this.#nowS() - restoredS} s after the server went down, of which it was down for 5 s`;
    this.#note(`${lost} live pods' records were lost; ${world.missing} were missing ${elapsed()}`);
    await this.#until(() => world.stale === 0 || this.#isStuck(), 5);
    isRepairing = false;
    this.#restored = { missing: world.missing, stale: world.stale };
    this.#note(`${world.stale} stale records ${elapsed()}`);
  }

  async #upgrade(): Promise<void> {
    const world = this.#world;
    this.#begin("all agents are upgraded");
    const { nodes } = world;
    const batch = Math.max(1, Math.ceil(nodes.length * UPGRADE_SHARE));
    const startS = this.#nowS();
    this.#churn(this.#options.rate / 4, 60);
    for (let first = 0; first < nodes.length; first += batch) {
      const some = nodes.slice(first, first + batch);
      world.inside(() => {
        for (const node of some) world.stopAgent(node);
      });
      for (const node of some) this.#later(() => world.startAgent(node), UPGRADE_DOWN_MS);
      await this.#for(Math.ceil(UPGRADE_DOWN_MS / 1_000));
      await this.#until(() => some.every((node) => this.#isReady(node)) || this.#isStuck());
    }
    this.#note(
      `${nodes.length} agents, ${batch} at a time, each away for ${UPGRADE_DOWN_MS / 1_000} s and its lists: ${this.#nowS() - startS} s`,
    );
    await this.#until(() => world.waiting === 0 || this.#isStuck());
  }

  #isReady({ machine, readyAtMs, isDown }: ScaleNode): boolean {
    return isDown || (machine === undefined ? readyAtMs <= this.#time.nowMs : machine.isServing);
  }

  #isStuck(): boolean {
    if (this.#elapsedS() < PATIENCE_S) return false;
    this.#note(`gave up after ${PATIENCE_S} s`);
    return true;
  }

  /** Pods end, and others of the same workloads start in their place. */
  #churn(rate: number, seconds: number): void {
    const world = this.#world;
    const { random } = this.#fate;
    const live = [...world.pods];
    for (let index = 0; index < Math.min(rate * seconds, live.length); index++) {
      const at = random.below(live.length);
      const pod = live[at];
      live[at] = live.at(-1) as (typeof live)[number];
      live.pop();
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

  get #cpuSeconds(): number {
    const { user, system } = process.cpuUsage(this.#cpuBefore);
    return (user + system) / 1_000_000;
  }

  #nowS(): number {
    return Math.round(this.#time.nowMs / 1_000);
  }

  #elapsedS(): number {
    return this.#nowS() - this.#phaseFrom;
  }

  #note(text: string): void {
    this.#notes.push(text);
    this.#say(`    ${text}`);
  }

  #begin(name: string): void {
    this.#end();
    this.#phase = name;
    this.#phaseFrom = this.#nowS();
    this.#say(
      `${this.#nowS()} s (${this.#cpuSeconds.toFixed(0)} s of processor time, ${rss().toFixed(0)} MiB): ${name}`,
    );
  }

  #end(): void {
    const own = this.#samples.filter(({ phase }) => phase === this.#phase);
    const seconds = this.#elapsedS();
    if (own.length === 0) return;
    const sum = (of: (sample: Sample) => number): number => own.reduce((total, sample) => total + of(sample), 0);
    this.#phases.push({
      name: this.#phase,
      seconds,
      adds: this.#addMs.length,
      addP50Ms: percentile(this.#addMs, 0.5),
      addP99Ms: percentile(this.#addMs, 0.99),
      requestsPerSecond: sum(({ requests }) => Object.values(requests).reduce((all, each) => all + each, 0)) / seconds,
      deliveriesPerSecond: sum(({ deliveries }) => deliveries) / seconds,
      serverUse: sum(({ serverUse }) => serverUse) / own.length,
      worstWaitMs: Math.max(...own.map(({ serverWaitMs }) => serverWaitMs)),
      worstLagMs: Math.max(...own.map(({ watchLagMs }) => watchLagMs)),
      controllerUse: sum(({ controllerCpuMs }) => controllerCpuMs) / 1_000 / seconds,
      notes: this.#notes,
    });
    this.#notes = [];
    this.#addMs = [];
  }

  #sample(): void {
    const world = this.#world;
    const { model } = world;
    const elapsedMs = this.#time.nowMs - this.#sampledMs;
    this.#sampledMs = this.#time.nowMs;
    const requests = Object.fromEntries(
      [...model.requests].flatMap(([kind, count]) => {
        const since = count - (this.#last.requests.get(kind) ?? 0);
        return since === 0 ? [] : [[kind, since] as const];
      }),
    );
    const deliveries = [...model.deliveries.values()].reduce((sum, count) => sum + count, 0);
    const controllerMs = this.#cpuMs.get(world.controllerProcess) ?? 0;
    const { usedMs } = model.processors;
    this.#samples.push({
      atS: this.#time.nowMs / 1_000,
      phase: this.#phase,
      pods: world.pods.size,
      waiting: world.waiting,
      requests,
      deliveries: deliveries - this.#last.deliveries,
      deliveredBytes: model.deliveredBytes - this.#last.bytes,
      adds: world.addMs.length,
      addP50Ms: percentile(world.addMs, 0.5),
      addP99Ms: percentile(world.addMs, 0.99),
      serverUse: (usedMs - this.#last.usedMs) / elapsedMs,
      serverWaitMs: model.processors.waitMs(this.#time.nowMs),
      watchLagMs: model.lagMs(this.#time.nowMs),
      controllerCpuMs: controllerMs - this.#last.controllerMs,
    });
    this.#last = {
      requests: new Map(model.requests),
      deliveries,
      bytes: model.deliveredBytes,
      usedMs,
      controllerMs,
    };
    for (const tookMs of world.addMs) this.#addMs.push(tookMs);
    world.addMs = [];
  }

  async #for(seconds: number): Promise<void> {
    for (let second = 0; second < seconds; second++) {
      const untilMs = this.#time.nowMs + 1_000;
      let isDue = false;
      this.#time.schedule(1_000, "sample", this.#fate, () => {
        isDue = true;
      });
      while (!isDue && this.#time.nowMs <= untilMs) {
        if (!(await this.#time.step())) break;
        const [error] = this.#time.uncaught.splice(0);
        if (error !== undefined) throw error;
      }
      this.#sample();
    }
  }

  async #until(isTrue: () => boolean, everyS = 1): Promise<void> {
    while (!isTrue()) {
      if (this.#elapsedS() > 2 * PATIENCE_S)
        throw new Error(
          `"${this.#phase}" does not end: ${this.#world.completePools} pools; ${this.#world.controller?.status.problems.slice(0, 3).join("; ")}`,
        );
      await this.#for(everyS);
    }
  }
}

function rss(): number {
  return process.memoryUsage.rss() / 2 ** 20;
}
