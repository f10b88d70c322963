/**
 * One queue of events in place of time: timers, messages and disks of all simulated processes. The code in a process
 * runs as it is: while a process of the simulation has the floor, the globals of time and chance (setTimeout,
 * performance.now, Date, Math.random, randomUUID, AbortSignal.timeout, node:timers/promises) are the simulation's.
 * Whatever runs outside of a simulated process, such as the test runner, has the real ones.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import crypto, { type UUID } from "node:crypto";
import { createRequire, syncBuiltinESMExports } from "node:module";
import type * as timersPromises from "node:timers/promises";
import { Seeded } from "../world/seeded.ts";

/** When a simulation begins, on the wall clock. */
const EPOCH_MS = Date.UTC(2026, 0, 1);

/** A program that may end, stop for a while, and start again as another process. */
export class Process {
  readonly name: string;
  /** When it ended; infinite while it lives. */
  endedMs = Number.POSITIVE_INFINITY;
  /**
   * The machine or the process stands still until then: nothing of it runs. {@link SimulatedTime.pause} and resume
   * change it.
   */
  pausedUntilMs = 0;
  /** Events that were due meanwhile, in order. */
  readonly parked: Event[] = [];
  /** Amount by which its wall clock is ahead: milliseconds. */
  wallOffsetMs = 0;
  /** Errors that it does not catch are no matter of this release. */
  isOfLastRelease = false;
  readonly random: Seeded;

  constructor(name: string, seed: number) {
    this.name = name;
    this.random = new Seeded(seed);
  }

  get isDead(): boolean {
    return this.endedMs < Number.POSITIVE_INFINITY;
  }
}

interface Event {
  dueMs: number;
  readonly order: number;
  readonly process: Process;
  readonly label: string;
  readonly run: () => void;
  isCancelled: boolean;
}

const floor = new AsyncLocalStorage<{ readonly time: SimulatedTime; readonly process: Process }>();

export class SimulatedTime {
  nowMs = 0;
  steps = 0;
  readonly #heap: Event[] = [];
  #order = 0;
  readonly #seed: number;
  readonly #scheduler = new Process("scheduler", 0);
  /** Called with each event before it runs. */
  onStep: (process: Process, label: string) => void = () => {};
  /** An error that no code of the process has caught. */
  readonly uncaught: unknown[] = [];
  #uuids = 0;

  /** A new UUID for the run. */
  newUuid(): UUID {
    return `00000000-0000-4000-8000-${(++this.#uuids).toString(16).padStart(12, "0")}`;
  }

  constructor(seed: number) {
    this.#seed = seed;
  }

  /** The same name and seed give the same chance. */
  process(name: string): Process {
    let hash = this.#seed | 0;
    for (const character of name) hash = (Math.imul(hash, 31) + (character.codePointAt(0) ?? 0)) | 0;
    return new Process(name, hash);
  }

  /** Runs `work` as the process now. */
  inside<T>(process: Process, work: () => T): T {
    return floor.run({ time: this, process }, work);
  }

  schedule(delayMs: number, label: string, process: Process, run: () => void): Event {
    const event: Event = {
      dueMs: this.nowMs + Math.max(0, delayMs),
      order: ++this.#order,
      process,
      label,
      run,
      isCancelled: false,
    };
    this.#push(event);
    return event;
  }

  /** The process that has the floor. */
  get current(): Process {
    const { process } = floor.getStore() ?? {};
    if (process === undefined) throw new Error("No simulated process has the floor");
    return process;
  }

  /** Resolves after that time, in the same process. */
  sleep(delayMs: number, label = "sleep"): Promise<void> {
    const process = this.current;
    return new Promise((resolve) => this.schedule(delayMs, label, process, resolve));
  }

  /** Nothing of the process runs for so long, or until the end of an earlier pause that lasts longer. */
  pause(process: Process, milliseconds: number): void {
    process.pausedUntilMs = Math.max(process.pausedUntilMs, this.nowMs + milliseconds);
  }

  /** As by `kill -9`: nothing of the process runs any more. */
  end(process: Process): void {
    process.endedMs = Math.min(process.endedMs, this.nowMs);
  }

  /** Runs the events that were due during the pause, before anything that comes later. */
  resume(process: Process): void {
    process.pausedUntilMs = Math.min(process.pausedUntilMs, this.nowMs);
    for (const event of process.parked.splice(0)) {
      event.dueMs = this.nowMs;
      this.#push(event);
    }
  }

  #wakeLater(process: Process): void {
    this.schedule(process.pausedUntilMs - this.nowMs, `${process.name} goes on`, this.#scheduler, () => {
      if (process.parked.length === 0) return;
      if (process.pausedUntilMs > this.nowMs) this.#wakeLater(process);
      else this.resume(process);
    });
  }

  /** When the next event is due; undefined without any. */
  get nextMs(): number | undefined {
    return this.#heap[0]?.dueMs;
  }

  /** The next event and all that follows from it at once. Returns whether there was one. */
  async step(): Promise<boolean> {
    for (;;) {
      const event = this.#pop();
      if (event === undefined) return false;
      if (event.isCancelled || event.process.isDead) continue;
      if (event.process.pausedUntilMs > event.dueMs) {
        event.process.parked.push(event);
        if (event.process.parked.length === 1) this.#wakeLater(event.process);
        continue;
      }
      this.nowMs = Math.max(this.nowMs, event.dueMs);
      this.steps++;
      this.onStep(event.process, event.label);
      try {
        floor.run({ time: this, process: event.process }, event.run);
      } catch (error) {
        if (!event.process.isOfLastRelease) this.uncaught.push(error);
      }
      await new Promise(real.setImmediate);
      return true;
    }
  }

  #push(event: Event): void {
    const heap = this.#heap;
    let at = heap.push(event) - 1;
    while (at > 0) {
      const above = (at - 1) >> 1;
      const parent = heap[above] as Event;
      if (!isBefore(event, parent)) break;
      heap[at] = parent;
      at = above;
    }
    heap[at] = event;
  }

  #pop(): Event | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    let at = 0;
    for (;;) {
      let below = 2 * at + 1;
      if (below >= heap.length) break;
      const right = heap[below + 1];
      if (right !== undefined && isBefore(right, heap[below] as Event)) below++;
      const child = heap[below] as Event;
      if (!isBefore(child, last)) break;
      heap[at] = child;
      at = below;
    }
    heap[at] = last;
    return first;
  }
}

function isBefore(one: Event, other: Event): boolean {
  return one.dueMs < other.dueMs || (one.dueMs === other.dueMs && one.order < other.order);
}

const require = createRequire(import.meta.url);
const promises: { -readonly [K in keyof typeof timersPromises]: (typeof timersPromises)[K] } =
  require("node:timers/promises");

const real = {
  setTimeout: globalThis.setTimeout,
  clearTimeout: globalThis.clearTimeout,
  setInterval: globalThis.setInterval,
  clearInterval: globalThis.clearInterval,
  setImmediate: globalThis.setImmediate,
  clearImmediate: globalThis.clearImmediate,
  Date: globalThis.Date,
  now: performance.now,
  random: Math.random,
  timeout: AbortSignal.timeout,
  sleep: promises.setTimeout,
  immediate: promises.setImmediate,
  randomUUID: crypto.randomUUID,
};

/** As node's: it can be cleared, and says nothing of whether it keeps a process alive. */
class Timer {
  event: Event | undefined;

  unref(): this {
    return this;
  }

  ref(): this {
    return this;
  }

  hasRef(): boolean {
    return false;
  }

  close(): this {
    if (this.event !== undefined) this.event.isCancelled = true;
    return this;
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

function setTimer(label: string, run: (...args: unknown[]) => void, delayMs: number, args: unknown[]): Timer {
  const { time, process } = floor.getStore() as { time: SimulatedTime; process: Process };
  const timer = new Timer();
  // Node waits for at least a millisecond.
  timer.event = time.schedule(delayMs, label, process, () => run(...args));
  return timer;
}

function sleep(delayMs: number, signal: AbortSignal | undefined, label: string): Promise<unknown> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) return reject(signal.reason);
    const timer = setTimer(label, () => resolve(undefined), delayMs, []);
    signal?.addEventListener(
      "abort",
      () => {
        timer.close();
        reject(signal.reason);
      },
      { once: true },
    );
  });
}

// biome-ignore lint/suspicious/noExplicitAny: the globals' own forms, which have many overloads
type Any = any;

const replacements = {
  setTimeout: (run: Any, delayMs = 1, ...args: Any[]): Any =>
    floor.getStore() === undefined
      ? real.setTimeout(run, delayMs, ...args)
      : setTimer("timer", run, Math.max(1, Math.floor(delayMs)), args),
  clearTimeout: (timer: Any): void => void (timer instanceof Timer ? timer.close() : real.clearTimeout(timer)),
  setInterval: (run: Any, delayMs = 1, ...args: Any[]): Any => {
    if (floor.getStore() === undefined) return real.setInterval(run, delayMs, ...args);
    const timer = new Timer();
    const again = (): void => {
      timer.event = setTimer("interval", fire, Math.max(1, delayMs), []).event;
    };
    const fire = (): void => {
      again();
      run(...args);
    };
    again();
    return timer;
  },
  setImmediate: (run: Any, ...args: Any[]): Any =>
    floor.getStore() === undefined ? real.setImmediate(run, ...args) : setTimer("immediate", run, 0, args),
};

class SimulatedDate extends real.Date {
  // biome-ignore lint/suspicious/noExplicitAny: Date has many forms
  constructor(...given: any[]) {
    // biome-ignore lint/suspicious/noExplicitAny: Date has many forms
    if (given.length > 0) super(...(given as [any]));
    else super(SimulatedDate.now());
  }

  static override now(): number {
    const found = floor.getStore();
    return found === undefined ? real.Date.now() : EPOCH_MS + found.time.nowMs + found.process.wallOffsetMs;
  }
}

/** The globals are the simulation's for its processes, until the end of the scope. */
export function installTime(): Disposable {
  globalThis.setTimeout = replacements.setTimeout as typeof setTimeout;
  globalThis.clearTimeout = replacements.clearTimeout as typeof clearTimeout;
  globalThis.setInterval = replacements.setInterval as typeof setInterval;
  globalThis.clearInterval = replacements.clearTimeout as typeof clearInterval;
  globalThis.setImmediate = replacements.setImmediate as typeof setImmediate;
  globalThis.clearImmediate = ((timer: Any) =>
    timer instanceof Timer ? void timer.close() : real.clearImmediate(timer)) as typeof clearImmediate;
  globalThis.Date = SimulatedDate as DateConstructor;
  performance.now = () => floor.getStore()?.time.nowMs ?? real.now.call(performance);
  Math.random = () => {
    const found = floor.getStore();
    return found === undefined ? real.random() : found.process.random.u32() / 2 ** 32;
  };
  AbortSignal.timeout = (delayMs) => {
    if (floor.getStore() === undefined) return real.timeout.call(AbortSignal, delayMs);
    const controller = new AbortController();
    const reason = new DOMException("The operation was aborted due to timeout", "TimeoutError");
    setTimer("time limit", () => controller.abort(reason), delayMs, []);
    return controller.signal;
  };
  promises.setTimeout = ((delayMs = 1, value: Any = undefined, options: Any = {}) =>
    floor.getStore() === undefined
      ? real.sleep(delayMs, value, options)
      : sleep(Math.max(1, delayMs), options?.signal, "sleep").then(() => value)) as typeof promises.setTimeout;
  promises.setImmediate = ((value: Any = undefined, options: Any = {}) =>
    floor.getStore() === undefined
      ? real.immediate(value, options)
      : sleep(0, options?.signal, "immediate").then(() => value)) as typeof promises.setImmediate;
  crypto.randomUUID = (options) => floor.getStore()?.time.newUuid() ?? real.randomUUID(options);
  syncBuiltinESMExports();
  return { [Symbol.dispose]: restore };
}

function restore(): void {
  const { setTimeout, clearTimeout, setInterval, clearInterval, setImmediate, clearImmediate } = real;
  Object.assign(globalThis, { setTimeout, clearTimeout, setInterval, clearInterval, setImmediate, clearImmediate });
  globalThis.Date = real.Date;
  performance.now = real.now;
  Math.random = real.random;
  AbortSignal.timeout = real.timeout;
  promises.setTimeout = real.sleep;
  promises.setImmediate = real.immediate;
  crypto.randomUUID = real.randomUUID;
  syncBuiltinESMExports();
}

/** The pause of a clock of the product. Rejects with the signal's reason. */
export function pause(waitMs: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.reject(signal.reason);
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, waitMs);
    signal.addEventListener(
      "abort",
      () => {
        clearTimeout(timer);
        reject(signal.reason);
      },
      { once: true },
    );
  });
}
