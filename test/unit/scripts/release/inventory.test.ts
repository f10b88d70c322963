/** A component without a recorded licence stops a release. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { npmComponents, writeNotices } from "../../../../scripts/release/inventory.ts";
import { temporaryDirectory } from "../../../world/temporary-directory.ts";

const directory = temporaryDirectory("berth-inventory-test-");

function addPackage(name: string, files: Record<string, string>): void {
  const folder = join(directory, "node_modules", name);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name, version: "1.2.3", license: "MIT" }));
  for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, file), text);
}

beforeAll(() => {
  for (const name of ["assemblyscript", "esbuild", "@scope/with"])
    addPackage(name, { LICENSE: `licence of ${name}`, "NOTICE.txt": "a notice" });
  addPackage("without", { "README.md": "License: MIT" });
});

const bundle = (...names: string[]) => {
  const inputs = names.map((name) => [`node_modules/${name}/index.js`, { bytesInOutput: 1 }]);
  const unused = { "node_modules/without/unused.js": { bytesInOutput: 0 }, "host/bin/a.ts": { bytesInOutput: 9 } };
  return { outputs: { "a.mjs": { imports: [], inputs: { ...Object.fromEntries(inputs), ...unused } } } };
};

describe("npm packages", () => {
  it("are those with code in a bundle, and the compilers'", () => {
    const [first, ...rest] = npmComponents(directory, bundle("@scope/with"));
    expect(first).toEqual({
      ...{ type: "library", name: "@scope/with", version: "1.2.3", license: "MIT" },
      ...{ purl: "pkg:npm/%40scope/with@1.2.3", text: "licence of @scope/with\n\na notice" },
    });
    expect(rest.map(({ name }) => name)).toEqual(["assemblyscript", "esbuild"]);
  });

  it("stop the release without a licence text", () => {
    expect(() => npmComponents(directory, bundle("without"))).toThrow(/^Package without 1\.2\.3 .* no licence text/);
  });
});

const pino = { type: "library", name: "pino", version: "1.0.0", license: "MIT", text: "text" } as const;

it("THIRD_PARTY_LICENSES has each text once, under its components", () => {
  const rule = "=".repeat(80);
  const text = String(
    writeNotices([
      pino,
      { ...pino, name: "zod" },
      { ...pino, name: "libc6", text: "other", source: "https://a.test" },
      { type: "library", name: "zlib", within: "Node.js" },
    ]),
  );
  expect(text.split("\n\n").slice(1)).toEqual([
    `${rule}\npino 1.0.0 (MIT)\nzod 1.0.0 (MIT)\n${rule}`,
    "text",
    `${rule}\nlibc6 1.0.0 (MIT)\n    source code: https://a.test\n${rule}`,
    "other\n",
  ]);
});
