import { execFileSync } from "node:child_process";
import {
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { MAX_LOG_FILES, openPluginLogs, type PluginLogs } from "../../../../host/agent/coordinator/plugin-logs.ts";
import {
  LOG_FILE_BYTES,
  LOG_RECHECK_MS,
  MAX_LOG_BACKLOG,
  MAX_LOG_LINE,
  MAX_LOG_TEXT,
} from "../../../../host/agent/log/log-writer.ts";
import { CniError, ErrorCode } from "../../../../host/cni/error.ts";
import { DEFAULT_COORDINATOR_CONF, type LogLevel } from "../../../../host/config/coordinator-settings.ts";
import type { Log } from "../../../../host/lib/log.ts";
import { recordLog, until } from "../../../world/recorded-log.ts";

interface LogWorld {
  /** Stands for /var/log/vendor/. */
  readonly directory: string;
  readonly logs: PluginLogs;
  /** Lines of the agent's own log. */
  readonly lines: string[];
  pass(milliseconds: number): void;
  log(name: string, logLevel?: LogLevel): Log;
  /** The file's lines once there are so many; throws when one is no JSON. */
  read(name: string, count: number): Promise<Record<string, unknown>[]>;
  refusal(name: string): string;
}

/** In a fresh directory, with a clock that stands still until `pass`. */
async function withLogs(test: (world: LogWorld) => Promise<void> | void): Promise<void> {
  const place = mkdtempSync(join(tmpdir(), "berth-log-"));
  const directory = join(place, "vendor");
  const { log, lines } = recordLog();
  let now = 0;
  const logs = openPluginLogs({
    ...{ directory, log, nowMs: () => now },
    isAdministrators: (logFile) => logFile.endsWith("/administrators.log"),
  });
  const open = (name: string, logLevel: LogLevel = "debug"): Log =>
    logs.for({ logFile: `/var/log/vendor/${name}`, logLevel });
  const linesOf = (name: string): string[] => {
    const path = join(directory, name);
    return existsSync(path) ? readFileSync(path, "utf8").split("\n").slice(0, -1) : [];
  };
  try {
    await test({
      ...{ directory, logs, lines, log: open },
      pass: (milliseconds) => {
        now += milliseconds;
      },
      read: async (name, count) => {
        await until(() => linesOf(name).length >= count);
        const found = linesOf(name).map((line) => JSON.parse(line));
        expect(found).toHaveLength(count);
        return found;
      },
      refusal: (name) => {
        try {
          open(name);
        } catch (error) {
          expect(error).toBeInstanceOf(CniError);
          expect(error).toMatchObject({ code: ErrorCode.InvalidNetworkConfig });
          return error instanceof Error ? error.message : "";
        }
        return "none";
      },
    });
  } finally {
    await logs.close();
    rmSync(place, { recursive: true, force: true });
  }
}

describe("a log of the coordinator", () => {
  it("is one JSON object per line, in a file and a directory that others cannot read", () =>
    withLogs(async ({ directory, log, read }) => {
      log("coordinator.log").info({ pod: "shop/web-0" }, "ADD");
      expect(await read("coordinator.log", 1)).toEqual([
        expect.objectContaining({ level: "info", name: "coordinator", pod: "shop/web-0", msg: "ADD" }),
      ]);
      expect([statSync(directory).mode & 0o7777, statSync(join(directory, "coordinator.log")).mode & 0o7777]).toEqual([
        0o750, 0o640,
      ]);
    }));

  it("adds to what is there, and begins a line of its own after half a line", () =>
    withLogs(async ({ directory, log }) => {
      mkdirSync(directory);
      writeFileSync(join(directory, "a.log"), '{"level":"fatal","msg":"ha');
      log("a.log").info("ADD");
      await until(() => readFileSync(join(directory, "a.log"), "utf8").endsWith("\n"));
      const [half, line = ""] = readFileSync(join(directory, "a.log"), "utf8").split("\n");
      expect([half, JSON.parse(line).msg]).toEqual(['{"level":"fatal","msg":"ha', "ADD"]);
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
  const LINK = "which is a symbolic link";
  const rows: [what: string, make: (directory: string, victim: string) => unknown, name: string, found: string][] = [
    ["a link", (at, victim) => symlinkSync(victim, `${at}/a.log`), "a.log", `vendor/a.log", ${LINK}`],
    ["a link to nothing", (at, victim) => symlinkSync(`${victim}.new`, `${at}/a.log`), "a.log", LINK],
    ["a link to a log beside it", (at) => symlinkSync("b.log", `${at}/a.log`), "a.log", LINK],
    ["a folder that is a link", (at) => symlinkSync("..", `${at}/up`), "up/victim", `vendor/up", ${LINK}`],
    [
      "a link deeper down",
      (at, victim) => {
        mkdirSync(`${at}/x/y`, { recursive: true });
        symlinkSync(join(victim, ".."), `${at}/x/y/z`);
      },
      "x/y/z/victim",
      `vendor/x/y/z", ${LINK}`,
    ],
    ["another name of a file", (at, victim) => linkSync(victim, `${at}/a.log`), "a.log", "2 names (hard links)"],
    ["a FIFO", (at) => execFileSync("mkfifo", [`${at}/a.log`]), "a.log", "which is a FIFO"],
    ["a directory", (at) => mkdirSync(`${at}/a.log`), "a.log", "which is a directory"],
    ["a folder that is a file", (at) => writeFileSync(`${at}/x`, ""), "x/a.log", 'vendor/x", which is a file'],
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
      expect(lines).toEqual(["warn Writing the coordinator's log file failed; lines are lost"]);
      expect(refusal("a.log")).toContain("which is a symbolic link");
      rmSync(join(directory, "a.log"));
      pass(LOG_RECHECK_MS);
      log("a.log").info("ADD");
      const [loss] = await read("a.log", 2);
      expect(loss).toMatchObject({ level: "warn", msg: "At most 1 lines before this one are missing" });
      await until(() => lines.length > 1);
      expect(lines.slice(1)).toEqual(["info Writing the coordinator's log file works again"]);
      expect(readFileSync(victim, "utf8")).toBe("untouched");
    }));
});

describe(`more than ${MAX_LOG_FILES} names of tenants`, () => {
  it("go to the default file, with one warning; an administrator's has a file of its own", () =>
    withLogs(async ({ log, refusal, read, lines, directory }) => {
      mkdirSync(directory);
      symlinkSync("x", join(directory, "link"));
      for (let n = 0; n <= MAX_LOG_FILES; n++) expect(refusal("link")).toContain("symbolic link");
      for (let n = 0; n < MAX_LOG_FILES; n++) log(`${n}.log`);
      for (const name of ["more.log", "yet-more.log", "0.log", "administrators.log"]) log(name).info(name);
      const texts = (await read("coordinator.log", 2)).map(({ msg }) => msg);
      expect(texts).toEqual(["more.log", "yet-more.log"]);
      expect([await read("0.log", 1), await read("administrators.log", 1)]).toMatchObject([
        [{ msg: "0.log" }],
        [{ msg: "administrators.log" }],
      ]);
      expect(existsSync(join(directory, "more.log"))).toBe(false);
      expect(lines).toEqual([
        `warn Network definitions name more than ${MAX_LOG_FILES} log files on this node; lines for others go to ${DEFAULT_COORDINATOR_CONF.logOptions.logFile}`,
      ]);
    }));
});

describe("a file that is moved, removed or cut while it is written", () => {
  it("is left within a second when logrotate has moved it", () =>
    withLogs(async ({ directory, log, read, pass }) => {
      log("a.log").info("one");
      await read("a.log", 1);
      renameSync(join(directory, "a.log"), join(directory, "a.log-old"));
      pass(LOG_RECHECK_MS - 1);
      log("a.log").info("two");
      await read("a.log-old", 2);
      pass(1);
      log("a.log").info("three");
      expect((await read("a.log", 1)).map(({ msg }) => msg)).toEqual(["three"]);
    }));

  it("is left for the one that logrotate has made in its place", () =>
    withLogs(async ({ directory, log, read, pass }) => {
      log("a.log").info("one");
      await read("a.log", 1);
      renameSync(join(directory, "a.log"), join(directory, "a.log-old"));
      writeFileSync(join(directory, "a.log"), "");
      pass(LOG_RECHECK_MS);
      log("a.log").info("two");
      await read("a.log", 1);
    }));

  it("is made anew when it was removed, with its directory", () =>
    withLogs(async ({ directory, log, read, pass }) => {
      log("a.log").info("one");
      await read("a.log", 1);
      rmSync(directory, { recursive: true });
      pass(LOG_RECHECK_MS);
      log("a.log").info("two");
      await read("a.log", 1);
    }));

  it("goes on at its beginning when it was cut", () =>
    withLogs(async ({ directory, log, read }) => {
      log("a.log").info("one");
      await read("a.log", 1);
      truncateSync(join(directory, "a.log"), 0);
      log("a.log").info("two");
      expect((await read("a.log", 1)).map(({ msg }) => msg)).toEqual(["two"]);
    }));
});

describe("a file that is full", () => {
  const FULL = Buffer.alloc(LOG_FILE_BYTES - 10, "x");
  FULL.write("\n", FULL.length - 1);

  it("becomes .1, again and again; no more than two are kept", () =>
    withLogs(async ({ directory, log, read, pass }) => {
      const path = join(directory, "a.log");
      mkdirSync(directory);
      for (const msg of ["one", "two"]) {
        writeFileSync(path, FULL);
        pass(LOG_RECHECK_MS);
        log("a.log").info(msg);
        await until(() => statSync(path, { throwIfNoEntry: false })?.size !== FULL.length);
        expect((await read("a.log", 1)).map(({ msg }) => msg)).toEqual([msg]);
        expect(statSync(`${path}.1`).size).toBe(FULL.length);
        expect(existsSync(`${path}.1.1`)).toBe(false);
      }
    }));

  it("never grows beyond the limit, whatever is written", () =>
    withLogs(async ({ directory, log }) => {
      const path = join(directory, "a.log");
      const loud = log("a.log");
      const block = "y".repeat(1000);
      for (let round = 0; round < 12; round++) {
        for (let line = 0; line < 900; line++) loud.info(block);
        loud.info(`round ${round}`);
        await until(() => existsSync(path) && readFileSync(path, "utf8").endsWith(`"round ${round}"}\n`));
        expect(statSync(path).size).toBeLessThanOrEqual(LOG_FILE_BYTES);
      }
      expect(statSync(`${path}.1`).size).toBeLessThanOrEqual(LOG_FILE_BYTES);
    }));

  it("replaces a link at .1 instead of following it", () =>
    withLogs(async ({ directory, log, read }) => {
      const path = join(directory, "a.log");
      const victim = join(directory, "..", "victim");
      mkdirSync(directory);
      writeFileSync(victim, "untouched");
      symlinkSync(victim, `${path}.1`);
      writeFileSync(path, FULL);
      log("a.log").info("one");
      await until(() => statSync(path).size !== FULL.length);
      await read("a.log", 1);
      expect([readFileSync(victim, "utf8"), statSync(`${path}.1`).size]).toEqual(["untouched", FULL.length]);
    }));

  it("is cut when nothing can be put at .1", () =>
    withLogs(async ({ directory, log, read }) => {
      mkdirSync(join(directory, "a.log.1"), { recursive: true });
      writeFileSync(join(directory, "a.log"), FULL);
      log("a.log").info("one");
      await until(() => statSync(join(directory, "a.log")).size !== FULL.length);
      await read("a.log", 1);
    }));
});

describe("text of tenants", () => {
  const names: [what: string, name: string][] = [
    ["line feeds", 'x"}\n{"level":"fatal","msg":"forged"}\n'],
    ["the end of its text", '","level":"fatal","x":"'],
    ["a level", '{"level":"fatal"}'],
    ["returns and NUL", "a\rb\u0000c"],
    ["a terminal's orders", "\u001b[2J\u001b]0;title\u0007\u001b[31mred"],
    ["a terminal's orders of one byte", "\u009b2J\u0090q\u0085next\u007f"],
    ["separators and directions", "a\u2028b\u2029c\u202egnp.exe\u2066\u200b\ufeff\u{e0001}"],
    ["halves of characters", "\ud800 \udc00"],
    ["a backslash at the end", "a\\"],
    ["letters of the world", "pod-äöü-日本-🙂"],
  ];
  it.each(names)("shows as it is, on one line: %s", (_what, name) =>
    withLogs(async ({ directory, log, read }) => {
      log("a.log").info({ pod: name }, name);
      log("a.log").child({ pod: name }).warn("ADD");
      log("a.log").error({ err: new Error(name) }, "ADD");
      const [first, second, third] = await read("a.log", 3);
      expect(first).toMatchObject({ level: "info", pod: name, msg: name });
      expect(second).toMatchObject({ level: "warn", pod: name, msg: "ADD" });
      expect(third).toMatchObject({ level: "error", err: { message: name } });
      const text = readFileSync(join(directory, "a.log"), "utf8");
      expect(text.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\p{Cf}\u2028\u2029]/u);
    }),
  );

  it("is cut when it makes a line too long", () =>
    withLogs(async ({ directory, log, read }) => {
      log("a.log").info({ pod: "p".repeat(65_536), list: ["\u009b".repeat(9_000)] }, "ADD");
      log("a.log").info({ list: Array.from({ length: 100 }, () => "\n".repeat(1_000)) }, "CHECK");
      const [first, second] = await read("a.log", 2);
      expect(first).toMatchObject({
        ...{ level: "info", msg: "ADD", pod: `${"p".repeat(MAX_LOG_TEXT)}…` },
        list: [`${"\u009b".repeat(MAX_LOG_TEXT)}…`],
      });
      expect(second).toMatchObject({
        level: "info",
        msg: expect.stringMatching(/^A line of \d{6} characters was dropped$/),
      });
      for (const line of readFileSync(join(directory, "a.log"), "utf8").split("\n")) {
        expect(line.length).toBeLessThanOrEqual(MAX_LOG_LINE);
      }
    }));
});

it("what comes faster than it can be written is lost and counted, and no call waits", () =>
  withLogs(async ({ directory, log }) => {
    const loud = log("a.log");
    const block = "y".repeat(10_000);
    const count = Math.ceil((2 * MAX_LOG_BACKLOG) / block.length);
    for (let line = 0; line < count; line++) loud.info(block);
    const linesOf = () => readFileSync(join(directory, "a.log"), "utf8").split("\n").slice(0, -1);
    await until(() => linesOf().length > 100);
    loud.info("last");
    await until(() => linesOf().at(-1)?.includes('"last"') ?? false);
    const messages = linesOf().map((line) => String(JSON.parse(line).msg));
    const written = messages.filter((msg) => msg === block).length;
    expect(messages.filter((msg) => msg !== block)).toEqual([
      `At most ${count - written} lines before this one are missing`,
      "last",
    ]);
    expect(written).toBeLessThan(count);
  }));

it("closing writes what was taken, and nothing after", () =>
  withLogs(async ({ directory, logs, log }) => {
    const open = log("a.log");
    open.info("one");
    await logs.close();
    open.info("two");
    const lines = readFileSync(join(directory, "a.log"), "utf8").split("\n").slice(0, -1);
    expect(lines.map((line) => JSON.parse(line).msg)).toEqual(["one"]);
  }));
