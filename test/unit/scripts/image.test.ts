import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { requireCommand } from "../../../scripts/lab/command.ts";
import { encodeImage, encodeTar } from "../../../scripts/lab/nodes/image.ts";

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
