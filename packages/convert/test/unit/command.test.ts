/** The command lines of `berthctl convert` on files: their output, the files that they write, and their exit codes. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { runBerthctl } from "../../../../test/lab/berthctl.ts";
import { temporaryDirectory } from "../../../../test/world/temporary-directory.ts";

const directory = temporaryDirectory("berth-convert-");

const berthctl = (...words: readonly string[]) => runBerthctl("convert", ...words);

/** Writes a file with SpiderIPPools and returns its path. */
function poolsFile(name: string, ...specs: readonly object[]): string {
  const path = join(directory, name);
  const objects = specs.map((spec, at) => ({
    ...{ apiVersion: "spiderpool.spidernet.io/v2beta1", kind: "SpiderIPPool", metadata: { name: `p${at}` } },
    spec: { subnet: `10.${at}.0.0/24`, ...spec },
  }));
  writeFileSync(path, objects.map((object) => JSON.stringify(object)).join("\n---\n"));
  return path;
}

it("without --out manifests are on stdout and the report on stderr", async () => {
  const { code, out, error } = await berthctl("spiderpool", poolsFile("a.yaml", {}, {}));
  expect(parseAllDocuments(out).map((document) => document.toJS().metadata.name)).toEqual(["p0", "p1"]);
  expect([code, error]).toEqual([0, "Nothing is lost: 2 IPPool, 0 files for nodes, 0 patches, 0 addresses in use\n"]);
});

it("of an IPAM that is not there: 1", async () => {
  const text = "Nothing of spiderpool was found: 0 files for nodes, 0 patches, 0 addresses in use\n";
  expect(await berthctl("spiderpool", poolsFile("none.yaml"))).toMatchObject({ code: 1, error: text });
});

describe("with --ips", () => {
  const specsOf = (out: string) => parseAllDocuments(out).map((document) => document.toJS().spec);

  it("pools allocate only these addresses, which the other IPAM excludes, and others none", async () => {
    const pools = poolsFile("ips.yaml", { ips: ["10.0.0.10-10.0.0.99"], excludeIPs: ["10.0.0.64-10.0.0.99"] }, {});
    const { code, out, error } = await berthctl("spiderpool", pools, "--ips", "10.0.0.64/27", "10.0.0.100-10.0.0.120");
    expect(specsOf(out)).toEqual([
      { subnet: "10.0.0.0/24", ips: ["10.0.0.64-10.0.0.95", "10.0.0.100-10.0.0.120"] },
      { subnet: "10.1.0.0/24", excludeIPs: ["10.1.0.0-10.1.0.255"] },
    ]);
    expect([code, error]).toEqual([0, expect.stringContaining("Berth allocates none of it: --ips has none of it")]);
  });

  it("an address that the other IPAM would allocate too is a problem", async () => {
    const pools = poolsFile("both.yaml", { ips: ["10.0.0.10-10.0.0.99"] });
    const { code, error } = await berthctl("spiderpool", pools, "--ips", "10.0.0.90-10.0.0.110");
    const problem = "spiderpool allocates 10.0.0.90-10.0.0.99 as well as --ips would: exclude it there first";
    expect([code, error]).toEqual([1, expect.stringContaining(problem)]);
  });
});

describe("with --out", () => {
  it("a second conversion replaces the files of the first, and no others", async () => {
    const out = join(directory, "plan");
    expect((await berthctl("spiderpool", poolsFile("d.yaml", {}), "--out", out)).code).toBe(0);
    writeFileSync(join(out, "manifests", "mine.yaml"), "");
    const before = readFileSync(join(out, "manifests", "20-pools.yaml"), "utf8");
    await berthctl("spiderpool", poolsFile("d.yaml", {}), "--out", out);
    expect(readFileSync(join(out, "manifests", "20-pools.yaml"), "utf8")).toBe(before);
    await berthctl("spiderpool", poolsFile("e.yaml"), "--out", out);
    const files = readdirSync(out, { recursive: true, encoding: "utf8" }).sort();
    expect(files).toEqual([".berth-convert.json", "manifests", "manifests/mine.yaml", "report.json", "report.txt"]);
  });

  it("a list of files that leads elsewhere removes nothing", async () => {
    const out = join(directory, "led");
    const victim = join(directory, "victim");
    writeFileSync(victim, "");
    await berthctl("spiderpool", poolsFile("f.yaml", {}), "--out", out);
    writeFileSync(join(out, ".berth-convert.json"), JSON.stringify({ files: ["../victim"] }));
    await berthctl("spiderpool", poolsFile("f.yaml", {}), "--out", out);
    expect(readFileSync(victim, "utf8")).toBe("");
  });

  it("a directory that is a file is a usage error", async () => {
    const file = poolsFile("g.yaml", {});
    const { code, error } = await berthctl("spiderpool", file, "--out", file);
    expect([code, error]).toEqual([2, expect.stringContaining("Option --out: ")]);
  });
});

it.each<[words: string[], error: RegExp]>([
  [["spiderpool"], /Name files or directories, or with --kubeconfig or --context a cluster/],
  [["spiderpool", "/no/such.yaml"], /File "\/no\/such.yaml" cannot be read: ENOENT/],
  [["spiderpool", "/dev/null", "--apply"], /--apply needs a cluster/],
  [["spiderpool", "/dev/null", "--patch", "all"], /--patch needs --apply/],
  [["spiderpool", "/dev/null", "--suffix", "_x"], /Option --suffix: found "_x"/],
  [["spiderpool", "/dev/null", "--ips", "x"], /Option --ips: found "x", want first-last or a network/],
  [["flannel"], /Allowed choices are spiderpool, whereabouts, host-local, calico/],
])("%j is a usage error", async (words, error) => {
  const ending = await berthctl(...words);
  expect([ending.code, ending.error]).toEqual([2, expect.stringMatching(error)]);
});
