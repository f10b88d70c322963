import { expect, it } from "vitest";
import { parsePoolNumber } from "../../../../host/config/pool-number.ts";
import { planFormerSize, planSize } from "../../../../host/controller/owners/plan-demands.ts";
import type { Need } from "../../../../host/controller/owners/tracked-object.ts";

const need = (unit: Need["unit"], count: number, surge = 0, isSuspended = false) => ({
  ...{ unit, count, surge, isSuspended, overlaps: true },
});

function check(plan: typeof planSize, number: string, of: Need, things: number, expected: string): void {
  const parsed = parsePoolNumber(number);
  if (parsed === undefined) throw new Error(`${number} is no number of a pool`);
  const { count, reason } = plan(of, parsed, things);
  expect(`${count}: ${reason}`).toBe(expected);
}

const MOST = Number.MAX_SAFE_INTEGER;

it.each<[number: string, need: Need, things: number, expected: string]>([
  ["+1", need("replica", 50), 1, "51: 50 replicas and 1 more"],
  ["+0", need("replica", 3), 1, "3: 3 replicas"],
  ["+1", need("replica", 50, 13), 1, "63: 50 replicas and 13 more while it is rolled out (maxSurge)"],
  ["+0", need("replica", 50, 1), 1, "51: 50 replicas and 1 more while it is rolled out (maxSurge)"],
  ["+13", need("replica", 50, 13), 1, "63: 50 replicas and 13 more"],
  ["+20", need("replica", 50, 13), 1, "70: 50 replicas and 20 more"],
  ["7", need("replica", 50, 13), 1, "7: 7 as ippool-ip-number says"],
  ["+1", need("node", 4), 1, "5: 4 nodes and 1 more"],
  ["+1", need("parallelism", 3), 1, "4: parallelism 3 and 1 more"],
  ["+1", need("parallelism", 0, 0, true), 1, "1: 0 while it is suspended and 1 more"],
  ["+1", need("parallelism", 3, 0, true), 1, "4: parallelism 3 and 1 more"],
  [`+${MOST}`, need("replica", 2_147_483_647), 1, `${MOST}: 2147483647 replicas and ${MOST} more`],
])("ippool-ip-number %s with %j in %i things: %s", (number, of, things, expected) => {
  check(planSize, number, of, things, expected);
});

it.each<[number: string, need: Need, expected: string]>([
  ["+1", need("replica", 3), "4: 3 replicas of a former version and 1 more"],
  ["+9", need("replica", 3), "4: 3 replicas of a former version and 1 more"],
  ["+0", need("replica", 3), "3: 3 replicas of a former version"],
  ["2", need("replica", 3), "2: 2 as ippool-ip-number says"],
  ["3", need("replica", 3), "3: 3 as ippool-ip-number says"],
  ["9", need("replica", 3), "3: 3 replicas of a former version"],
])("of a former version: ippool-ip-number %s with %j: %s", (number, of, expected) => {
  check(planFormerSize, number, of, 1, expected);
});
