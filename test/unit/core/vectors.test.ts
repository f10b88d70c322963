import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { ABI } from "../../../scripts/generate/abi-description.ts";
import { Player, parseVector, vectorText } from "../../vectors/core/record.ts";
import { SCENARIOS } from "../../vectors/core/scenarios.ts";
import { CORE_BUILDS } from "./core-build.ts";

function readText(name: string): string {
  return readFileSync(new URL(`../../../dist/core/vectors/${name}.txt`, import.meta.url), "utf8");
}

const readVector = (name: string) => parseVector(readText(name));

describe("the conformance vectors", () => {
  const release = CORE_BUILDS[0]?.wasm ?? new Uint8Array();

  it.each(SCENARIOS.map((scenario) => [scenario.name, scenario] as const))(
    "%s is what the core does",
    (name, scenario) => expect(readText(name), "run npm run build").toBe(vectorText(scenario, release)),
  );

  it("call every export", () => {
    const called = new Set(SCENARIOS.flatMap(({ name }) => readVector(name).steps.map(({ call }) => call)));
    const played = "exchange"; // by every step with input
    expect(ABI.exports.map(({ name }) => name).filter((name) => name !== played && !called.has(name))).toEqual([]);
  });
});

describe.each(CORE_BUILDS)("the $build build", ({ wasm }) => {
  it.each(SCENARIOS.map(({ name }) => name))("replays %s to the same memory", (name) => {
    const player = new Player(wasm);
    const { steps, state } = readVector(name);
    for (const [index, step] of steps.entries()) {
      const result = player.call(step.call, step.args, step.input);
      const output = step.output === undefined ? {} : { output: player.output(step.output.length / 2) };
      expect({ index, result, ...output }).toEqual({
        index,
        result: step.result,
        ...(step.output === undefined ? {} : { output: step.output }),
      });
    }
    expect(player.state()).toEqual(state);
  });
});
