/** A reduced scale run: every pod gets its address, in each of its phases. */
import { expect, it } from "vitest";
import { describeScale, runScale } from "../simulation/scale/run-scale.ts";

it("fifty nodes, five of them with full agents", async () => {
  const sizes = { nodes: 50, full: 5, pods: 500, pools: 20, rate: 50, loadS: 10 };
  const report = await runScale({ ...sizes, processors: 8 });
  console.log(describeScale(report));
  expect(report).toMatchObject({ failures: {}, pods: 500, waiting: 0, stale: 0 });
  expect(report.phases.filter(({ addMs }) => addMs.length > 0).length).toBeGreaterThan(2);
});
