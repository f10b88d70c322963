import {
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  LOG_FILE_BYTES,
  LOG_RECHECK_MS,
  MAX_LOG_BACKLOG,
  MAX_LOG_LINE,
  MAX_LOG_TEXT,
} from "../../../../host/agent/coordinator/log-writer.ts";
import { until } from "../../../world/recorded-log.ts";
import { withLogs } from "./log-world.ts";

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
    ["line feeds", 'x"}\n{"level":60,"msg":"forged"}\n'],
    ["the end of its text", '","level":60,"x":"'],
    ["a level", '{"level":60}'],
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
      expect(first).toMatchObject({ level: 30, pod: name, msg: name });
      expect(second).toMatchObject({ level: 40, pod: name, msg: "ADD" });
      expect(third).toMatchObject({ level: 50, err: { message: name } });
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
        ...{ level: 30, msg: "ADD", pod: `${"p".repeat(MAX_LOG_TEXT)}…` },
        list: [`${"\u009b".repeat(MAX_LOG_TEXT)}…`],
      });
      expect(second).toMatchObject({
        level: 30,
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
