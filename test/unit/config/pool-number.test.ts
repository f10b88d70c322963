import { expect, it } from "vitest";
import { parsePoolNumber } from "../../../host/config/pool-number.ts";

const fixed = (count: number) => ({ kind: "fixed", count });
const flexible = (count: number) => ({ kind: "flexible", count });

it.each([
  ["5", fixed(5)],
  ["+1", flexible(1)],
  ["+-1", undefined],
  [" 1", undefined],
  ["1\n", undefined],
  ["", undefined],
  ["٣", undefined],
  ["9007199254740993", undefined],
  ["9".repeat(400), undefined],
])("ippool-ip-number %j is %j", (text, expected) => expect(parsePoolNumber(text)).toEqual(expected));
