/** Fuzzing guided by coverage, for ten seconds in all, and in the long tests for ten minutes. */
import { expect, it } from "vitest";
import { gateOrLong } from "../world/long-cases.ts";
import { fuzzAll } from "./campaigns.ts";
import { fuzzInThread } from "./guided-thread.ts";

it("finds by coverage a fault that chance does not find", async () => {
  const order = { name: "planted", seconds: 30, seed: 1 };
  await expect(fuzzInThread(order)).rejects.toThrow(/Berth/);
  await fuzzInThread({ ...order, seconds: 2, isGuided: false });
});

fuzzAll(gateOrLong(10, 600));
