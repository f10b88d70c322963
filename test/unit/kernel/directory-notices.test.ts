import * as fs from "node:fs";
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

/** A look tells of the change, the next one does not. */
function expectOnce(notices: DirectoryNotices): void {
  expect([notices.mayHaveChanged(), notices.mayHaveChanged()]).toEqual([true, false]);
}

function withNotices(test: (world: World) => void): void {
  const above = fs.mkdtempSync(join(tmpdir(), "berth-notices-"));
  const path = join(above, "watched");
  try {
    fs.mkdirSync(join(path, "c"), { recursive: true });
    for (const name of ["a", "b", "../beside"]) fs.writeFileSync(join(path, name), "text");
    const clock = { ms: 5 };
    const notices = new DirectoryNotices(path, { nowMs: () => clock.ms });
    expectOnce(notices);
    test({ path, notices, clock });
  } finally {
    fs.rmSync(above, { recursive: true, force: true });
  }
}

describe("a directory may have changed, once", () => {
  it.each<[change: string, make: (path: string) => void]>([
    ["a new file", (path) => fs.writeFileSync(join(path, "new"), "")],
    ["a file written anew", (path) => fs.writeFileSync(join(path, "a"), "text")],
    ["a longer file", (path) => fs.appendFileSync(join(path, "a"), "more")],
    ["another mode", (path) => fs.chmodSync(join(path, "a"), 0o600)],
    ["a file removed", (path) => fs.rmSync(join(path, "a"))],
    ["a file over another", (path) => fs.renameSync(join(path, "a"), join(path, "b"))],
    ["a file that leaves", (path) => fs.renameSync(join(path, "a"), join(path, "..", "a"))],
    ["a file that comes", (path) => fs.renameSync(join(path, "..", "beside"), join(path, "new"))],
  ])("%s", (_change, make) =>
    withNotices(({ path, notices }) => {
      make(path);
      expectOnce(notices);
    }),
  );

  it("after more changes than the kernel keeps", () =>
    withNotices(({ path, notices }) => {
      const most = Number(fs.readFileSync("/proc/sys/fs/inotify/max_queued_events", "utf8"));
      for (let count = 0; count <= most; count++) fs.utimesSync(join(path, count % 2 === 0 ? "a" : "b"), 1, 1);
      expectOnce(notices);
    }));

  it("for each caller", () =>
    withNotices(({ path, notices }) => {
      const other = new DirectoryNotices(path);
      other.mayHaveChanged();
      fs.writeFileSync(join(path, "a"), "text");
      expect([notices, other].map((each) => each.mayHaveChanged())).toEqual([true, true]);
      expect([notices, other].map((each) => each.mayHaveChanged())).toEqual([false, false]);
    }));

  it.each<[what: string, replace: (path: string, notices: DirectoryNotices) => void]>([
    [
      "it was removed and made anew",
      (path, notices) => {
        fs.rmSync(path, { recursive: true });
        expect([notices.mayHaveChanged(), notices.mayHaveChanged()]).toEqual([true, true]);
      },
    ],
    ["another one has taken its place", (path) => fs.renameSync(path, `${path}.old`)],
  ])("when %s, and then for changes of the new one", (_what, replace) =>
    withNotices(({ path, notices }) => {
      replace(path, notices);
      fs.mkdirSync(path);
      expectOnce(notices);
      fs.writeFileSync(join(path, "new"), "");
      expectOnce(notices);
    }),
  );

  it("when a directory above it was renamed, after a while", () =>
    withNotices(({ path, notices, clock }) => {
      const above = join(path, "..");
      fs.renameSync(above, `${above}.old`);
      try {
        clock.ms += LOOK_ANYWAY_MS;
        expect([notices.mayHaveChanged(), notices.mayHaveChanged()]).toEqual([true, true]);
      } finally {
        fs.renameSync(`${above}.old`, above);
      }
    }));
});

it.each<[what: string, look: (path: string) => unknown]>([
  ["when it was listed", (path) => fs.readdirSync(path)],
  ["when a file was read", (path) => fs.readFileSync(join(path, "a"))],
  ["when a folder in it changed", (path) => fs.writeFileSync(join(path, "c", "new"), "")],
  ["when the one above it changed", (path) => fs.writeFileSync(join(path, "..", "new"), "")],
])("a directory has not changed: %s", (_what, look) =>
  withNotices(({ path, notices }) => {
    look(path);
    expect(notices.mayHaveChanged()).toBe(false);
  }),
);

it("a directory that is not there may always have changed", () => {
  const notices = new DirectoryNotices("/nonexistent/directory");
  expect([notices.mayHaveChanged(), notices.mayHaveChanged()]).toEqual([true, true]);
});

it("a directory is looked at anyway after a while", () =>
  withNotices(({ notices, clock }) => {
    clock.ms += LOOK_ANYWAY_MS - 1;
    expect(notices.mayHaveChanged()).toBe(false);
    clock.ms++;
    expectOnce(notices);
  }));
