/**
 * Records the Rust crates inside the Node.js executable, with licences and texts of their packages on crates.io, for
 * THIRD_PARTY_LICENSES.
 *
 *   node scripts/release/record-crates.ts
 *
 * Run it after a change of Node.js's version, with `ROOTS` as Node.js's deps/crates/Cargo.toml has them. Needs cargo
 * and crates.io; a release reads the file.
 * Effects: scripts/release/inventory/crates.json; cargo's cache.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { CrateRecords } from "./inventory/crates.ts";
import { cratesIn } from "./inventory/crates.ts";

/** The crates that Node.js asks for; all others in deps/crates follow from them. */
const ROOTS: readonly string[] = [
  'temporal_capi = { version = "=0.2.4", features = ["zoneinfo64"], default-features = false }',
  'icu_calendar = { version = "~2.2", features = ["ixdtf"], default-features = false }',
];

const LICENSE_FILE = /^(?:licen[cs]e|copying|copyright|notice|unlicense)/i;
const MIT_FILE = /^(?:license-mit|copyright|notice)/i;

interface CargoPackage {
  readonly name: string;
  readonly version: string;
  readonly license: string;
  readonly manifest_path: string;
}

const byName = ([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number => (a < b ? -1 : 1);

/** Returns the licence files. Of a choice that includes MIT it is MIT's, the shortest with the copyright. */
function licenseFiles({ license, manifest_path }: CargoPackage): string[] {
  const names = readdirSync(dirname(manifest_path)).sort();
  const all = names.filter((name) => LICENSE_FILE.test(name));
  const mit = /\b(?:OR MIT|MIT OR|MIT\/)/.test(license) ? all.filter((name) => MIT_FILE.test(name)) : [];
  return mit.some((name) => /mit/i.test(name)) ? mit : all;
}

function record(directory: string): CrateRecords {
  const cargo = (...args: readonly string[]) =>
    execFileSync("cargo", args, { cwd: directory, encoding: "utf8", maxBuffer: 1 << 26 });
  const { packages }: { packages: CargoPackage[] } = JSON.parse(cargo("metadata", "--format-version", "1"));
  const target = ["--target", "x86_64-unknown-linux-gnu"];
  const linked = new Set(
    cargo("tree", "--edges", "normal,no-proc-macro", ...target, "--prefix", "none", "--format", "{p}").split(
      / \(.*|\n/,
    ),
  );
  const lock = readFileSync(join(directory, "Cargo.lock"), "utf8");
  const checksums = new Map(
    [...lock.matchAll(/name = "(.*)"\nversion = "(.*)"\nsource = .*\nchecksum = "(.*)"/g)].map(
      ([, name, version, checksum = ""]) => [`${name} v${version}`, checksum],
    ),
  );
  const texts = new Map<string, string>();
  const crates = packages
    .filter(({ name, version }) => name !== "probe" && linked.has(`${name} v${version}`))
    .map((each): [string, CrateRecords["crates"][string]] => {
      const { name, version, license, manifest_path } = each;
      const keys = licenseFiles(each).map((file) => {
        const text = readFileSync(join(dirname(manifest_path), file), "utf8").trim();
        const known = [...texts].find(([, other]) => other === text)?.[0] ?? `${name}/${file}`;
        texts.set(known, text);
        return known;
      });
      if (keys.length === 0) throw new Error(`The package of crate ${name} ${version} has no licence text`);
      const sha256 = checksums.get(`${name} v${version}`) ?? "";
      return [name, { version, license: license.replace("/", " OR "), sha256, texts: keys }];
    });
  return { crates: Object.fromEntries(crates.sort(byName)), texts: Object.fromEntries([...texts].sort(byName)) };
}

const directory = mkdtempSync(join(tmpdir(), "berth-crates-"));
try {
  const exact = [...cratesIn(readFileSync(process.execPath))].filter(([, version]) => /^\d+\.\d+\.\d+$/.test(version));
  const std = exact.map(([name, version]) => `${name} = { version = "=${version}", default-features = false }`);
  const manifest = ["[package]", 'name = "probe"', 'version = "0.0.0"', "[dependencies]", ...ROOTS, ...std];
  mkdirSync(join(directory, "src"));
  writeFileSync(join(directory, "src", "lib.rs"), "");
  writeFileSync(join(directory, "Cargo.toml"), `${manifest.join("\n")}\n`);
  const file = join(import.meta.dirname, "inventory", "crates.json");
  writeFileSync(file, `${JSON.stringify(record(directory), null, 2)}\n`);
} finally {
  rmSync(directory, { recursive: true });
}
