/** A release fits its own descriptions, and any changed file is named. */
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, it } from "vitest";
import { findProblems } from "../../../../scripts/release/find-problems.ts";
import { writeSbom } from "../../../../scripts/release/sbom.ts";
import { sealRelease } from "../../../../scripts/release/seal.ts";
import { sha256 } from "../../../../scripts/release/sources.ts";
import { root } from "../../../../scripts/setup/paths.mjs";
import { cases } from "../../../world/rows.ts";
import { temporaryDirectory } from "../../../world/temporary-directory.ts";

const facts = { version: "1.2.3", description: "a release", revision: "0".repeat(40), timeSeconds: 1_700_000_000 };
const image = "berth-1.2.3-image-amd64";
const tarball = "berth-1.2.3-linux-amd64";
const provenance = "berth-1.2.3.provenance.json";
const directory = temporaryDirectory("berth-verify-");
let changed = "";

function writeRelease(name: string): string {
  const folder = mkdtempSync(join(directory, `${name}-`));
  const digests = new Map<string, string>();
  const add = (file: string, content: Uint8Array) => {
    writeFileSync(join(folder, file), content);
    digests.set(file, sha256(content));
  };
  for (const [artifact, type] of [
    [`${image}.tar`, "container"],
    [`${tarball}.tar.gz`, "application"],
    [`${tarball}.deb`, "application"],
  ] as const) {
    add(artifact, Buffer.from(`bytes of ${artifact}`));
    const subject = { name: artifact, type, sha256: digests.get(artifact) ?? "" };
    add(`${artifact.replace(/\.tar.*/, "")}.cdx.json`, writeSbom(subject, [], facts));
  }
  add("berth-1.2.3.tgz", Buffer.from("a chart"));
  sealRelease(folder, digests, facts);
  return folder;
}

const read = (name: string): string => readFileSync(join(changed, name), "utf8");
const write = (name: string, text: string): void => writeFileSync(join(changed, name), text);
const remove = (name: string): void => rmSync(join(changed, name));
const replace = (name: string, from: string | RegExp, to: string): void => write(name, read(name).replace(from, to));

/** Writes a file as a mistaken publisher would: with its sum. */
function publish(name: string, text: string): void {
  write(name, text);
  const line = new RegExp(`^.*  ${name.replaceAll(".", "\\.")}$`, "m");
  replace("SHA256SUMS", line, `${sha256(Buffer.from(text))}  ${name}`);
}

function misname(): void {
  renameSync(join(changed, provenance), join(changed, "p.json"));
  replace("SHA256SUMS", provenance, "p.json");
}

let whole = "";
beforeAll(() => {
  whole = writeRelease("whole");
});

it("a release fits, and so does one with a signature of its sums", () => {
  expect(findProblems(whole)).toEqual([]);
  writeFileSync(join(whole, "SHA256SUMS.sigstore.json"), "{}");
  expect(findProblems(whole)).toEqual([]);
});

it.each(cases<() => void>`
  a changed byte ${() => replace(`${image}.tar`, "bytes", "bytez")} => ^berth-1.2.3-image-amd64.tar has the SHA-256
  a missing file ${() => remove("berth-1.2.3.tgz")} => ^berth-1\.2\.3\.tgz is missing
  a file more ${() => write("install.sh", "")} => ^install\.sh is not in SHA256SUMS$
  a link to nothing more ${() => symlinkSync("nowhere", join(changed, "link"))} => ^link is not in SHA256SUMS$
  missing sums ${() => remove("SHA256SUMS")} => ^SHA256SUMS is missing$
  a sum of a file elsewhere ${() => write("SHA256SUMS", `${"0".repeat(64)}  ../a\n`)} => ^SHA256SUMS has lines
  an artifact under another's name ${() => publish("berth-1.2.3.tgz", read(`${tarball}.tar.gz`))}
    => ^berth-1\.2\.3\.provenance\.json names berth-1\.2\.3\.tgz with SHA-256
  the SBOM of another file ${() => publish(`${image}.cdx.json`, read(`${tarball}.cdx.json`))}
    => ^berth-1\.2\.3-image-amd64\.cdx\.json is the SBOM of berth-1\.2\.3-linux-amd64\.tar\.gz .*, not of .*-image-amd64\.tar
  an SBOM that is none ${() => publish(`${image}.cdx.json`, "{}")} => -image-amd64\.cdx\.json names no artifact and
  no SBOM in the sums ${() => replace("SHA256SUMS", /^.*-linux-amd64\.cdx\.json\n/m, "")}
    => ^berth-1\.2\.3-linux-amd64\.tar\.gz has no SBOM: berth-1\.2\.3-linux-amd64\.cdx\.json is not in SHA256SUMS$
  no SBOM of a package in the sums ${() => replace("SHA256SUMS", /^.*\.deb\.cdx\.json\n/m, "")}
    => ^berth-1\.2\.3-linux-amd64\.deb has no SBOM: berth-1\.2\.3-linux-amd64\.deb\.cdx\.json is not in SHA256SUMS$
  an SBOM of no file ${() => replace("SHA256SUMS", /^.*-linux-amd64\.tar\.gz\n/m, "")}
    => ^berth-1\.2\.3-linux-amd64\.cdx\.json is the SBOM of no file
  provenance with another digest ${() => publish(provenance, read(provenance).replace(sha256(Buffer.from("a chart")), "0".repeat(64)))}
    => ^berth-1\.2\.3\.provenance\.json names berth-1\.2\.3\.tgz with SHA-256 0{64}, and SHA256SUMS says [0-9a-f]{64}$
  provenance without a file ${() => publish(provenance, read(provenance).replace(`"berth-1.2.3.tgz"`, `"berth-1.2.4.tgz"`))}
    => ^berth-1\.2\.3\.provenance\.json does not name berth-1\.2\.3\.tgz$
  provenance of a file that is not there ${() => publish(provenance, read(provenance).replace(`"berth-1.2.3.tgz"`, `"berth-1.2.4.tgz"`))}
    => ^berth-1\.2\.3\.provenance\.json names berth-1\.2\.4\.tgz, which is not released$
  provenance of another kind ${() => publish(provenance, read(provenance).replace("provenance/v1", "provenance/v0.2"))}
    => ^berth-1\.2\.3\.provenance\.json is no in-toto statement with SLSA's provenance$
  no provenance ${misname} => ^SHA256SUMS has 0 files \*\.provenance\.json, not one$
`)("%s is named", (_, change, problem) => {
  changed = mkdtempSync(join(directory, "changed-"));
  cpSync(whole, changed, { recursive: true });
  change();
  expect(findProblems(changed)).toContainEqual(expect.stringMatching(new RegExp(problem)));
});

it("`npm run verify` ends with 1 and the names of the faults", () => {
  const script = join(root, "scripts", "release", "verify.ts");
  const verify = () => spawnSync(process.execPath, [script, changed], { encoding: "utf8" });
  changed = writeRelease("verified");
  const good = { status: 0, stderr: "", stdout: `${changed} is as released: sums, SBOMs and provenance fit\n` };
  expect(verify()).toMatchObject(good);
  remove("berth-1.2.3.tgz");
  expect(verify()).toMatchObject({ status: 1, stderr: expect.stringContaining("berth-1.2.3.tgz is missing") });
});
