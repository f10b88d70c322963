/** A reduced scale run: every pod gets its address, in each of its phases. */
import { expect, it } from "vitest";
import { describeScale, plotsOf } from "../simulation/scale/report.ts";
import { runScale } from "../simulation/scale/run-scale.ts";

it("fifty nodes, five of them with full agents", async () => {
  const sizes = { nodes: 50, full: 5, pods: 500, pools: 20, rate: 50, loadS: 10 };
  const report = await runScale({ ...sizes, processors: 8, seed: 1 });
  console.log(describeScale(report));
  expect(report.failures).toEqual({});
  expect(report.restored).toEqual({ missing: 0, stale: 0 });
  expect(report.samples.at(-1)).toMatchObject({ waiting: 0, pods: 500 });
  expect(report.phases.map(({ adds }) => adds > 0)).toContain(true);
  expect(Object.keys(plotsOf(report))).toEqual(["add", "requests", "watches", "server", "controller"]);
});
