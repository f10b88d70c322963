import { describe, expect, it } from "vitest";
import { formatPrefix } from "../../../../../host/net/prefix.ts";
import { blockAt, chooseBlocks, compareBlocks, countBlocks } from "../../../blocks/blocks-of-range.ts";
import { rangeSpec } from "./range-object.ts";

const NONE = (): boolean => false;

describe("the blocks of a range", () => {
  it.each([
    ["10.6.0.0/24", 28, 16, "10.6.0.240/28"],
    ["10.6.0.0/28", 28, 1, "10.6.0.0/28"],
    ["10.6.0.0/30", 32, 4, "10.6.0.3/32"],
    ["fd00::/112", 120, 256, "fd00::ff00/120"],
  ])("%s in /%i", (subnet, blockSize, count, last) => {
    const spec = rangeSpec({ subnet, blockSize });
    expect(countBlocks(spec)).toBe(count);
    expect(formatPrefix(blockAt(spec, count - 1))).toBe(last);
  });

  it("are chosen from the start on and around, without those that are taken", () => {
    const taken = (block: string): boolean => block === "10.6.0.0/28";
    const chosen = chooseBlocks(rangeSpec(), taken, { count: 3, start: 15 });
    expect(chosen).toEqual(["10.6.0.240/28", "10.6.0.16/28", "10.6.0.32/28"]);
  });

  it("are not more than there are", () => {
    expect(chooseBlocks(rangeSpec(), NONE, { count: 99, start: 3 })).toHaveLength(16);
  });

  it("leave out excluded addresses and nodes', as a whole", () => {
    const spec = rangeSpec({ excludeIPs: ["10.6.0.0-10.6.0.20"], nodeIPs: ["10.6.0.32-10.6.0.63"] });
    expect(chooseBlocks(spec, NONE, { count: 2, start: 0 })).toEqual(["10.6.0.16/28", "10.6.0.64/28"]);
  });

  it("are in the order of their addresses", () => {
    expect(["10.6.0.128/28", "10.6.0.16/28"].sort(compareBlocks)).toEqual(["10.6.0.16/28", "10.6.0.128/28"]);
  });
});
