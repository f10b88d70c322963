/** Thirty graceful restarts of the agent, ten thousand ADDs meanwhile: each is answered with an address of its own. */
import { expect, it } from "vitest";
import { restartUnderLoad } from "../e2e/restart-storm.ts";
import { CONF, ipPool } from "../lab/manifests.ts";
import { withWorld } from "../lab/netns/world.ts";

const RESTARTS = 30;
const ADDS = 10_000;

it("restarts under load lose no ADD", () =>
  withWorld({ "conf.yaml": CONF, "wide.yaml": ipPool("wide", "10.6.0.0/15", { default: true }) }, async (world) => {
    const storm = { restarts: RESTARTS, atOnce: 24, addsBetween: Math.ceil(ADDS / RESTARTS) };
    const { adds, addresses, lost } = await restartUnderLoad(world, storm);
    expect(lost).toEqual([]);
    expect(adds).toBeGreaterThanOrEqual(ADDS);
    expect(addresses).toBe(adds);
  }));
