/** One run: a cluster under a plan, checked after every step, and given time to recover at the end. */

import type { StartController } from "../../host/controller/types.ts";
import { Cluster } from "./cluster.ts";
import { NO_FAULTS } from "./network.ts";
import { networkDirectory } from "./network-directory.ts";
import { openLastRelease, type Product, THIS_PRODUCT } from "./product.ts";
import { type ProfileName, planRun } from "./profiles.ts";
import { installTime, SimulatedTime } from "./simulated-time.ts";
import { Timeline } from "./timeline.ts";

/** Longest time until a cluster without faults is as it should be: milliseconds. */
const RECOVERY_MS = 360_000;
const CHECK_MS = 5_000;

/** The packages may be away. */
const SEGMENT_RUN: string = "../../packages/segments/test/simulation/segment-run.ts";
const BALANCERS: string = "../../packages/load-balancers/load-balancers-controller.ts";

export const VERSIONS = ["this", "last", "mixed"] as const;
export type Version = (typeof VERSIONS)[number];

export interface RunOptions {
  readonly seed: number;
  readonly profile: ProfileName;
  readonly nodes: number;
  readonly pods: number;
  readonly steps: number;
  /** Multiplies the shares of all faults. */
  readonly faults: number;
  /** Numbers of the actions that do not happen. */
  readonly without?: ReadonlySet<number>;
  /** Versions of agents and controllers; absent: `mixed` in the profile `releases`, `this` in others. */
  readonly version?: Version | undefined;
}

export interface RunReport {
  readonly options: RunOptions;
  /** Empty if every invariant held. */
  readonly problems: readonly string[];
  /** In which step the first was found. */
  readonly foundAt: number;
  readonly steps: number;
  /** Simulated time: milliseconds. */
  readonly elapsedMs: number;
  /** Digest of the whole history. */
  readonly digest: string;
  /** Numbers and names of the actions that happened. */
  readonly actions: ReadonlyMap<number, string>;
  readonly adds: number;
  readonly restarts: number;
  /** Number of migrations of virtual machines, which now run on another node. */
  readonly migrations: number;
  /** Most writes of one allocation for one ADD. */
  readonly mostWrites: number;
  /** Number of times that a controller has become the leader. */
  readonly leaders: number;
  /**
   * Longest time until a started agent had compared its journal with the API server, while it could act: milliseconds.
   */
  readonly mostComparingMs: number;
  /** Time from the last fault until everything was as it should be: milliseconds. */
  readonly recoveryMs: number;
  readonly timeline: Timeline;
}

export const DEFAULTS: Omit<RunOptions, "seed"> = { profile: "faults", nodes: 3, pods: 12, steps: 20_000, faults: 1 };

export async function run(options: RunOptions): Promise<RunReport> {
  const { profile } = options;
  if (profile === "segments") {
    const { runSegment }: { readonly runSegment: typeof run } = await import(SEGMENT_RUN);
    return runSegment(options);
  }
  const cniConfDirectory = networkDirectory();
  const plan = planRun({ ...options, profile });
  const products = await openProducts(options.version ?? (options.profile === "releases" ? "mixed" : "this"));
  using _ = installTime();
  const time = new SimulatedTime(options.seed);
  const timeline = new Timeline(() => time.nowMs);
  time.onStep = (process, label) => timeline.mark(`${time.nowMs} ${process.name}: ${label}`);
  const controllers = plan.shape.owned === undefined ? {} : { loadBalancers: await openBalancers() };
  const cluster = new Cluster({ time, timeline, shape: plan.shape, cniConfDirectory, products, controllers });
  const actions = new Map<number, string>();
  const fate = time.process("fate");
  const runOn = async (while_: () => boolean): Promise<boolean> => {
    while (while_()) {
      if (!(await time.step())) break;
      for (const error of time.uncaught.splice(0)) cluster.ledger.problems.push(`A bug: ${String(error)}`);
      if (cluster.ledger.problems.length > 0) return false;
    }
    return true;
  };

  cluster.start();
  cluster.network.faults = plan.network;
  cluster.kubeletFaults = plan.kubelet;
  cluster.nics.slowShare = plan.slowPlugins;
  let isOver = false;
  const act = async (): Promise<void> => {
    for (let index = 0; !isOver; index++) {
      const { action, random, pauseMs } = plan.actionAt(index);
      await time.sleep(pauseMs, "fate");
      if (isOver || options.without?.has(index) === true) continue;
      actions.set(index, action.name);
      timeline.note(`# ${index} ${action.name}`);
      action.act(cluster, random, time);
    }
  };
  time.inside(fate, () => void act());
  let isFine = await runOn(() => time.steps < options.steps);

  const lastFaultMs = time.nowMs;
  if (isFine) {
    isOver = true;
    time.inside(fate, () => calm(cluster, timeline, time));
    // Messages under way for so long may still arrive.
    const { lateMs = 0 } = plan.shape;
    const endMs = time.nowMs + lateMs + RECOVERY_MS;
    let faults: readonly string[] = ["nothing was checked"];
    if (lateMs > 0) isFine = await runOn(() => time.nowMs < lastFaultMs + lateMs);
    while (isFine && faults.length > 0 && time.nowMs < endMs) {
      const untilMs = time.nowMs + CHECK_MS;
      isFine = await runOn(() => time.nowMs < untilMs);
      faults = cluster.isComplete
        ? [
            ...cluster.ledger.unfinished([...cluster.expected, ...cluster.staticPods], cluster.tenantPods),
            ...(cluster.subnetLedger?.unfinished() ?? []),
            ...(cluster.virtualMachines?.unfinished((uid, ifName) => cluster.ledger.addressesOf(uid, ifName)) ?? []),
          ]
        : [
            ...(cluster.virtualMachines?.waiting ?? []),
            `pods: ${cluster.pods.map(({ name, node, isDeleting }) => `${name} on ${node}${isDeleting ? " (deleting)" : ""}`).join(", ")}`,
          ];
    }
    if (isFine)
      cluster.ledger.problems.push(...faults.map((fault) => `${RECOVERY_MS / 1000} s after the last fault: ${fault}`));
  }
  cluster.close();
  const { problems, adds, restarts, mostWrites } = cluster.ledger;
  for (const problem of problems) timeline.note(`!! ${problem}`);
  return {
    options,
    problems: [...new Set(problems)],
    foundAt: time.steps,
    steps: time.steps,
    elapsedMs: time.nowMs,
    digest: timeline.digest,
    actions,
    adds,
    restarts,
    migrations: cluster.virtualMachines?.migrations ?? 0,
    mostWrites,
    leaders: cluster.leaders,
    mostComparingMs: cluster.mostComparingMs,
    recoveryMs: time.nowMs - lastFaultMs,
    timeline,
  };
}

const openBalancers = async (): Promise<StartController> => (await import(BALANCERS)).startLoadBalancers();

async function openProducts(version: Version): Promise<readonly Product[]> {
  if (version === "this") return [THIS_PRODUCT];
  const last = await openLastRelease();
  return version === "last" ? [last] : [THIS_PRODUCT, last];
}

/** No fault any more: everything that was cut off, off or still goes on. */
function calm(cluster: Cluster, timeline: Timeline, time: SimulatedTime): void {
  timeline.note("# all faults end");
  cluster.network.faults = NO_FAULTS;
  cluster.network.webhookMs = undefined;
  cluster.ledger.removeForeign();
  cluster.kubeletFaults = { hangUp: 0, lateDel: 0, twice: 0 };
  cluster.nics.slowShare = 0;
  cluster.restorePools();
  cluster.restReservations();
  cluster.satisfyRivals();
  cluster.virtualMachines?.rest();
  cluster.replacements.rest();
  cluster.tenant?.rest((uid) => cluster.nodes.some(({ kubelet }) => kubelet?.runs(uid) === true));
  for (const name of [...cluster.network.cutOff]) cluster.heal(name);
  for (const node of cluster.nodes) {
    if (node.machine.isOff) node.machine.powerOn();
    cluster.goForward(node);
    node.machine.space.isFull = false;
    node.machine.space.isBroken = false;
    if (node.kubelet !== undefined) time.resume(node.kubelet.process);
    cluster.setReady(node.machine.name, true);
    cluster.startNode(node);
  }
  void cluster.finishRollOut(50).catch((error: unknown) => time.uncaught.push(error));
}

/** Fewer steps and actions with which the same run still violates an invariant. */
export async function shrink(report: RunReport, mostRuns = 40): Promise<RunReport> {
  let best = report;
  let runs = 0;
  const kindOf = ({ problems }: RunReport): string => (problems[0] ?? "").replace(/[0-9a-f.:]+/g, "#");
  const attempt = async (without: ReadonlySet<number>): Promise<boolean> => {
    runs++;
    const found = await run({ ...best.options, without });
    if (found.problems.length === 0 || kindOf(found) !== kindOf(report)) return false;
    best = found;
    return true;
  };
  let size = Math.ceil(best.actions.size / 2);
  while (size >= 1 && runs < mostRuns) {
    const left = [...best.actions.keys()].toSorted((a, b) => a - b);
    let isSmaller = false;
    for (let start = 0; start < left.length && runs < mostRuns; start += size) {
      const chunk = left.slice(start, start + size).filter((index) => best.actions.has(index));
      if (chunk.length === 0) continue;
      if (await attempt(new Set([...(best.options.without ?? []), ...chunk]))) isSmaller = true;
    }
    if (size === 1 && !isSmaller) break;
    if (!isSmaller) size = Math.floor(size / 2);
    else size = Math.min(size, Math.max(1, Math.ceil(best.actions.size / 2)));
  }
  return best;
}

/** For people: the violation, and the events that led to it. */
export function describeReport(report: RunReport, lines = 80): string {
  const { options, problems, steps, elapsedMs, digest, actions, timeline } = report;
  const { seed, profile, nodes, pods, faults } = options;
  const command = `npm run simulate -- --seed ${seed} --profile ${profile} --nodes ${nodes} --pods ${pods} --steps ${options.steps} --faults ${faults}`;
  const version = options.version === undefined ? "" : ` --version ${options.version}`;
  const without =
    options.without === undefined || options.without.size === 0 ? "" : ` --without ${[...options.without].join(",")}`;
  const head = `${command}${version}${without}\n${steps} steps, ${(elapsedMs / 1000).toFixed(0)} s of simulated time, ${actions.size} actions, history ${digest}`;
  if (problems.length === 0) return head;
  const names = [
    ...new Set(
      problems.flatMap(
        (problem) =>
          problem.match(
            /\b(?:10\.[67]\.[0-9.]+|fd0[078][0-9:]*::[0-9a-f]+|(?:db|web|app|lazy|mix|own|roll|both|thing|bank|x|vm|box|pin|solo|one|svc)-[0-9a-z]+|fix-n[0-9]+)/g,
          ) ?? [],
      ),
    ),
  ];
  const about = names.length === 0 ? undefined : new RegExp(names.map((name) => nameForms(name)).join("|"));
  const pattern = about === undefined ? undefined : new RegExp(`# |${about.source}|agent|machine|power|boots|journal`);
  return [
    head,
    ...problems.slice(0, 8).map((problem) => `VIOLATED: ${problem}`),
    ...timeline.last(lines, pattern),
  ].join("\n");
}

/** Returns a pattern of the text; for an address, also of its object's name. */
function nameForms(text: string): string {
  const escaped = text.replaceAll(".", "\\.");
  if (!text.startsWith("fd00::")) return `${escaped}(?![0-9])`;
  return `${escaped}(?![0-9a-f])|${`fd00-0000-0000-0000-0000-0000-0000-${text.slice(6).padStart(4, "0")}`}`;
}
