import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import { MAX_MANIFEST_BYTES, ManifestDirectory } from "../../../../host/agent/embedded/manifest-directory.ts";
import { RoutersInUse } from "../../../../host/agent/embedded/routers-in-use.ts";
import { formatIp } from "../../../../host/net/ip.ts";
import { recordLog, until } from "../../../world/recorded-log.ts";
import { ipPool } from "../../../world/subjects.ts";

const poolAt = (name: string, index: number): string =>
  `apiVersion: ipam.vendor.io/v1\nkind: IPPool\nmetadata: {name: ${name}}\nspec: {subnet: 10.${index}.0.0/24}\n`;
const poolText = (...names: string[]): string => names.map(poolAt).join("---\n");
const B = poolAt("b", 1);

let path: string;
let directory: ManifestDirectory;
let lines: string[];
let count = 0;

/** The directory has these files when an agent starts. */
function given(files: Record<string, string>): void {
  path = join(mkdtempSync(join(tmpdir(), "berth-config-")), "config");
  mkdirSync(path);
  for (const [name, text] of Object.entries(files)) put(name, text);
  const recorded = recordLog();
  [lines, count] = [recorded.lines, 0];
  directory = new ManifestDirectory(path, recorded.log, () => count++);
}
afterEach(() => {
  directory.close();
  rmSync(join(path, ".."), { recursive: true, force: true });
});

function put(name: string, text: string): void {
  writeFileSync(join(path, "..", "new"), text);
  renameSync(join(path, "..", "new"), join(path, name));
}

const changes = (): number => count;
const pools = (): string[] => [...directory.state.snapshot.pools.keys()].sort();

/** Waits until these are the pools. */
async function becomes(...names: string[]): Promise<void> {
  await until(() => pools().join() === names.join());
  expect(pools()).toEqual(names);
}

const withGateway = (gateway: string, ...names: string[]): string =>
  poolText(...names).replaceAll(/10\.(\d+)\.0\.0\/24/g, `10.$1.0.0/24, gateway: 10.$1.0.${gateway}`);

describe("a file with values that an earlier release accepted", () => {
  const problems = (state: ManifestDirectory["state"]) => [...state.problems, ...state.snapshot.problems];
  const complaint = (name: string) =>
    expect.stringMatching(`IPPool "${name}".*field "spec.gateway": found "10.0.0.255"`);

  it("serves as before after a restart, and the pool reports them", async () => {
    given({ "a.yaml": withGateway("255", "a"), "b.yaml": B });
    expect([pools(), directory.state.complete]).toEqual([["a", "b"], true]);
    expect(problems(directory.state)).toEqual([complaint("a")]);
  });

  it("may change in everything else, and not get another such value", async () => {
    given({ "a.yaml": withGateway("255", "a") });
    put("a.yaml", `${withGateway("255", "a")}---\n${B}`);
    await becomes("a", "b");
    expect(problems(directory.state)).toEqual([complaint("a")]);
    put("a.yaml", withGateway("255", "a", "b", "c"));
    await until(() => directory.state.problems.length > 0);
    expect(problems(directory.state)).toEqual([
      expect.stringMatching(/^a\.yaml, line \d+, IPPool "b": field "spec\.gateway": found "10\.1\.0\.255"/),
      complaint("a"),
    ]);
    await becomes("a", "b");
    put("a.yaml", withGateway("1", "a", "b", "c"));
    await becomes("a", "b", "c");
    expect(problems(directory.state)).toEqual([]);
  });

  it("that comes while the agent runs is invalid", async () => {
    given({ "a.yaml": poolText("a") });
    put("b.yaml", withGateway("255", "b"));
    await until(() => !directory.state.complete);
    expect(pools()).toEqual(["a"]);
    expect(problems(directory.state)).toEqual([complaint("b")]);
  });

  it("that has nothing else to give is refused alone", () => {
    const loop = poolText("loop").replace("10.0.0.0/24", "127.10.0.0/24");
    given({ "a.yaml": `${loop}---\n${B}` });
    expect([pools(), directory.state.complete]).toEqual([["b"], true]);
    expect(problems(directory.state)).toEqual([
      expect.stringMatching(/^IPPool "loop" is refused: field "spec.subnet": found "127.10.0.0\/24"/),
    ]);
  });
});

it("the former gateway of a pool that gets another name is held back until no pod has it", () => {
  given({ "a.yaml": withGateway("1", "a") });
  rmSync(join(path, "a.yaml"));
  directory.flush();
  put("b.yaml", withGateway("254", "a").replace("name: a", "name: z"));
  directory.flush();
  const held = () => [...directory.state.snapshot.pools.values()].map(({ spec }) => spec.formerRouters?.map(formatIp));
  expect(held()).toEqual([["10.0.0.1"]]);
  directory.holdRouters(new RoutersInUse());
  expect(held()).toEqual([undefined]);
});

describe("the manifest directory", () => {
  it("reads YAML and JSON, and neither hidden files nor others", () => {
    const json = JSON.stringify(ipPool("j", "10.9.0.0/24"));
    const others = { ".b.yaml": poolText("b"), "c.yaml~": poolText("c"), "d.txt": "x" };
    given({ "a.yaml": poolText("a"), "j.json": json, ...others });
    expect(pools()).toEqual(["a", "j"]);
    expect(directory.state).toMatchObject({ problems: [], complete: true });
  });

  it("reads at once files complete before the request, without a turn of the event loop, and nothing otherwise", async () => {
    given({ "a.yaml": poolText("a") });
    directory.flush();
    expect(changes()).toBe(0);
    put("a.yaml", poolText("z"));
    directory.flush();
    expect([pools(), changes()]).toEqual([["z"], 1]);
    directory.flush();
    expect(changes()).toBe(1);
  });

  it("a file that goes bad keeps its last content and is told once", async () => {
    given({ "a.yaml": poolText("a") });
    put("a.yaml", "kind: [");
    await until(() => directory.state.problems.length === 1);
    expect([pools(), directory.state.complete]).toEqual([["a"], true]);
    put("other.yaml", "");
    put("a.yaml", poolText("a", "b"));
    await becomes("a", "b");
    expect(directory.state.problems).toEqual([]);
    expect(lines).toEqual(["warn A manifest is invalid; its last valid version stays in effect"]);
  });

  it("a file that is rewritten in place keeps its pools while it is empty, and ends them when it stays so", async () => {
    given({ "a.yaml": poolText("a"), "b.yaml": B });
    const empty = async (): Promise<void> => {
      const before = changes();
      writeFileSync(join(path, "a.yaml"), "");
      await until(() => changes() > before);
    };
    await empty();
    expect([pools(), directory.state.problems]).toEqual([["a", "b"], []]);
    writeFileSync(join(path, "a.yaml"), poolText("a", "-", "c").replace("name: -", "name: z"));
    await becomes("a", "b", "c", "z");
    await empty();
    expect(pools()).toEqual(["a", "b", "c", "z"]);
    await becomes("b");
  });

  const NOT_REGULAR = 'File "x.yaml": it is not a regular file';
  const TOO_LARGE = `it has ${MAX_MANIFEST_BYTES + 1} bytes, at most ${MAX_MANIFEST_BYTES} are read`;
  const makeLarge = (path: string): void => {
    writeFileSync(path, "");
    truncateSync(path, MAX_MANIFEST_BYTES + 1);
  };
  it.each<[what: string, make: (path: string) => unknown, text: string]>([
    ["a directory", (path) => mkdirSync(path), NOT_REGULAR],
    ["a pipe without a writer", (path) => execFileSync("mkfifo", [path]), NOT_REGULAR],
    ["a link to an endless file", (path) => symlinkSync("/dev/zero", path), NOT_REGULAR],
    ["a link to nothing", (path) => symlinkSync("nothing", path), 'File "x.yaml": ENOENT'],
    ["a file that is too large", makeLarge, TOO_LARGE],
  ])("%s is a problem, and gone when an empty file takes its place", async (_what, make, text) => {
    given({ "a.yaml": poolText("a") });
    make(join(path, "x.yaml"));
    await until(() => directory.state.problems.length > 0);
    expect(directory.state.problems.join()).toContain(text);
    expect([pools(), directory.state.complete]).toEqual([["a"], false]);
    rmSync(join(path, "x.yaml"), { recursive: true });
    put("x.yaml", "");
    await until(() => directory.state.complete);
    expect(directory.state.problems).toEqual([]);
  });

  it("follows a ConfigMap volume, whose files are links into a folder that is exchanged", async () => {
    given({});
    const publish = (folder: string, text: string): void => {
      mkdirSync(join(path, folder));
      writeFileSync(join(path, folder, "pools.yaml"), text);
      symlinkSync(folder, join(path, "..data_tmp"));
      renameSync(join(path, "..data_tmp"), join(path, "..data"));
    };
    publish("..v1", poolText("one"));
    symlinkSync("..data/pools.yaml", join(path, "pools.yaml"));
    await becomes("one");
    publish("..v2", poolText("two"));
    rmSync(join(path, "..v1"), { recursive: true });
    await becomes("two");
    publish("..v3", poolText("two", "three"));
    await becomes("three", "two");
  });

  it("keeps its manifests while the directory is gone, and finds it made anew", { timeout: 20_000 }, async () => {
    given({ "a.yaml": poolText("a") });
    rmSync(path, { recursive: true });
    await until(() => directory.state.problems.length > 0);
    expect(directory.state.problems.join()).toContain(`Directory ${path} cannot be read: ENOENT`);
    expect([pools(), directory.state.complete]).toEqual([["a"], true]);
    mkdirSync(path);
    put("b.yaml", poolText("b"));
    await until(() => pools().join() === "b");
    expect([pools(), directory.state.problems]).toEqual([["b"], []]);
    put("b.yaml", poolText("b", "c"));
    await until(() => pools().length === 2);
    expect(lines).toHaveLength(1);
    // At once, maybe under the same inode.
    rmSync(path, { recursive: true });
    mkdirSync(path);
    put("d.yaml", poolText("d"));
    await becomes("d");
    // Of a folder above it there is no notice.
    const above = join(path, "..");
    renameSync(above, `${above}-old`);
    mkdirSync(path, { recursive: true });
    put("e.yaml", poolText("e"));
    await becomes("e");
    put("f.yaml", poolAt("f", 1));
    await becomes("e", "f");
    rmSync(`${above}-old`, { recursive: true });
  });

  it("a ReservedIP is in force again when the clock is set back to before its end", { timeout: 20_000 }, async () => {
    const reserved = "ReservedIP$1{ips: [10.0.0.9], until: 2100-01-01T00:00:00Z}";
    given({ "r.yaml": poolAt("r", 0).replace(/IPPool((?:.|\n)*spec: ).*/, reserved) });
    const inForce = (): number => directory.state.snapshot.reserved.length;
    expect(inForce()).toBe(1);
    using _ = vi.spyOn(Date, "now").mockReturnValue(Date.UTC(2101));
    await until(() => inForce() === 0);
    vi.restoreAllMocks();
    await until(() => inForce() === 1);
  });

  it("a directory that was never there is not complete", () => {
    directory = new ManifestDirectory(join(tmpdir(), "berth-config-never"), recordLog().log, () => {});
    expect(directory.state.complete).toBe(false);
    expect(directory.state.problems.join()).toContain("cannot be read");
  });
});
