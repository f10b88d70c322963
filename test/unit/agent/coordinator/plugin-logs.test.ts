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
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
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

/** Stands for /var/log/vendor/. */
let directory: string;
let path: string;
let logs: PluginLogs;
/** Lines of the agent's own log. */
let lines: string[];
/** A clock that stands still until `pass`. */
let now: number;

beforeEach(() => {
  directory = join(mkdtempSync(join(tmpdir(), "berth-log-")), "vendor");
  path = join(directory, "a.log");
  const recorded = recordLog();
  [lines, now] = [recorded.lines, 0];
  logs = openPluginLogs({
    ...{ directory, log: recorded.log, nowMs: () => now },
    isAdministrators: (logFile) => logFile.endsWith("/administrators.log"),
  });
});

afterEach(async () => {
  await logs.close();
  rmSync(join(directory, ".."), { recursive: true, force: true });
});

function pass(milliseconds: number): void {
  now += milliseconds;
}

function log(name: string, logLevel: LogLevel = "debug"): Log {
  return logs.for({ logFile: `/var/log/vendor/${name}`, logLevel });
}

/** Whole lines. */
function linesOf(name: string): string[] {
  const file = join(directory, name);
  return existsSync(file) ? readFileSync(file, "utf8").split("\n").slice(0, -1) : [];
}

/** The file's lines once there are so many; throws when one is no JSON. */
async function read(name: string, count: number): Promise<Record<string, unknown>[]> {
  await until(() => linesOf(name).length >= count);
  const found = linesOf(name).map((line) => JSON.parse(line));
  expect(found).toHaveLength(count);
  return found;
}

/** A line that is in a file, in the end. */
async function write(msg: string, name = "a.log"): Promise<void> {
  log("a.log").info(msg);
  expect((await read(name, 1)).map((line) => line.msg)).toEqual([msg]);
}

function refusal(name: string): string {
  try {
    log(name);
  } catch (error) {
    expect(error).toBeInstanceOf(CniError);
    expect(error).toMatchObject({ code: ErrorCode.InvalidNetworkConfig });
    return error instanceof Error ? error.message : "";
  }
  return "none";
}

/** A file outside, which nothing may touch. */
function makeVictim(): string {
  const victim = join(directory, "..", "victim");
  writeFileSync(victim, "untouched");
  mkdirSync(directory, { recursive: true });
  return victim;
}

describe("a log of the coordinator", () => {
  it("is one JSON object per line, in a file and a directory that others cannot read", async () => {
    log("coordinator.log").info({ pod: "shop/web-0" }, "ADD");
    expect(await read("coordinator.log", 1)).toEqual([
      expect.objectContaining({ level: "info", name: "coordinator", pod: "shop/web-0", msg: "ADD" }),
    ]);
    const modes = [directory, join(directory, "coordinator.log")].map((each) => statSync(each).mode & 0o7777);
    expect(modes).toEqual([0o750, 0o640]);
  });

  it("adds to the present content, and begins a line of its own after half a line", async () => {
    mkdirSync(directory);
    writeFileSync(path, '{"level":"fatal","msg":"ha');
    log("a.log").info("ADD");
    await until(() => linesOf("a.log").length > 1);
    const [half, line = ""] = linesOf("a.log");
    expect([half, JSON.parse(line).msg]).toEqual(['{"level":"fatal","msg":"ha', "ADD"]);
  });

  it("has the level of each call: two definitions may name one file", async () => {
    const [quiet, loud] = [log("a.log", "warn"), log("a.log", "trace")];
    quiet.info("not this");
    loud.trace("this");
    quiet.warn("and this");
    expect((await read("a.log", 2)).map(({ msg }) => msg)).toEqual(["this", "and this"]);
    expect(log("a.log", "warn")).toBe(quiet);
  });

  it("lies in a folder that is there", async () => {
    mkdirSync(directory);
    expect(refusal("deep/down/a.log")).toContain(
      'found "/var/log/vendor/deep", which does not exist, want a regular file',
    );
    expect(readdirSync(directory)).toEqual([]);
    mkdirSync(join(directory, "deep", "down"), { recursive: true });
    log("deep/down/a.log").info("ADD");
    await read("deep/down/a.log", 1);
  });

  it("may lie behind a link that the node itself made: the log directory", async () => {
    mkdirSync(`${directory}-elsewhere`);
    symlinkSync(`${directory}-elsewhere`, directory);
    log("a.log").info("ADD");
    await read("a.log", 1);
  });
});

describe("a log file is refused, and nothing is written or made", () => {
  const WANTED = "want a regular file below /var/log/vendor/, in existing folders, without links";
  const LINK = "which is a symbolic link";
  const linkBelow = (at: string, victim: string): void => {
    mkdirSync(`${at}/x/y`, { recursive: true });
    symlinkSync(join(victim, ".."), `${at}/x/y/z`);
  };
  it.each<[what: string, make: (directory: string, victim: string) => unknown, name: string, found: string]>([
    ["a link", (at, victim) => symlinkSync(victim, `${at}/a.log`), "a.log", `vendor/a.log", ${LINK}`],
    ["a link to nothing", (at, victim) => symlinkSync(`${victim}.new`, `${at}/a.log`), "a.log", LINK],
    ["a link to a log beside it", (at) => symlinkSync("b.log", `${at}/a.log`), "a.log", LINK],
    ["a folder that is a link", (at) => symlinkSync("..", `${at}/up`), "up/victim", `vendor/up", ${LINK}`],
    ["a link deeper down", linkBelow, "x/y/z/victim", `vendor/x/y/z", ${LINK}`],
    ["another name of a file", (at, victim) => linkSync(victim, `${at}/a.log`), "a.log", "2 names (hard links)"],
    ["a FIFO", (at) => execFileSync("mkfifo", [`${at}/a.log`]), "a.log", "which is a FIFO"],
    ["a directory", (at) => mkdirSync(`${at}/a.log`), "a.log", "which is a directory"],
    ["a folder that is a file", (at) => writeFileSync(`${at}/x`, ""), "x/a.log", 'vendor/x", which is a file'],
    ["a name that is too long", () => {}, "a".repeat(256), "which has a name that is too long"],
  ])("%s", async (_what, make, name, found) => {
    const victim = makeVictim();
    make(directory, victim);
    const text = refusal(name);
    expect(text).toMatch(/^Field "logOptions.logFile": found "\/var\/log\/vendor\//);
    expect(text).toContain(found);
    expect(text).toContain(WANTED);
    expect([readFileSync(victim, "utf8"), lines]).toEqual(["untouched", []]);
    expect([`${victim}.new`, join(directory, "b.log")].map((each) => existsSync(each))).toEqual([false, false]);
  });

  it("one that becomes a link later, while it is written", async () => {
    const victim = makeVictim();
    const before = log("a.log");
    before.info("ADD");
    await read("a.log", 1);
    rmSync(path);
    symlinkSync(victim, path);
    pass(LOG_RECHECK_MS);
    before.info("ADD");
    await until(() => lines.length > 0);
    expect(lines).toEqual(["warn Writing the coordinator's log file failed; lines are lost"]);
    expect(refusal("a.log")).toContain("which is a symbolic link");
    rmSync(path);
    pass(LOG_RECHECK_MS);
    log("a.log").info("ADD");
    const [loss] = await read("a.log", 2);
    expect(loss).toMatchObject({ level: "warn", msg: "At most 1 lines before this one are missing" });
    await until(() => lines.length > 1);
    expect(lines.slice(1)).toEqual(["info Writing the coordinator's log file works again"]);
    expect(readFileSync(victim, "utf8")).toBe("untouched");
  });
});

describe(`more than ${MAX_LOG_FILES} names of tenants`, () => {
  it("go to the default file, with one warning; an administrator's has a file of its own", async () => {
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
  });
});

/** As logrotate does. */
const replaceFile = (): void => {
  renameSync(path, `${path}-old`);
  writeFileSync(path, "");
};

it.each<[what: string, change: () => void, afterMs: number]>([
  ["is left for another one in its place", () => replaceFile(), LOG_RECHECK_MS],
  ["is made anew with its directory", () => rmSync(directory, { recursive: true }), LOG_RECHECK_MS],
  ["goes on at its beginning when it was cut", () => truncateSync(path, 0), 0],
])("a file that is moved, removed or cut while it is written: %s", async (_what, change, afterMs) => {
  await write("one");
  change();
  pass(afterMs);
  await write("two");
});

describe("a file that is full", () => {
  const FULL = Buffer.alloc(LOG_FILE_BYTES - 10, "x");
  FULL.write("\n", FULL.length - 1);
  const writeNew = async (msg: string): Promise<void> => {
    log("a.log").info(msg);
    await until(() => statSync(path, { throwIfNoEntry: false })?.size !== FULL.length);
    expect((await read("a.log", 1)).map((line) => line.msg)).toEqual([msg]);
  };

  it("becomes .1, again and again; no more than two are kept", async () => {
    mkdirSync(directory);
    for (const msg of ["one", "two"]) {
      writeFileSync(path, FULL);
      pass(LOG_RECHECK_MS);
      await writeNew(msg);
      expect(statSync(`${path}.1`).size).toBe(FULL.length);
      expect(existsSync(`${path}.1.1`)).toBe(false);
    }
  });

  it("never grows beyond the limit, whatever is written", async () => {
    const loud = log("a.log");
    const block = "y".repeat(1000);
    for (let round = 0; round < 12; round++) {
      for (let line = 0; line < 900; line++) loud.info(block);
      loud.info(`round ${round}`);
      await until(() => existsSync(path) && readFileSync(path, "utf8").endsWith(`"round ${round}"}\n`));
      expect(statSync(path).size).toBeLessThanOrEqual(LOG_FILE_BYTES);
    }
    expect(statSync(`${path}.1`).size).toBeLessThanOrEqual(LOG_FILE_BYTES);
  });

  it("replaces a link at .1 instead of following it", async () => {
    const victim = makeVictim();
    symlinkSync(victim, `${path}.1`);
    writeFileSync(path, FULL);
    await writeNew("one");
    expect([readFileSync(victim, "utf8"), statSync(`${path}.1`).size]).toEqual(["untouched", FULL.length]);
  });

  it("is cut when nothing can be put at .1", async () => {
    mkdirSync(`${path}.1`, { recursive: true });
    writeFileSync(path, FULL);
    await writeNew("one");
  });
});

describe("text of tenants", () => {
  const names: [what: string, name: string][] = [
    ["line feeds", 'x"}\n{"level":"fatal","msg":"forged"}\n'],
    ["returns and NUL", "a\rb\u0000c"],
    ["a terminal's orders", "\u001b[2J\u001b]0;title\u0007\u001b[31mred"],
    ["a terminal's orders of one byte", "\u009b2J\u0090q\u0085next\u007f"],
    ["separators and directions", "a\u2028b\u2029c\u202egnp.exe\u2066\u200b\ufeff\u{e0001}"],
    ["halves of characters", "\ud800 \udc00"],
    ["letters of the world", "pod-äöü-日本-🙂"],
  ];
  it.each(names)("shows as it is, on one line: %s", async (_what, name) => {
    log("a.log").info({ pod: name }, name);
    log("a.log").child({ pod: name }).warn("ADD");
    log("a.log").error({ err: new Error(name) }, "ADD");
    const [first, second, third] = await read("a.log", 3);
    expect(first).toMatchObject({ level: "info", pod: name, msg: name });
    expect(second).toMatchObject({ level: "warn", pod: name, msg: "ADD" });
    expect(third).toMatchObject({ level: "error", err: { message: name } });
    expect(readFileSync(path, "utf8").replaceAll("\n", "")).not.toMatch(/[\p{Cc}\p{Cf}\u2028\u2029]/u);
  });

  it("is cut when it makes a line too long", async () => {
    log("a.log").info({ pod: "p".repeat(65_536), list: ["\u009b".repeat(9_000)] }, "ADD");
    log("a.log").info({ list: Array.from({ length: 100 }, () => "\n".repeat(1_000)) }, "CHECK");
    const [first, second] = await read("a.log", 2);
    expect(first).toMatchObject({
      ...{ level: "info", msg: "ADD", pod: `${"p".repeat(MAX_LOG_TEXT)}…` },
      list: [`${"\u009b".repeat(MAX_LOG_TEXT)}…`],
    });
    const dropped = expect.stringMatching(/^A line of \d{6} characters was dropped$/);
    expect(second).toMatchObject({ level: "info", msg: dropped });
    for (const line of linesOf("a.log")) expect(line.length).toBeLessThanOrEqual(MAX_LOG_LINE);
  });
});

it("lines that come faster than they can be written are lost and counted, and no call waits", async () => {
  const loud = log("a.log");
  const block = "y".repeat(10_000);
  const count = Math.ceil((2 * MAX_LOG_BACKLOG) / block.length);
  for (let line = 0; line < count; line++) loud.info(block);
  await until(() => linesOf("a.log").length > 100);
  loud.info("last");
  await until(() => linesOf("a.log").at(-1)?.includes('"last"') ?? false);
  const messages = linesOf("a.log").map((line) => String(JSON.parse(line).msg));
  const written = messages.filter((msg) => msg === block).length;
  const missing = `At most ${count - written} lines before this one are missing`;
  expect(messages.filter((msg) => msg !== block)).toEqual([missing, "last"]);
  expect(written).toBeLessThan(count);
});

it("closing writes the accepted lines, and nothing after", async () => {
  const open = log("a.log");
  open.info("one");
  await logs.close();
  open.info("two");
  expect(linesOf("a.log").map((line) => JSON.parse(line).msg)).toEqual(["one"]);
});
