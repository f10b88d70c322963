/** A history of the profile `segments` that chance seldom brings: the invariants must hold in it, too. */
import { expect, it } from "vitest";
import { installTime, SimulatedTime } from "../../../../test/simulation/simulated-time.ts";
import { Timeline } from "../../../../test/simulation/timeline.ts";
import { SharedSegment } from "./shared-segment.ts";

const MINUTE_MS = 60_000;

it("a cluster that was off, was released, and is back while the hub is away gives no address of its old blocks", async () => {
  using _ = installTime();
  const time = new SimulatedTime(7);
  const people = time.process("people");
  const timeline = new Timeline(() => time.nowMs);
  const segment = time.inside(
    people,
    () => new SharedSegment({ time, timeline, faults: 0 }, ["east", "west", "north"]),
  );
  const [east, ...others] = segment.clusters;
  const minutes = async (count: number): Promise<void> => {
    const endMs = time.nowMs + count * MINUTE_MS;
    while (time.nowMs < endMs && (await time.step())) segment.check();
  };
  const now = (work: () => void): void => time.inside(people, work);
  now(() => segment.start());
  now(() => east?.scale(20));
  await minutes(75);
  const pods = east?.pods.size;
  now(() => east?.powerOff());
  await minutes(11);
  now(() => east !== undefined && segment.release(east));
  now(() => {
    for (const other of others) other.scale(60);
  });
  await minutes(8);
  const given = segment.answering.size;
  segment.isHubAway = true;
  now(() => east?.powerOn());
  await minutes(3);
  expect([pods, given > 80, east?.waiting.length, segment.problems]).toEqual([20, true, 20, []]);
  segment.isHubAway = false;
  await minutes(2);
  expect(new Set(east?.blocks.map(({ state }) => state))).toEqual(new Set(["Disputed"]));
  now(() => east !== undefined && segment.readmit(east));
  await minutes(2);
  expect([east?.blocks, segment.problems, time.uncaught]).toEqual([[], [], []]);
  now(() => segment.close());
});
