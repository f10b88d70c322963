import { main } from "assemblyscript/asc";
import { expect, it } from "vitest";
import { type Build, readCore } from "./raw-core.ts";

/** The module that the sources give now, by the given target of asconfig.json. */
async function compile(target: string): Promise<Uint8Array> {
  let built: Uint8Array = new Uint8Array();
  const { error } = await main(["--target", target, "--outFile", "out.wasm"], {
    writeFile: (name: string, contents: Uint8Array | string) => {
      if (name === "out.wasm" && typeof contents !== "string") built = contents;
    },
  });
  if (error !== null) throw error;
  return built;
}

it.each<Build>(["release", "debug"])("two builds of the %s core are the same, byte for byte", async (target) => {
  const [first, second] = [await compile(target), await compile(target)];
  expect(first.length).toBeGreaterThan(1000);
  expect(Buffer.compare(first, second)).toBe(0);
  expect(Buffer.compare(first, readCore(target)), "dist/core is not what the sources give: npm run build").toBe(0);
});
