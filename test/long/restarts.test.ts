/**
 * Thirty graceful restarts of the agent, ten thousand ADDs meanwhile: each is answered with an address of its own. A
 * few with NICs, under the observer.
 */
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

it("restarts under load give each NIC an address of its own", () =>
  withWorld(
    { "conf.yaml": CONF, "blue.yaml": ipPool("blue", "10.6.0.0/22", { default: true }) },
    async (world) => {
      const { adds, addresses, lost } = await restartUnderLoad(world, { restarts: 5, atOnce: 16, addsBetween: 40 });
      expect(lost).toEqual([]);
      expect(addresses).toBe(adds);
    },
    { isObserved: true },
  ));
