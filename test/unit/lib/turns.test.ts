import { expect, it } from "vitest";
import { type Steps, TURN_MS, Turns } from "../../../host/lib/turns.ts";

/** Work of so many steps, each of which takes this long. */
function open(steps: number, stepMs: number) {
  let [ms, done] = [0, 0];
  const leading = new AbortController();
  function* work(): Steps<string> {
    for (; done < steps; done++) {
      ms += stepMs;
      yield;
    }
    return "all";
  }
  const turns = new Turns({ nowMs: () => ms, signal: leading.signal });
  return { turns, work, leading, wait: () => (ms += 1_000), done: () => done };
}

it("gives others their turn after each piece, and goes on", async () => {
  const { turns, work, done, wait } = open(10, TURN_MS / 4);
  const result = turns.run(work());
  const seen: number[] = [];
  for (let turn = 0; turn < 3; turn++) {
    seen.push(done());
    await new Promise(setImmediate);
    wait();
  }
  expect(await result).toBe("all");
  expect(seen[0]).toBe(3);
  expect(done()).toBe(10);
  expect(seen.every((count, turn) => turn === 0 || count > (seen[turn - 1] ?? 0))).toBe(true);
});

it("counts its own time alone", async () => {
  const { turns, work, wait } = open(10, TURN_MS / 4);
  const result = turns.run(work());
  wait();
  await result;
  expect(turns.tookMs).toBe(2.5 * TURN_MS);
});

it("ends at a pause when leading has ended", async () => {
  const { turns, work, done, leading } = open(10, TURN_MS);
  const result = turns.run(work());
  leading.abort(new Error("It leads no more"));
  await expect(result).rejects.toThrow("It leads no more");
  expect(done()).toBe(0);
});
