/**
 * A release for this machine's processor: its parts are there, named by their SBOMs, and the tarball installs itself.
 * The whole release, reproducible and for both processors: test/long/release.test.ts.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Spec, Validation } from "@cyclonedx/cyclonedx-library";
import { afterAll, beforeAll, expect, it } from "vitest";
import { readTar } from "../../scripts/release/archive.ts";
import { build } from "../../scripts/release/build.ts";
import { readFacts } from "../../scripts/release/facts.ts";
import { headingOf, takeInventory, writeNotices } from "../../scripts/release/inventory.ts";
import { sha256 } from "../../scripts/release/sources.ts";
import type { Artifact } from "../../scripts/release/step.ts";
import { readVersion, tagOf } from "../../scripts/setup/version.mjs";
import { requireCommand } from "../lab/command.ts";

const VERSION = readVersion();
const architecture = process.arch === "arm64" ? "arm64" : "amd64";
const tarball = `berth-${tagOf(VERSION)}-linux-${architecture}`;
const image = `berth-${tagOf(VERSION)}-image-${architecture}`;
const directory = mkdtempSync(join(tmpdir(), "berth-release-"));
let notices: Buffer;
let artifacts: ReadonlyMap<string, Artifact[1]>;

beforeAll(async () => {
  const inventory = await takeInventory(architecture);
  notices = writeNotices([...inventory.image, ...inventory.tarball]);
  const inventories = { amd64: inventory, arm64: inventory };
  artifacts = new Map(await build(architecture, { facts: readFacts(), output: directory, inventories, notices }));
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const contentOf = (name: string): Buffer => artifacts.get(name) ?? expect.unreachable(`there is no ${name}`);

it("has an image, a tarball and packages, each with its SBOM", () => {
  const packages = ["deb", "rpm"].flatMap((format) => [`${tarball}.${format}`, `${tarball}.${format}.cdx.json`]);
  const wanted = [`${image}.tar`, `${image}.cdx.json`, `${tarball}.tar.gz`, `${tarball}.cdx.json`, ...packages];
  expect([...artifacts.keys()]).toEqual(wanted);
});

it.each([
  [`${image}.tar`, `${image}.cdx.json`],
  [`${tarball}.tar.gz`, `${tarball}.cdx.json`],
  [`${tarball}.deb`, `${tarball}.deb.cdx.json`],
])(
  "%s has a valid SBOM with its hash, of components whose licences are in THIRD_PARTY_LICENSES",
  async (name, sbom) => {
    const text = contentOf(sbom).toString();
    expect(await new Validation.JsonStrictValidator(Spec.Version.v1dot6).validate(text)).toBeNull();
    const { metadata, components } = JSON.parse(text);
    expect(metadata.component.hashes[0].content).toBe(sha256(contentOf(name)));
    expect(components.length).toBeGreaterThan(20);
    const lines = new Set(notices.toString().split("\n"));
    for (const { name, version, licenses } of components) {
      // A library in Node.js, whose LICENSE has it.
      if (licenses === undefined) continue;
      const license = licenses
        .map((each: { expression?: string; license?: { id: string } }) => each.expression ?? each.license?.id)
        .join();
      expect(lines).toContain(headingOf({ name, version, license }));
    }
  },
);

it("has an image with the licences", async () => {
  const layout = await readTar(contentOf(`${image}.tar`));
  const decode = (path: string) => JSON.parse(layout.get(path)?.toString() ?? "{}");
  const blob = ({ digest }: { digest: string }): string => `blobs/${digest.replace(":", "/")}`;
  const [layer] = decode(blob(decode("index.json").manifests[0])).layers;
  const files = await readTar(layout.get(blob(layer)) ?? expect.unreachable("there is no layer"));
  expect(files.get("usr/share/doc/berth/THIRD_PARTY_LICENSES")).toEqual(notices);
  for (const path of ["usr/bin/node", "usr/lib/berth/berth-agent.mjs", "usr/lib/berth/bin/berth"])
    expect(files.has(path), path).toBe(true);
});

it("has a tarball that installs itself, with programs that bring their Node.js", async () => {
  const [file, folder, host] = ["archive.tar.gz", "unpacked", "host"].map((name) => join(directory, name)) as [
    string,
    string,
    string,
  ];
  writeFileSync(file, contentOf(`${tarball}.tar.gz`));
  mkdirSync(folder);
  execFileSync("tar", ["-xf", file, "-C", folder, "--strip-components=1"]);
  expect(readFileSync(join(folder, "THIRD_PARTY_LICENSES"))).toEqual(notices);
  await requireCommand(["sh", join(folder, "install.sh"), "--root", host]);
  for (const program of ["berth-agent", "berth-controller", "berthctl"])
    expect(await requireCommand([join(host, "opt/berth/current/bin", program), "--version"])).toBe(`${VERSION}\n`);
});

it("has a deb in which lintian finds nothing wrong, and an rpm whose digests fit", { timeout: 300_000 }, async () => {
  const [deb, rpm] = ["berth.deb", "berth.rpm"].map((name) => join(directory, name)) as [string, string];
  writeFileSync(deb, contentOf(`${tarball}.deb`));
  writeFileSync(rpm, contentOf(`${tarball}.rpm`));
  await requireCommand(["lintian", "--allow-root", "--fail-on", "error,warning", deb]);
  expect(await requireCommand(["rpm", "--checksig", rpm])).toContain("digests OK");
});
