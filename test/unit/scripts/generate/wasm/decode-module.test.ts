import { describe, expect, it } from "vitest";
import { decodeModule } from "../../../../../scripts/generate/wasm/decode-module.ts";

const HEADER = [0, 97, 115, 109, 1, 0, 0, 0];

/** A module of one function without parameters and result. */
function moduleOf(...body: readonly number[]): Uint8Array {
  const code = [0, ...body, 11];
  const sections = [
    [1, 4, 1, 0x60, 0, 0],
    [3, 2, 1, 0],
    [10, code.length + 2, 1, code.length, ...code],
  ];
  return Uint8Array.from([...HEADER, ...sections.flat()]);
}

function bodyOf(...body: readonly number[]) {
  return decodeModule(moduleOf(...body)).functions[0]?.body;
}

describe("decoding a module", () => {
  it("gives numbers as unsigned ones", () => {
    expect(bodyOf(0x41, 0x7f, 0x42, 0x80, 0x7f)).toEqual([
      { op: "i32.const", index: 0xffffffff },
      { op: "i64.const", value: 0xffffffffffffff80n },
    ]);
  });

  it("nests what stands in blocks", () => {
    expect(bodyOf(0x03, 0x40, 0x41, 1, 0x04, 0x7e, 0x0c, 1, 0x05, 0x00, 0x0b, 0x1a, 0x0b)).toEqual([
      {
        op: "loop",
        result: undefined,
        body: [
          { op: "i32.const", index: 1 },
          { op: "if", result: "i64", body: [{ op: "br", index: 1 }], otherwise: [{ op: "unreachable" }] },
          { op: "drop" },
        ],
      },
    ]);
  });

  it("leaves out the hints of memory instructions", () => {
    expect(bodyOf(0x28, 2, 0x90, 3, 0xfc, 0x0a, 0, 0)).toEqual([
      { op: "i32.load", offset: 400 },
      { op: "memory.copy" },
    ]);
  });

  it.each([
    ["other bytes", [0, 97, 115, 110], "These bytes are no module"],
    ["half a header", HEADER.slice(0, 6), "The module ends at byte 6"],
    ["imports", [...HEADER, 2, 0], "Section 2 is none that the core has"],
    ["floats", moduleOf(0x92), "Opcode 146 is none that the core uses"],
    ["tables", moduleOf(0xfc, 0x0c), "a bulk operation that the core does not use"],
  ])("refuses %s", (_, bytes, message) => {
    expect(() => decodeModule(Uint8Array.from(bytes))).toThrow(message);
  });
});
