/**
 * A cluster that is off now and then, whose hub and controller are away now and then, and that is restored from a copy
 * of itself: no agent gives an address of its blocks after it was declared gone, and none waits without need.
 */
import fc from "fast-check";
import { expect, it } from "vitest";
import { findDoubt, UNHEARD_MS } from "../../../../host/resources/pool-source.ts";
import { nextAsOf } from "../../controllers/plan-blocks.ts";

const SEED = Number(process.env.BERTH_SEED ?? Date.now() % 2 ** 31);
const RUNS = 3_000;
/** One step of time: a controller looks more often than this. */
const STEP_MS = 30_000;
/** For so long an administrator asks the addresses of a cluster. */
const ASKING_MS = 600_000;
/** So far the clock of an agent's machine is from that of the controller's. */
const SKEW_MS = 119_000;
const START_MS = Date.UTC(2026, 0, 1);

const STEPS = [
  ...["cluster off", "cluster off", "cluster on", "cluster on", "nodes off", "nodes on", "hub away", "hub back"],
  ...["controller away", "controller back", "agent restarts", "copy", "restore", "declare gone"],
] as const;
const skew = fc.integer({ min: -SKEW_MS, max: SKEW_MS });
type Step = (typeof STEPS)[number] | number;

class Model {
  nowMs = START_MS;
  readonly skewMs: number;
  isOn = true;
  areNodesOn = true;
  isHubAway = false;
  isControllerAway = false;
  /** The pool's status, as its API server has it. */
  asOf = new Date(START_MS).toISOString();
  copy: { readonly asOf: string; readonly ms: number } | undefined;
  /** The agent's copy of the status, and the time since which it has been in touch with its API server. */
  known = this.asOf;
  sinceMs = START_MS;
  heardMs = START_MS;
  /** When the administrator began to ask its addresses; declared gone, after ten minutes. */
  askedSinceMs: number | undefined;
  isGone = false;
  /** The controller knows that it is gone. */
  isTold = false;

  constructor(skewMs: number) {
    this.skewMs = skewMs;
  }

  do(step: Step): void {
    if (typeof step === "number") for (let count = 0; count < step; count++) this.tick();
    else if (step === "cluster off") this.isOn = false;
    else if (step === "cluster on") this.isOn = true;
    else if (step === "nodes off") this.areNodesOn = false;
    else if (step === "nodes on" && !this.areNodesOn) this.restart();
    else if (step === "hub away" || step === "hub back") this.isHubAway = step === "hub away";
    else if (step === "controller away" || step === "controller back")
      this.isControllerAway = step === "controller away";
    else if (step === "agent restarts" && this.areNodesOn) this.restart();
    else if (step === "copy") this.copy = { asOf: this.asOf, ms: this.nowMs };
    else if (step === "restore") this.restore();
    else if (step === "declare gone" && !this.isOn) this.askedSinceMs ??= this.nowMs;
    this.look();
  }

  /** The agent starts on a node that is on, and has heard of nothing yet. */
  restart(): void {
    this.areNodesOn = true;
    this.known = "";
    this.heardMs = Number.NEGATIVE_INFINITY;
  }

  /** Of a copy that is old enough for its blocks to have changed hands. */
  restore(): void {
    if (this.copy === undefined || this.nowMs - this.copy.ms < ASKING_MS) return;
    this.asOf = this.copy.asOf;
    this.restart();
  }

  tick(): void {
    this.nowMs += STEP_MS;
    if (this.askedSinceMs !== undefined && this.nowMs - this.askedSinceMs >= ASKING_MS) this.isGone = true;
    this.look();
  }

  look(): void {
    // The party that is asked must be off all the time.
    if (this.isOn) this.askedSinceMs = undefined;
    if (this.isOn && !this.isControllerAway) {
      if (!this.isHubAway && this.isGone) this.isTold = true;
      this.asOf = nextAsOf(this.asOf, new Date(this.nowMs), !this.isHubAway);
    }
    if (!this.isOn || !this.areNodesOn) return;
    if (this.nowMs - this.heardMs >= UNHEARD_MS) this.sinceMs = this.nowMs;
    this.heardMs = this.nowMs;
    this.known = this.asOf;
  }

  /** Whether the agent gives addresses: it must be on, and its API server there. */
  get gives(): boolean {
    if (!this.isOn || !this.areNodesOn) return false;
    const source = { range: "lan", epoch: "e1", asOf: this.known, blocks: [], excluded: [], problem: "" };
    return findDoubt(source, { epoch: "e1", sinceMs: this.sinceMs + this.skewMs }) === undefined;
  }
}

it("no address is given after the cluster was declared gone, unless its controller knows", () => {
  const steps = fc.array(fc.oneof(fc.constantFrom<Step>(...STEPS), fc.integer({ min: 1, max: 60 })), { maxLength: 10 });
  const off = fc.integer({ min: 15, max: 60 });
  fc.assert(
    fc.property(steps, off, steps, skew, (before, count, after, skewMs) => {
      const end: readonly Step[] = ["nodes on", "cluster off", "declare gone", count, "hub away", "cluster on"];
      const list = [...before, ...end, ...after];
      const model = new Model(skewMs);
      for (const step of list) {
        model.do(step);
        if (model.isGone && !model.isTold) expect(model.gives, `${list} at ${step}`).toBe(false);
      }
    }),
    { seed: SEED, numRuns: RUNS },
  );
});

it("an agent that restarts gives addresses without the hub where cluster and controller were there all the time", () => {
  const steps = fc.array(
    fc.oneof(
      fc.constantFrom<Step>("hub away", "hub back", "agent restarts", "nodes off", "nodes on"),
      fc.integer({ min: 1, max: 200 }),
    ),
    { maxLength: 40 },
  );
  fc.assert(
    fc.property(steps, skew, (list, skewMs) => {
      const model = new Model(skewMs);
      for (const step of list) {
        model.do(step);
        if (model.areNodesOn) expect(model.gives, `${list} at ${step}`).toBe(true);
      }
    }),
    { seed: SEED, numRuns: RUNS },
  );
});

it("a short absence of the controller or the cluster is none", () => {
  const pauses = fc.array(
    fc.tuple(fc.constantFrom<Step>("controller away", "cluster off"), fc.integer({ min: 1, max: 5 })),
    { maxLength: 20 },
  );
  fc.assert(
    fc.property(pauses, skew, (list, skewMs) => {
      const model = new Model(skewMs);
      model.do("hub away");
      for (const [what, count] of list) {
        for (const step of [what, count, "cluster on", "controller back", 1, "agent restarts"] as const) model.do(step);
        expect(model.gives).toBe(true);
      }
    }),
    { seed: SEED, numRuns: RUNS },
  );
});
