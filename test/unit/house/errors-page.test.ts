import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { ErrorCode } from "../../../host/cni/error.ts";

const rows = readFileSync("docs/errors.md", "utf8")
  .split("\n")
  .filter((line) => /^\| \d/.test(line))
  .map((line) => line.split("|").map((cell) => cell.trim()));

describe("docs/errors.md", () => {
  it.each(Object.entries(ErrorCode))("explains %s", (name, code) => {
    const [row] = rows.filter((cells) => cells[1] === String(code));
    expect(row?.[2]).toBe(name);
    expect(row?.[3]).toMatch(/.{20}/);
    expect(row?.[4]).toMatch(/.{20}/);
  });

  it("explains nothing else", () => {
    expect(rows.map((cells) => Number(cells[1]))).toEqual(Object.values(ErrorCode));
  });
});
