import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { MAX_MANIFEST_BYTES, ManifestDirectory } from "../../../../host/agent/embedded/manifest-directory.ts";
import { recordLog, until } from "../../../world/recorded-log.ts";

function poolText(...names: string[]): string {
  const one = (name: string, index: number) =>
    `apiVersion: ipam.vendor.io/v1\nkind: IPPool\nmetadata: {name: ${name}}\nspec: {subnet: 10.${index}.0.0/24}\n`;
  return names.map(one).join("---\n");
}

interface World {
  readonly path: string;
  readonly directory: ManifestDirectory;
  readonly lines: string[];
  readonly changes: () => number;
  put(name: string, text: string): void;
  pools(): string[];
  /** Waits until these are the pools. */
  becomes(...names: string[]): Promise<void>;
}

async function withDirectory(files: Record<string, string>, test: (world: World) => Promise<void>): Promise<void> {
  const place = mkdtempSync(join(tmpdir(), "berth-config-"));
  const path = join(place, "config");
  mkdirSync(path);
  const put = (name: string, text: string): void => {
    writeFileSync(join(place, "new"), text);
    renameSync(join(place, "new"), join(path, name));
  };
  for (const [name, text] of Object.entries(files)) put(name, text);
  const { log, lines } = recordLog();
  let changes = 0;
  const directory = new ManifestDirectory(path, log, () => changes++);
  const pools = (): string[] => [...directory.state.snapshot.pools.keys()].sort();
  const becomes = async (...names: string[]): Promise<void> => {
    await until(() => pools().join() === names.join());
    expect(pools()).toEqual(names);
  };
  try {
    await test({ path, directory, lines, changes: () => changes, put, pools, becomes });
  } finally {
    directory.close();
    rmSync(place, { recursive: true, force: true });
  }
}

const withGateway = (gateway: string, ...names: string[]): string =>
  poolText(...names).replaceAll(/10\.(\d+)\.0\.0\/24/g, `10.$1.0.0/24, gateway: 10.$1.0.${gateway}`);

describe("a file with values that an earlier release accepted", () => {
  const problems = (state: ManifestDirectory["state"]) => [...state.problems, ...state.snapshot.problems];
  const complaint = (name: string) =>
    expect.stringMatching(`IPPool "${name}".*field "spec.gateway": found "10.0.0.255"`);

  it("serves as before after a restart, and the pool reports them", () =>
    withDirectory(
      { "a.yaml": withGateway("255", "a"), "b.yaml": poolText("-", "b").split("---\n")[1] ?? "" },
      async ({ pools, directory }) => {
        expect([pools(), directory.state.complete]).toEqual([["a", "b"], true]);
        expect(problems(directory.state)).toEqual([complaint("a")]);
      },
    ));

  it("may change in everything else, and not get another such value", () =>
    withDirectory({ "a.yaml": withGateway("255", "a") }, async ({ put, directory, becomes }) => {
      put("a.yaml", `${withGateway("255", "a")}---\n${poolText("-", "b").split("---\n")[1]}`);
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
    }));

  it("that comes while the agent runs is invalid", () =>
    withDirectory({ "a.yaml": poolText("a") }, async ({ put, directory, pools }) => {
      put("b.yaml", withGateway("255", "b"));
      await until(() => !directory.state.complete);
      expect(pools()).toEqual(["a"]);
      expect(problems(directory.state)).toEqual([complaint("b")]);
    }));

  it("that has nothing else to give is refused alone", () => {
    const loop = poolText("loop").replace("10.0.0.0/24", "127.10.0.0/24");
    return withDirectory(
      { "a.yaml": `${loop}---\n${poolText("-", "b").split("---\n")[1]}` },
      async ({ pools, directory }) => {
        expect([pools(), directory.state.complete]).toEqual([["b"], true]);
        expect(problems(directory.state)).toEqual([
          expect.stringMatching(/^IPPool "loop" is refused: field "spec.subnet": found "127.10.0.0\/24"/),
        ]);
      },
    );
  });
});

describe("the manifest directory", () => {
  it("reads YAML and JSON, and neither hidden files nor others", () => {
    const json = JSON.stringify({
      apiVersion: "ipam.vendor.io/v1",
      kind: "IPPool",
      metadata: { name: "j" },
      spec: { subnet: "10.9.0.0/24" },
    });
    return withDirectory(
      { "a.yaml": poolText("a"), "j.json": json, ".b.yaml": poolText("b"), "c.yaml~": poolText("c"), "d.txt": "x" },
      async ({ pools, directory }) => {
        expect(pools()).toEqual(["a", "j"]);
        expect(directory.state).toMatchObject({ problems: [], complete: true });
      },
    );
  });

  it("follows what is written and removed", () =>
    withDirectory({ "a.yaml": poolText("a") }, async ({ path, put, becomes }) => {
      put("b.yaml", poolText("-", "b").split("---\n")[1] ?? "");
      await becomes("a", "b");
      rmSync(join(path, "a.yaml"));
      await becomes("b");
    }));

  it("reads at once what was complete before it is asked for, without a turn of the event loop, and nothing otherwise", () =>
    withDirectory({ "a.yaml": poolText("a") }, async ({ directory, put, pools, changes }) => {
      directory.flush();
      expect(changes()).toBe(0);
      put("a.yaml", poolText("z"));
      directory.flush();
      expect([pools(), changes()]).toEqual([["z"], 1]);
      directory.flush();
      expect(changes()).toBe(1);
    }));

  it("reads at once a change, without a turn of the event loop, and once", () =>
    withDirectory({ "a.yaml": poolText("a") }, async ({ directory, put, pools, changes }) => {
      directory.flush();
      put("a.yaml", poolText("z"));
      for (const _ of [1, 2]) directory.flush();
      expect([pools(), changes()]).toEqual([["z"], 1]);
    }));

  it("a file that goes bad keeps what it said and is told once", () =>
    withDirectory({ "a.yaml": poolText("a") }, async ({ directory, put, pools, lines, becomes }) => {
      put("a.yaml", "kind: [");
      await until(() => directory.state.problems.length === 1);
      expect([pools(), directory.state.complete]).toEqual([["a"], true]);
      put("other.yaml", "");
      put("a.yaml", poolText("a", "b"));
      await becomes("a", "b");
      expect(directory.state.problems).toEqual([]);
      expect(lines).toEqual(["warn A manifest is invalid; its last valid version stays in effect"]);
    }));

  it("a file that is rewritten in place keeps its pools while it is empty, and ends them when it stays so", () =>
    withDirectory({ "a.yaml": poolText("a"), "b.yaml": poolText("-", "b").split("---\n")[1] ?? "" }, async (world) => {
      const { path, directory, pools, changes, becomes } = world;
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
    }));

  it("a file that was never valid makes it incomplete, until it is fixed", () =>
    withDirectory({ "a.yaml": poolText("a"), "b.yaml": "kind: IPPool\n" }, async ({ directory, put, becomes }) => {
      expect(directory.state.complete).toBe(false);
      expect(directory.state.problems.join()).toContain("b.yaml");
      put("b.yaml", "");
      await until(() => directory.state.complete);
      expect(directory.state.problems).toEqual([]);
      await becomes("a");
    }));

  const unreadable: [what: string, make: (path: string) => void, text: string][] = [
    ["a directory", (path) => mkdirSync(path), 'File "x.yaml": it is not a regular file'],
    ["a pipe without a writer", (path) => execFileSync("mkfifo", [path]), 'File "x.yaml": it is not a regular file'],
    ["a link to an endless file", (path) => symlinkSync("/dev/zero", path), 'File "x.yaml": it is not a regular file'],
    ["a link to nothing", (path) => symlinkSync("nothing", path), 'File "x.yaml": ENOENT'],
    [
      "a file that is too large",
      (path) => {
        writeFileSync(path, "");
        truncateSync(path, MAX_MANIFEST_BYTES + 1);
      },
      `it has ${MAX_MANIFEST_BYTES + 1} bytes, at most ${MAX_MANIFEST_BYTES} are read`,
    ],
  ];
  it.each(unreadable)("%s is a problem, and gone when an empty file takes its place", (_what, make, text) =>
    withDirectory({ "a.yaml": poolText("a") }, async ({ path, directory, put, pools }) => {
      make(join(path, "x.yaml"));
      await until(() => directory.state.problems.length > 0);
      expect(directory.state.problems.join()).toContain(text);
      expect([pools(), directory.state.complete]).toEqual([["a"], false]);
      rmSync(join(path, "x.yaml"), { recursive: true });
      put("x.yaml", "");
      await until(() => directory.state.complete);
      expect(directory.state.problems).toEqual([]);
    }),
  );

  it("follows a ConfigMap volume, whose files are links into a folder that is exchanged", () =>
    withDirectory({}, async ({ path, becomes }) => {
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
    }));

  it("keeps what it knew while the directory is gone, and finds it when it is made anew", { timeout: 20_000 }, () =>
    withDirectory({ "a.yaml": poolText("a") }, async ({ path, directory, put, pools, lines }) => {
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
    }),
  );

  it(
    "a directory exchanged at once, under the same inode if the file system likes, is followed",
    { timeout: 20_000 },
    () =>
      withDirectory({ "a.yaml": poolText("a") }, async ({ path, put, pools }) => {
        rmSync(path, { recursive: true });
        mkdirSync(path);
        put("b.yaml", poolText("b"));
        await until(() => pools().join() === "b");
        put("c.yaml", poolText("-", "c").split("---\n")[1] ?? "");
        await until(() => pools().join() === "b,c");
      }),
  );

  it("a directory that was never there is not complete", async () => {
    const { log } = recordLog();
    const directory = new ManifestDirectory(join(tmpdir(), "berth-config-never"), log, () => {});
    expect(directory.state.complete).toBe(false);
    expect(directory.state.problems.join()).toContain("cannot be read");
    directory.close();
  });

  it("of two resources of one name the first file's counts, as a problem of the snapshot", () =>
    withDirectory(
      { "a.yaml": poolText("same"), "b.yaml": poolText("-", "same").split("---\n")[1] ?? "" },
      async ({ directory }) => {
        expect(directory.state.snapshot.problems).toEqual([
          'IPPool "same" of b.yaml is ignored: a.yaml has one of that name too',
        ]);
      },
    ));
});
