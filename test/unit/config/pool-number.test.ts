import { expect, it } from "vitest";
import { parsePoolNumber } from "../../../host/config/pool-number.ts";

const fixed = (count: number) => ({ kind: "fixed", count });
const flexible = (count: number) => ({ kind: "flexible", count });

it.each([
  ["0", fixed(0)],
  ["5", fixed(5)],
  ["+0", flexible(0)],
  ["+1", flexible(1)],
  ["1024", fixed(1_024)],
  ["a+1", undefined],
  ["3+1", undefined],
  ["+-1", undefined],
  ["-1", undefined],
  ["++1", undefined],
  [" 1", undefined],
  ["1 ", undefined],
  ["1\n", undefined],
  ["+ 1", undefined],
  ["", undefined],
  ["+", undefined],
  ["1.0", undefined],
  ["0x10", undefined],
  ["1e3", undefined],
  ["٣", undefined],
  ["9007199254740993", undefined],
  ["9".repeat(400), undefined],
])("ippool-ip-number %j is %j", (text, expected) => expect(parsePoolNumber(text)).toEqual(expected));
