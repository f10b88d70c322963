import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { root } from "../../../scripts/setup/paths.mjs";
import { requireCommand, runCommand } from "../../lab/command.ts";
import { encodeImage, encodeTar } from "../../lab/nodes/image.ts";

let directory = "";
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "berth-unit-"));
});
afterEach(() => rm(directory, { recursive: true }));

const files = [
  { path: "bin/tool", content: Buffer.from("#!/bin/sh\n"), mode: 0o755 },
  { path: "block", content: Buffer.alloc(512, 7), mode: 0o644 },
  { path: "empty", content: Buffer.alloc(0), mode: 0o600 },
];

it("an archive is what tar takes it for, whatever the length of its files", async () => {
  const path = join(directory, "a.tar");
  await writeFile(path, encodeTar(files));
  const lines = (await requireCommand(["tar", "--utc", "-tvf", path])).trimEnd().split("\n");
  expect(lines.map((line) => line.split(/\s+/).filter((word) => !/[-:]\d\d/.test(word)))).toEqual([
    ["-rwxr-xr-x", "0/0", "10", "bin/tool"],
    ["-rw-r--r--", "0/0", "512", "block"],
    ["-rw-------", "0/0", "0", "empty"],
  ]);
  expect(await requireCommand(["tar", "-xOf", path, "bin/tool"])).toBe("#!/bin/sh\n");
});

it("an image names its layer by what is in it, so that the same files make the same bytes", () => {
  const image = { name: "docker.io/local/x:1", command: ["/bin/tool"], files };
  expect(encodeImage(image)).toEqual(encodeImage({ ...image, files: [...files] }));
  expect(encodeImage(image)).not.toEqual(encodeImage({ ...image, files: files.slice(1) }));
});

it("a name that does not fit into the header is refused", () => {
  const long = { path: "x".repeat(101), content: Buffer.alloc(0), mode: 0o644 };
  expect(() => encodeTar([long])).toThrow(RangeError);
});

const LOAD = `--import=${join(root, "test", "lab", "cluster", "shifted-clock.mjs")}`;
const PRINT = `console.log(JSON.stringify([Date.now(), +new Date(), new Date(5).getTime(), new Date() instanceof Date]))`;

const run = (shift: string) =>
  runCommand([process.execPath, "-e", PRINT], { env: { NODE_OPTIONS: LOAD, BERTH_LAB_CLOCK_MS: shift } });

it.each([86_400_000, -86_400_000])("dates are %d ms off, given ones are not", async (shiftMs) => {
  const { stdout, stderr } = await run(String(shiftMs));
  const [now, made, given, isDate] = JSON.parse(stdout || "[]");
  expect(stderr).toBe("");
  for (const date of [now, made]) expect(Math.abs(date - shiftMs - Date.now())).toBeLessThan(10_000);
  expect([given, isDate]).toEqual([5, true]);
});

it("a shift that is no number is refused", async () => {
  const { exitCode, stderr } = await run("a day");
  expect(exitCode).not.toBe(0);
  expect(stderr).toContain('BERTH_LAB_CLOCK_MS is "a day"');
});
