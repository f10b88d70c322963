import { expect, it } from "vitest";
import { duration } from "../../../../host/config/fields/duration.ts";

it.each([
  ["0s", 0],
  ["200ms", 200],
  ["1h30m", 5_400_000],
  ["007s", 7_000],
  ["", undefined],
  ["-1s", undefined],
  ["1s1m", undefined],
  ["１s", undefined],
  [`${"9".repeat(30)}h`, undefined],
  ["2147483647ms", 2_147_483_647],
  ["2147483648ms", undefined],
])("the duration %j is %s ms", (text, expected) => expect(duration.safeParse(text).data).toBe(expected));
