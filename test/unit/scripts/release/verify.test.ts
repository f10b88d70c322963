/**
 * A signed release fits what it says of itself, and whatever is changed in it is named. That minisign agrees:
 * test/long/release-artifacts.test.ts.
 */
import { spawnSync } from "node:child_process";
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { cpSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { findProblems } from "../../../../scripts/release/find-problems.ts";
import { writeSbom } from "../../../../scripts/release/inventory/sbom.ts";
import { parsePublicKey, parseSecretKey, writeSignature } from "../../../../scripts/release/minisign.ts";
import { sealRelease } from "../../../../scripts/release/seal.ts";
import { sha256 } from "../../../../scripts/release/sources.ts";
import { root } from "../../../../scripts/setup/paths.mjs";

const facts = { version: "1.2.3", description: "a release", revision: "0".repeat(40), timeSeconds: 1_700_000_000 };
const image = "berth-1.2.3-image-amd64";
const tarball = "berth-1.2.3-linux-amd64";
const provenance = "berth-1.2.3.provenance.json";
const directory = mkdtempSync(join(tmpdir(), "berth-verify-"));
const publisher = makeKey();
const other = makeKey();
let changed = "";

/** A key pair as `minisign -G -W` makes it. */
function makeKey() {
  const { d = "", x = "" } = generateKeyPairSync("ed25519").privateKey.export({ format: "jwk" });
  const [id, seed, point] = [randomBytes(8), Buffer.from(d, "base64url"), Buffer.from(x, "base64url")];
  const file = (...parts: readonly Uint8Array[]) => `untrusted comment:\n${Buffer.concat(parts).toString("base64")}\n`;
  return {
    public: file(Buffer.from("Ed"), id, point),
    secret: file(Buffer.from("Ed\0\0B2"), Buffer.alloc(48), id, seed, point, Buffer.alloc(32)),
  };
}

function writeRelease(name: string, key?: typeof publisher): string {
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
  sealRelease(folder, digests, facts, key && parseSecretKey(key.secret, undefined));
  return folder;
}

const read = (name: string): string => readFileSync(join(changed, name), "utf8");
const write = (name: string, text: string): void => writeFileSync(join(changed, name), text);
const remove = (name: string): void => rmSync(join(changed, name));
const replace = (name: string, from: string | RegExp, to: string): void => write(name, read(name).replace(from, to));

/** Writes a file as a publisher would who has made a mistake: with its sum, and signed. */
function publish(name: string, text: string): void {
  write(name, text);
  replace(
    "SHA256SUMS",
    new RegExp(`^.*  ${name.replaceAll(".", "\\.")}$`, "m"),
    `${sha256(Buffer.from(text))}  ${name}`,
  );
  for (const file of [name, "SHA256SUMS"])
    write(
      `${file}.minisig`,
      writeSignature(Buffer.from(read(file)), parseSecretKey(publisher.secret, undefined), `${file} of`),
    );
}

let signed = "";
beforeAll(() => {
  signed = writeRelease("signed", publisher);
});
afterAll(() => rmSync(directory, { recursive: true }));

it("a signed release fits, and has the sums of one that is not signed", () => {
  expect(findProblems(signed, parsePublicKey(publisher.public))).toEqual([]);
  const unsigned = writeRelease("unsigned");
  expect(findProblems(unsigned, undefined)).toEqual([]);
  expect(readFileSync(join(unsigned, "SHA256SUMS"))).toEqual(readFileSync(join(signed, "SHA256SUMS")));
  expect(findProblems(unsigned, parsePublicKey(publisher.public))).toContain(
    "SHA256SUMS is not signed: SHA256SUMS.minisig is missing",
  );
});

it("the same release and key give the same signatures", () => {
  const again = writeRelease("again", publisher);
  const signature = `${image}.tar.minisig`;
  expect(readFileSync(join(again, signature), "utf8")).toBe(readFileSync(join(signed, signature), "utf8"));
});

it.each<[title: string, change: () => void, problem: RegExp]>([
  ["a changed byte", () => replace(`${image}.tar`, "bytes", "bytez"), /^berth-1.2.3-image-amd64.tar has the SHA-256 /],
  [
    "a changed byte whose sum is changed too",
    () => {
      replace("berth-1.2.3.tgz", "chart", "trap");
      replace("SHA256SUMS", /^.*(?= {2}berth-1\.2\.3\.tgz)/m, sha256(Buffer.from(read("berth-1.2.3.tgz"))));
    },
    /^SHA256SUMS\.minisig is no signature of this SHA256SUMS by key \w{16}$/,
  ],
  ["a missing file", () => remove("berth-1.2.3.tgz"), /^berth-1\.2\.3\.tgz is missing/],
  ["a file more", () => write("install.sh", ""), /^install\.sh is not in SHA256SUMS$/],
  ["a link to nothing more", () => symlinkSync("nowhere", join(changed, "link")), /^link is not in SHA256SUMS$/],
  ["missing sums", () => remove("SHA256SUMS"), /^SHA256SUMS is missing$/],
  ["a sum of a file elsewhere", () => write("SHA256SUMS", `${"0".repeat(64)}  ../a\n`), /^SHA256SUMS has lines /],
  [
    "a missing signature",
    () => remove(`${tarball}.tar.gz.minisig`),
    /^berth-1\.2\.3-linux-amd64\.tar\.gz is not signed: .*\.minisig is missing$/,
  ],
  [
    "a missing signature of an SBOM",
    () => remove(`${image}.cdx.json.minisig`),
    /^berth-1\.2\.3-image-amd64\.cdx\.json is not signed/,
  ],
  ["no signature", () => write(`${provenance}.minisig`, "hello"), /provenance\.json\.minisig is no signature in/],
  [
    "a signature of another file",
    () => cpSync(join(changed, `${tarball}.tar.gz.minisig`), join(changed, `${image}.tar.minisig`)),
    /^berth-1\.2\.3-image-amd64\.tar\.minisig is no signature of this berth-1\.2\.3-image-amd64\.tar by key/,
  ],
  [
    "a changed comment of a signature",
    () => replace("SHA256SUMS.minisig", "1.2.3", "1.2.4"),
    /^SHA256SUMS\.minisig is no signature of this SHA256SUMS/,
  ],
  [
    "an artifact under another's name",
    () => publish("berth-1.2.3.tgz", read(`${tarball}.tar.gz`)),
    /^berth-1\.2\.3\.provenance\.json names berth-1\.2\.3\.tgz with SHA-256 /,
  ],
  [
    "a signature that is for another name",
    () => {
      const key = parseSecretKey(publisher.secret, undefined);
      write("berth-1.2.3.tgz.minisig", writeSignature(Buffer.from(read("berth-1.2.3.tgz")), key, "berth-1.2.2.tgz of"));
    },
    /^berth-1\.2\.3\.tgz\.minisig is of another file: berth-1\.2\.2\.tgz of$/,
  ],
  [
    "another key",
    () => {
      changed = writeRelease("other", other);
    },
    /^SHA256SUMS\.minisig is by key \w{16}, not by \w{16}$/,
  ],
  [
    "another key with the publisher's ID",
    () => {
      const key = { ...parseSecretKey(other.secret, undefined), id: parsePublicKey(publisher.public).id };
      write("berth-1.2.3.tgz.minisig", writeSignature(Buffer.from(read("berth-1.2.3.tgz")), key, "berth-1.2.3.tgz of"));
    },
    /^berth-1\.2\.3\.tgz\.minisig is no signature of this berth-1\.2\.3\.tgz by key/,
  ],
  [
    "the SBOM of another file",
    () => publish(`${image}.cdx.json`, read(`${tarball}.cdx.json`)),
    /^berth-1\.2\.3-image-amd64\.cdx\.json is the SBOM of berth-1\.2\.3-linux-amd64\.tar\.gz .*, not of .*-image-amd64\.tar /,
  ],
  ["an SBOM that is none", () => publish(`${image}.cdx.json`, "{}"), /-image-amd64\.cdx\.json names no artifact and/],
  [
    "no SBOM in the sums",
    () => replace("SHA256SUMS", /^.*-linux-amd64\.cdx\.json\n/m, ""),
    /^berth-1\.2\.3-linux-amd64\.tar\.gz has no SBOM: berth-1\.2\.3-linux-amd64\.cdx\.json is not in SHA256SUMS$/,
  ],
  [
    "no SBOM of a package in the sums",
    () => replace("SHA256SUMS", /^.*\.deb\.cdx\.json\n/m, ""),
    /^berth-1\.2\.3-linux-amd64\.deb has no SBOM: berth-1\.2\.3-linux-amd64\.deb\.cdx\.json is not in SHA256SUMS$/,
  ],
  [
    "an SBOM of no file",
    () => replace("SHA256SUMS", /^.*-linux-amd64\.tar\.gz\n/m, ""),
    /^berth-1\.2\.3-linux-amd64\.cdx\.json is the SBOM of no file/,
  ],
  [
    "provenance with another digest",
    () => publish(provenance, read(provenance).replace(sha256(Buffer.from("a chart")), "0".repeat(64))),
    /^berth-1\.2\.3\.provenance\.json names berth-1\.2\.3\.tgz with SHA-256 0{64}, and SHA256SUMS says [0-9a-f]{64}$/,
  ],
  [
    "provenance without a file",
    () => publish(provenance, read(provenance).replace(`"berth-1.2.3.tgz"`, `"berth-1.2.4.tgz"`)),
    /^berth-1\.2\.3\.provenance\.json does not name berth-1\.2\.3\.tgz$/,
  ],
  [
    "provenance of a file that is not there",
    () => publish(provenance, read(provenance).replace(`"berth-1.2.3.tgz"`, `"berth-1.2.4.tgz"`)),
    /^berth-1\.2\.3\.provenance\.json names berth-1\.2\.4\.tgz, which is not released$/,
  ],
  [
    "provenance of another kind",
    () => publish(provenance, read(provenance).replace("provenance/v1", "provenance/v0.2")),
    /^berth-1\.2\.3\.provenance\.json is no in-toto statement with SLSA's provenance$/,
  ],
  [
    "no provenance",
    () => {
      renameSync(join(changed, provenance), join(changed, "p.json"));
      replace("SHA256SUMS", provenance, "p.json");
    },
    /^SHA256SUMS has 0 files \*\.provenance\.json, not one$/,
  ],
])("%s is named", (_, change, problem) => {
  changed = mkdtempSync(join(directory, "changed-"));
  cpSync(signed, changed, { recursive: true });
  change();
  expect(findProblems(changed, parsePublicKey(publisher.public))).toContainEqual(expect.stringMatching(problem));
});

it("`npm run verify` ends with 1 and the names of what is wrong", () => {
  const keyFile = join(directory, "berth.pub");
  writeFileSync(keyFile, publisher.public);
  const verify = (...args: string[]) => {
    const script = join(root, "scripts", "release", "verify.ts");
    return spawnSync(process.execPath, [script, ...args], { encoding: "utf8" });
  };
  const good = verify(signed, "--key", keyFile);
  expect(good.stderr).toBe("");
  expect([good.status, good.stdout]).toEqual([0, expect.stringMatching(/ checked all signatures by key \w{16}\n$/)]);
  const unsigned = writeRelease("unsigned");
  expect(verify(unsigned)).toMatchObject({ status: 1, stderr: expect.stringMatching(/^No public key: /) });
  const bad = verify(unsigned, "--key", keyFile);
  expect([bad.status, bad.stderr]).toEqual([1, expect.stringContaining("SHA256SUMS is not signed")]);
});
