import { expect, it } from "vitest";
import { findAlerts } from "../../server/map-api.ts";

const NEARLY = "The pool is nearly full: 9 of 100 addresses are free.";
const FULL = "The pool has no free address: new pods that need it do not start.";
const WHY = "its node was lost, or its block goes back.";
const ONE = `1 address is in quarantine: another machine answered for it, ${WHY}`;
const TWO = `2 addresses are in quarantine: another machine answered for each, ${WHY}`;

it.each([
  [100n, 0, 0, false, []],
  [100n, 90, 0, false, []],
  [100n, 91, 0, false, [NEARLY]],
  [100n, 100, 0, false, [FULL]],
  [100n, 120, 0, false, [FULL]],
  [0n, 0, 0, false, []],
  [100n, 100, 0, true, []],
  [2n ** 64n, 1_000, 0, false, []],
  [9n, 1, 1, false, [ONE]],
  [9n, 9, 2, true, [TWO]],
] as const)(
  "a pool of %s with %i in use, %i in quarantine, generated %s",
  (size, used, quarantined, isGenerated, wanted) =>
    expect(findAlerts({ size, used, quarantined, isGenerated }).map(({ text }) => text)).toEqual(wanted),
);
