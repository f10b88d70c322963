/**
 * The faults of test/cluster that take longer than the gate has time for.
 */
import { expect, it } from "vitest";
import { startWorld } from "../../scripts/lab/cluster/world.ts";
import { stopServerInStorm } from "../cluster/fault-storm.ts";

it("the API server is stopped for 30 s in a storm of ADDs and DELs", async () => {
  const world = await startWorld({
    nodes: ["n1", "n2", "n3"],
    pools: [{ name: "blue", subnet: "10.6.0.0/23" }],
  });
  try {
    const { running } = await stopServerInStorm(world, { pods: 40, stoppedMs: 30_000 });
    expect(running).toHaveLength(120);
  } finally {
    await world.stop();
  }
});
