import { execFileSync } from "node:child_process";
import {
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { LOG_RECHECK_MS } from "../../../../host/agent/coordinator/log-writer.ts";
import { MAX_LOG_FILES } from "../../../../host/agent/coordinator/plugin-logs.ts";
import { DEFAULT_COORDINATOR_CONF } from "../../../../host/config/coordinator-settings.ts";
import { until } from "../../../world/recorded-log.ts";
import { withLogs } from "./log-world.ts";

describe("a log of the coordinator", () => {
  it("is one JSON object per line, in a file and a directory that others cannot read", () =>
    withLogs(async ({ directory, log, read }) => {
      log("coordinator.log").info({ pod: "shop/web-0" }, "ADD");
      expect(await read("coordinator.log", 1)).toEqual([
        expect.objectContaining({ level: 30, name: "coordinator", pod: "shop/web-0", msg: "ADD" }),
      ]);
      expect([statSync(directory).mode & 0o7777, statSync(join(directory, "coordinator.log")).mode & 0o7777]).toEqual([
        0o750, 0o640,
      ]);
    }));

  it("adds to what is there, and begins a line of its own after half a line", () =>
    withLogs(async ({ directory, log }) => {
      mkdirSync(directory);
      writeFileSync(join(directory, "a.log"), '{"level":60,"msg":"ha');
      log("a.log").info("ADD");
      await until(() => readFileSync(join(directory, "a.log"), "utf8").endsWith("\n"));
      const [half, line = ""] = readFileSync(join(directory, "a.log"), "utf8").split("\n");
      expect([half, JSON.parse(line).msg]).toEqual(['{"level":60,"msg":"ha', "ADD"]);
    }));

  it("has the level of each call: two definitions may name one file", () =>
    withLogs(async ({ log, read }) => {
      const [quiet, loud] = [log("a.log", "warn"), log("a.log", "trace")];
      quiet.info("not this");
      loud.trace("this");
      quiet.warn("and this");
      expect((await read("a.log", 2)).map(({ msg }) => msg)).toEqual(["this", "and this"]);
      expect(log("a.log", "warn")).toBe(quiet);
    }));

  it("lies in a folder that is there", () =>
    withLogs(async ({ directory, log, read, refusal }) => {
      mkdirSync(directory);
      expect(refusal("deep/down/a.log")).toContain(
        'found "/var/log/vendor/deep", which does not exist, want a regular file',
      );
      expect(readdirSync(directory)).toEqual([]);
      mkdirSync(join(directory, "deep", "down"), { recursive: true });
      log("deep/down/a.log").info("ADD");
      await read("deep/down/a.log", 1);
    }));

  it("may lie behind a link that the node itself made: the log directory", () =>
    withLogs(async ({ directory, log, read }) => {
      mkdirSync(`${directory}-elsewhere`);
      symlinkSync(`${directory}-elsewhere`, directory);
      log("a.log").info("ADD");
      await read("a.log", 1);
    }));
});

describe("a log file is refused, and nothing is written or made", () => {
  const WANTED = "want a regular file below /var/log/vendor/, in existing folders, without links";
  const rows: [what: string, make: (directory: string, victim: string) => unknown, name: string, found: string][] = [
    [
      "a link",
      (at, victim) => symlinkSync(victim, `${at}/a.log`),
      "a.log",
      '"/var/log/vendor/a.log", which is a symbolic link',
    ],
    [
      "a link to nothing",
      (at, victim) => symlinkSync(`${victim}.new`, `${at}/a.log`),
      "a.log",
      "which is a symbolic link",
    ],
    ["a link to a log beside it", (at) => symlinkSync("b.log", `${at}/a.log`), "a.log", "which is a symbolic link"],
    [
      "a folder that is a link",
      (at) => symlinkSync("..", `${at}/up`),
      "up/victim",
      '"/var/log/vendor/up", which is a symbolic link',
    ],
    [
      "a link deeper down",
      (at, victim) => {
        mkdirSync(`${at}/x/y`, { recursive: true });
        symlinkSync(join(victim, ".."), `${at}/x/y/z`);
      },
      "x/y/z/victim",
      '"/var/log/vendor/x/y/z", which is a symbolic link',
    ],
    [
      "another name of a file",
      (at, victim) => linkSync(victim, `${at}/a.log`),
      "a.log",
      "which is a file with 2 names (hard links)",
    ],
    ["a FIFO", (at) => execFileSync("mkfifo", [`${at}/a.log`]), "a.log", "which is a FIFO"],
    ["a directory", (at) => mkdirSync(`${at}/a.log`), "a.log", "which is a directory"],
    [
      "a folder that is a file",
      (at) => writeFileSync(`${at}/x`, ""),
      "x/a.log",
      '"/var/log/vendor/x", which is a file',
    ],
    ["a name that is too long", () => {}, "a".repeat(256), "which has a name that is too long"],
  ];
  it.each(rows)("%s", (_what, make, name, found) =>
    withLogs(({ directory, refusal, lines }) => {
      const victim = join(directory, "..", "victim");
      writeFileSync(victim, "untouched");
      mkdirSync(directory);
      make(directory, victim);
      const text = refusal(name);
      expect(text).toMatch(/^Field "logOptions.logFile": found "\/var\/log\/vendor\//);
      expect(text).toContain(found);
      expect(text).toContain(WANTED);
      expect([readFileSync(victim, "utf8"), existsSync(`${victim}.new`), existsSync(join(directory, "b.log"))]).toEqual(
        ["untouched", false, false],
      );
      expect(lines).toEqual([]);
    }),
  );

  it("a socket", () =>
    withLogs(async ({ directory, refusal }) => {
      mkdirSync(directory);
      const server = createServer();
      await new Promise<void>((resolve) => server.listen(join(directory, "a.log"), resolve));
      expect(refusal("a.log")).toContain("which is a socket");
      await new Promise((resolve) => server.close(resolve));
    }));

  it("one that becomes a link later, while it is written", () =>
    withLogs(async ({ directory, log, refusal, read, lines, pass }) => {
      const victim = join(directory, "..", "victim");
      writeFileSync(victim, "untouched");
      const before = log("a.log");
      before.info("ADD");
      await read("a.log", 1);
      rmSync(join(directory, "a.log"));
      symlinkSync(victim, join(directory, "a.log"));
      pass(LOG_RECHECK_MS);
      before.info("ADD");
      await until(() => lines.length > 0);
      expect(lines).toEqual(["warn Writing a log file of the coordinator failed; lines are lost"]);
      expect(refusal("a.log")).toContain("which is a symbolic link");
      rmSync(join(directory, "a.log"));
      pass(LOG_RECHECK_MS);
      log("a.log").info("ADD");
      const [loss] = await read("a.log", 2);
      expect(loss).toMatchObject({ level: 40, msg: "At most 1 lines before this one are missing" });
      await until(() => lines.length > 1);
      expect(lines.slice(1)).toEqual(["info Writing the coordinator's log file works again"]);
      expect(readFileSync(victim, "utf8")).toBe("untouched");
    }));

  it(`more than ${MAX_LOG_FILES} names; the default and those that were there before still are`, () =>
    withLogs(({ log, logs, refusal, directory }) => {
      mkdirSync(directory);
      symlinkSync("x", join(directory, "link"));
      for (let n = 0; n <= MAX_LOG_FILES; n++) expect(refusal("link")).toContain("symbolic link");
      for (let n = 0; n < MAX_LOG_FILES; n++) log(`${n}.log`);
      expect(refusal("more.log")).toContain(
        `found "/var/log/vendor/more.log" in addition to ${MAX_LOG_FILES} other files, want at most ${MAX_LOG_FILES} names`,
      );
      expect(existsSync(join(directory, "more.log"))).toBe(false);
      log("0.log", "error");
      logs.for(DEFAULT_COORDINATOR_CONF.logOptions);
    }));
});
