import {
  appendFileSync,
  chmodSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { DirectoryNotices, LOOK_ANYWAY_MS } from "../../../host/kernel/directory-notices.ts";

interface World {
  /** Watched, with the files a and b and the folder c. */
  readonly path: string;
  readonly notices: DirectoryNotices;
  readonly clock: { ms: number };
}

function withNotices(test: (world: World) => void): void {
  const above = mkdtempSync(join(tmpdir(), "berth-notices-"));
  const path = join(above, "watched");
  try {
    mkdirSync(join(path, "c"), { recursive: true });
    for (const name of ["a", "b"]) writeFileSync(join(path, name), "text");
    const clock = { ms: 5 };
    const notices = new DirectoryNotices(path, { nowMs: () => clock.ms });
    expect([notices.mayHaveChanged(), notices.mayHaveChanged()]).toEqual([true, false]);
    test({ path, notices, clock });
  } finally {
    rmSync(above, { recursive: true, force: true });
  }
}

describe("a directory may have changed, once", () => {
  const rows: [change: string, make: (path: string) => void][] = [
    ["a new file", (path) => writeFileSync(join(path, "new"), "")],
    ["a new folder", (path) => mkdirSync(join(path, "new"))],
    ["a new symbolic link", (path) => symlinkSync("a", join(path, "new"))],
    ["a new name of a file", (path) => linkSync(join(path, "a"), join(path, "new"))],
    ["a file written anew", (path) => writeFileSync(join(path, "a"), "text")],
    ["a longer file", (path) => appendFileSync(join(path, "a"), "more")],
    ["a shorter file", (path) => truncateSync(join(path, "a"), 1)],
    ["another mode", (path) => chmodSync(join(path, "a"), 0o600)],
    ["another time", (path) => utimesSync(join(path, "a"), 1, 1)],
    ["a file removed", (path) => rmSync(join(path, "a"))],
    ["a file over another", (path) => renameSync(join(path, "a"), join(path, "b"))],
    ["a file that leaves", (path) => renameSync(join(path, "a"), join(path, "..", "a"))],
    [
      "a file that comes",
      (path) => {
        writeFileSync(join(path, "..", "new"), "");
        renameSync(join(path, "..", "new"), join(path, "new"));
      },
    ],
  ];
  it.each(rows)("%s", (_change, make) =>
    withNotices(({ path, notices }) => {
      make(path);
      expect([notices.mayHaveChanged(), notices.mayHaveChanged()]).toEqual([true, false]);
    }),
  );

  it("after more changes than the kernel keeps", () =>
    withNotices(({ path, notices }) => {
      const most = Number(readFileSync("/proc/sys/fs/inotify/max_queued_events", "utf8"));
      for (let count = 0; count <= most; count++) utimesSync(join(path, count % 2 === 0 ? "a" : "b"), 1, 1);
      expect([notices.mayHaveChanged(), notices.mayHaveChanged()]).toEqual([true, false]);
    }));

  it("for each who asks", () =>
    withNotices(({ path, notices }) => {
      const other = new DirectoryNotices(path);
      other.mayHaveChanged();
      writeFileSync(join(path, "a"), "text");
      expect([notices, other].map((each) => each.mayHaveChanged())).toEqual([true, true]);
      expect([notices, other].map((each) => each.mayHaveChanged())).toEqual([false, false]);
    }));

  it("when it was removed and made anew, and then for what happens in the new one", () =>
    withNotices(({ path, notices }) => {
      rmSync(path, { recursive: true });
      expect([notices.mayHaveChanged(), notices.mayHaveChanged()]).toEqual([true, true]);
      mkdirSync(path);
      expect([notices.mayHaveChanged(), notices.mayHaveChanged()]).toEqual([true, false]);
      writeFileSync(join(path, "new"), "");
      expect([notices.mayHaveChanged(), notices.mayHaveChanged()]).toEqual([true, false]);
    }));

  it("when another one has taken its place, and then for what happens in that one", () =>
    withNotices(({ path, notices }) => {
      renameSync(path, `${path}.old`);
      mkdirSync(path);
      expect([notices.mayHaveChanged(), notices.mayHaveChanged()]).toEqual([true, false]);
      writeFileSync(join(path, "new"), "");
      expect([notices.mayHaveChanged(), notices.mayHaveChanged()]).toEqual([true, false]);
    }));

  it("when a directory above it was renamed, after a while", () =>
    withNotices(({ path, notices, clock }) => {
      const above = join(path, "..");
      renameSync(above, `${above}.old`);
      try {
        clock.ms += LOOK_ANYWAY_MS;
        expect([notices.mayHaveChanged(), notices.mayHaveChanged()]).toEqual([true, true]);
      } finally {
        renameSync(`${above}.old`, above);
      }
    }));
});

describe("a directory has not changed", () => {
  it.each<[what: string, look: (path: string) => unknown]>([
    ["when it was listed", (path) => readdirSync(path)],
    ["when a file was read", (path) => readFileSync(join(path, "a"))],
    ["when a folder in it changed", (path) => writeFileSync(join(path, "c", "new"), "")],
    ["when the one above it changed", (path) => writeFileSync(join(path, "..", "new"), "")],
  ])("%s", (_what, look) =>
    withNotices(({ path, notices }) => {
      look(path);
      expect(notices.mayHaveChanged()).toBe(false);
    }),
  );
});

it("what happened before it was asked first is no news", () =>
  withNotices(({ path }) => {
    writeFileSync(join(path, "a"), "text");
    const other = new DirectoryNotices(path);
    expect([other.mayHaveChanged(), other.mayHaveChanged()]).toEqual([true, false]);
  }));

it("a directory that is not there may always have changed", () => {
  const notices = new DirectoryNotices("/nonexistent/directory");
  expect([notices.mayHaveChanged(), notices.mayHaveChanged()]).toEqual([true, true]);
});

it("a directory is looked at anyway after a while", () =>
  withNotices(({ notices, clock }) => {
    clock.ms += LOOK_ANYWAY_MS - 1;
    expect(notices.mayHaveChanged()).toBe(false);
    clock.ms++;
    expect([notices.mayHaveChanged(), notices.mayHaveChanged()]).toEqual([true, false]);
  }));
