/**
 * The forms of taking an address and giving it back, timed. Called in Node.js and in a browser's page.
 * Effects: none outside the instance.
 */
import { Core, Policy, type Pool } from "berth-core";

/** A pool to measure on: its ranges as pairs of first and last address, and the size of a batch. */
export interface Shape {
  readonly name: string;
  readonly family: 4 | 6;
  readonly ranges: readonly (readonly [string, string])[];
  readonly snapshot: string;
  readonly batch: number;
}

/** One figure: nanoseconds per call, pair or address. */
export interface Figure {
  readonly shape: string;
  readonly form: string;
  readonly ns: number;
}

const WARM_UP_MS = 200;
const SAMPLE_MS = 31; // a little more than wanted, as turns differ
const SAMPLES = 9;

/** What the measured loops came to, so that nothing of them is left out. */
let sum = 0;

/** The median time of one turn of a loop, in nanoseconds. */
function medianNs(loop: (turns: number) => number): number {
  const timeMs = (turns: number): number => {
    const startMs = performance.now();
    sum += loop(turns);
    return performance.now() - startMs;
  };
  let turns = 1;
  let spentMs = 0;
  let lastMs = 0;
  while (spentMs < WARM_UP_MS) {
    lastMs = timeMs(turns);
    spentMs += lastMs;
    if (lastMs < SAMPLE_MS / 2) turns *= 2;
  }
  turns = Math.ceil((turns * SAMPLE_MS) / lastMs);
  const samples = Array.from({ length: SAMPLES }, () => timeMs(turns) / turns).sort((a, b) => a - b);
  return (samples[(SAMPLES - 1) / 2] ?? Number.NaN) * 1e6;
}

function timeText(pool: Pool): number {
  return medianNs((turns) => {
    let letters = 0;
    for (let turn = 0; turn < turns; turn++) {
      const address = pool.allocate("ROUND_ROBIN") ?? "";
      pool.release(address);
      letters += address.length;
    }
    return letters;
  });
}

function timeValue({ values }: Pool): number {
  return medianNs((turns) => {
    let released = 0;
    for (let turn = 0; turn < turns; turn++) {
      const ip = values.allocate("ROUND_ROBIN");
      if (ip !== undefined && values.release(ip) === "released") released++;
    }
    return released;
  });
}

function timeRaw({ raw }: Core, { handle }: Pool): number {
  return medianNs((turns) => {
    let released = 0;
    for (let turn = 0; turn < turns; turn++) {
      raw.pool_allocate_many(handle, Policy.ROUND_ROBIN, 0, 1);
      released += raw.pool_release(handle);
    }
    return released;
  });
}

function timeOrdinal({ raw }: Core, { handle }: Pool): number {
  return medianNs((turns) => {
    let released = 0;
    for (let turn = 0; turn < turns; turn++) {
      released += raw.pool_release_at(handle, raw.pool_allocate(handle, Policy.ROUND_ROBIN, 0));
    }
    return released;
  });
}

function timeBatch({ values }: Pool, batch: number): number {
  const ns = medianNs((turns) => {
    let released = 0;
    for (let turn = 0; turn < turns; turn++) {
      released += values.releaseMany(values.allocateMany(batch, "ROUND_ROBIN"));
    }
    return released;
  });
  return ns / batch;
}

function timeCall({ raw }: Core): number {
  return medianNs((turns) => {
    let objects = 0;
    for (let turn = 0; turn < turns; turn++) objects += raw.live_objects();
    return objects;
  });
}

/** Measures every form on every shape. "one" has the address as text, "one-value", once for each family, as an `Ip`. */
export async function measure(
  shapes: readonly Shape[],
  readSnapshot: (shape: Shape) => Promise<Uint8Array>,
  say: (figure: Figure) => void,
): Promise<void> {
  const core = await Core.open();
  say({ shape: "", form: "call", ns: timeCall(core) });
  for (const shape of shapes) {
    using pool = core.createPool(shape.ranges.map(([first, last]) => `${first}-${last}`));
    const answer = pool.load(await readSnapshot(shape));
    if (answer !== "loaded") throw new Error(`The snapshot of ${shape.name} is not loaded: ${answer}`);
    const { used } = pool.counts();
    say({ shape: shape.name, form: "one", ns: timeText(pool) });
    const isFirst = shapes.find(({ family }) => family === shape.family) === shape;
    if (isFirst) say({ shape: shape.name, form: "one-value", ns: timeValue(pool) });
    say({ shape: shape.name, form: "raw", ns: timeRaw(core, pool) });
    say({ shape: shape.name, form: "ordinal", ns: timeOrdinal(core, pool) });
    say({ shape: shape.name, form: "batch", ns: timeBatch(pool, shape.batch) });
    if (pool.counts().used !== used || sum === 0) throw new Error(`The pool of ${shape.name} is not as before`);
  }
}
