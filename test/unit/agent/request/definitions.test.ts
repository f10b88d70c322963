import { execFileSync } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import {
  Definitions,
  MAX_DEFINITION_BYTES,
  MAX_DEFINITION_FILES,
  ResolvedSettings,
  STAMP_GRAIN_MS,
} from "../../../../host/agent/request/definitions.ts";
import { DEFAULT_COORDINATOR_CONF } from "../../../../host/config/coordinator-settings.ts";
import { decodeCoordinator } from "../../../../host/resources/coordinator.ts";
import { recordLog } from "../../../world/recorded-log.ts";

const MACVLAN = { type: "macvlan", master: "eth0", ipam: { type: "berth" } };

function listText(name: string, coordinator: object | undefined, extra: object = {}): string {
  const plugins = coordinator === undefined ? [MACVLAN] : [MACVLAN, { type: "coordinator", ...coordinator }];
  return JSON.stringify({ cniVersion: "1.0.0", name, plugins, ...extra });
}

let path: string;
let definitions: Definitions;
let lines: string[];

/** The node has these files, and Berth looks at them from now on. */
function given(files: Readonly<Record<string, string>>): void {
  path = mkdtempSync(join(tmpdir(), "berth-net-d-"));
  for (const [name, text] of Object.entries(files)) put(name, text);
  const recorded = recordLog();
  lines = recorded.lines;
  definitions = new Definitions(path, recorded.log);
}
afterEach(() => rmSync(path, { recursive: true, force: true }));

const put = (name: string, text: string): void => writeFileSync(join(path, name), text);
/** The table of the network's coordinator: one key is enough to tell which was read. */
const table = (network: string): number | undefined => definitions.find(network)?.coordinator?.hostRuleTable;
/** A definition of network lan whose coordinator has that table. */
const lan = (hostRuleTable: number) => listText("lan", { hostRuleTable });

describe("the definitions of this node", () => {
  it("questions share a look until it is to be forgotten", () => {
    given({ "10-lan.conflist": lan(501) });
    let forget = (): void => {};
    const later = (call: () => void): void => {
      forget = call;
    };
    const definitions = new Definitions(path, recordLog().log, { later });
    const table = () => definitions.find("lan")?.coordinator?.hostRuleTable;
    put("10-lan.conflist", lan(5020));
    expect(table()).toBe(501);
    forget();
    expect(table()).toBe(5020);
  });

  it("lists, single plugins and plugins in a folder are read; other names, folders and folders of other networks are not", () => {
    given({
      "10-lan.conflist": lan(501),
      "20-one.conf": JSON.stringify({ name: "one", type: "coordinator", hostRuleTable: 502 }),
      "30-two.json": JSON.stringify({ name: "two", type: "berth-coordinator", hostRuleTable: 503 }),
      "40-parts.conflist": JSON.stringify({ cniVersion: "1.1.0", name: "parts" }),
      "50-sealed.conflist": listText("sealed", undefined, { loadOnlyInlinedPlugins: "True" }),
      "60-plain.conflist": listText("plain", undefined),
      "70-note.conflist~": "{",
      "80-note.yaml": "a: b",
    });
    mkdirSync(join(path, "90-folder.conflist"));
    for (const file of ["parts/10-c.conf", "sealed/10-c.conf", "plain/10-c.json"]) {
      mkdirSync(join(path, file, ".."));
      put(file, JSON.stringify({ type: "coordinator", hostRuleTable: 504 }));
    }
    expect(["lan", "one", "two", "parts"].map(table)).toEqual([501, 502, 503, 504]);
    expect(["sealed", "plain", "none"].map(table)).toEqual([undefined, undefined, undefined]);
    expect(definitions.problems).toEqual([]);
  });

  it("keys of the protocol are not the coordinator's", () => {
    given({ "a.conflist": listText("lan", { capabilities: { mac: true }, args: {}, dns: {}, hostRuleTable: 501 }) });
    expect(table("lan")).toBe(501);
    expect(definitions.problems).toEqual([]);
  });

  it("a directory that is not there is no problem, and is found when it is made", () => {
    given({});
    rmSync(path, { recursive: true });
    expect([table("lan"), definitions.problems]).toEqual([undefined, []]);
    mkdirSync(path);
    put("a.conflist", lan(501));
    expect(table("lan")).toBe(501);
  });

  it("a directory that cannot be read keeps its last content, and is a problem", () => {
    given({ "a.conflist": lan(501) });
    rmSync(path, { recursive: true });
    writeFileSync(path, "");
    expect(table("lan")).toBe(501);
    expect(definitions.problems.join()).toContain(`Network definitions in "${path}" cannot be read: ENOTDIR`);
  });
});

describe("a change made before the question holds for it", () => {
  it("also when it leaves size and time of change as they were, a hundred times in a row", () => {
    given({});
    for (let table_ = 501; table_ <= 600; table_++) {
      put("a.conflist", lan(table_));
      expect(table("lan")).toBe(table_);
    }
  });

  it("by renaming another file over it, of the same size and time of modification", () => {
    given({ "a.conflist": lan(501) });
    expect(table("lan")).toBe(501);
    const other = join(path, "other");
    writeFileSync(other, lan(502));
    const { atime, mtime } = statSync(join(path, "a.conflist"));
    utimesSync(other, atime, mtime);
    renameSync(other, join(path, "a.conflist"));
    expect(table("lan")).toBe(502);
  });

  it("by removing the file, by adding one that comes first by name, by a link that points elsewhere", () => {
    given({ "b.conflist": lan(501) });
    put("a.conflist", lan(502));
    expect(table("lan")).toBe(502);
    rmSync(join(path, "a.conflist"));
    expect(table("lan")).toBe(501);
    put("v1", lan(503));
    put("v2", lan(504));
    symlinkSync("v1", join(path, "a.conflist"));
    expect(table("lan")).toBe(503);
    symlinkSync("v2", join(path, "new"));
    renameSync(join(path, "new"), join(path, "a.conflist"));
    expect(table("lan")).toBe(504);
  });

  it("in a network's folder, too", () => {
    given({ "a.conflist": listText("lan", undefined) });
    expect(table("lan")).toBe(undefined);
    mkdirSync(join(path, "lan"));
    const file = join(path, "lan", "c.conf");
    writeFileSync(file, JSON.stringify({ type: "coordinator", hostRuleTable: 501 }));
    expect(table("lan")).toBe(501);
    writeFileSync(file, JSON.stringify({ type: "coordinator", hostRuleTable: 502 }));
    expect(table("lan")).toBe(502);
  });

  it("a file of a folder, whose changes are not noticed, is read again if it has just changed, for the stamp of a second change may be the same; an old one is not", () => {
    given({ "a.conflist": listText("lan", undefined) });
    mkdirSync(join(path, "lan"));
    const isReadAgain = (): boolean => {
      const before = definitions.find("lan")?.coordinator;
      return definitions.find("lan")?.coordinator !== before;
    };
    const tries = Array.from({ length: 20 }, (_, index) => {
      put("lan/c.conf", JSON.stringify({ type: "coordinator", hostRuleTable: 501 + index }));
      return isReadAgain();
    });
    expect(tries).toContain(true);
    const { ctimeMs } = statSync(join(path, "lan", "c.conf"));
    while (Date.now() <= ctimeMs + STAMP_GRAIN_MS) statSync(path);
    definitions.find("lan")?.coordinator;
    expect([isReadAgain(), definitions.find("lan")?.coordinator?.hostRuleTable]).toEqual([false, 520]);
  });
});

describe("an invalid file is a problem that names it, keeps its last valid content, and goes when it is fixed", () => {
  const place = (path: string): string => join(path, "x.conflist");
  const makeLarge = (path: string): void => {
    writeFileSync(path, "");
    truncateSync(path, MAX_DEFINITION_BYTES + 1);
  };
  const tooLarge = `it has ${MAX_DEFINITION_BYTES + 1} bytes, at most ${MAX_DEFINITION_BYTES} are read`;
  const slip = 'plugins[1]: field "detectIPConflikt": found an unknown key, want the key "detectIPConflict"';
  it.each<[what: string, make: (path: string) => void, text: string]>([
    ["no JSON", (path) => writeFileSync(path, '{"name": "lan",'), 'x.conflist": Malformed JSON at line 1'],
    ["an empty file", (path) => writeFileSync(path, ""), 'x.conflist": Malformed JSON at line 1, column 1'],
    ["a list", (path) => writeFileSync(path, "[]"), "found an empty list, want an object"],
    ["no name", (path) => writeFileSync(path, "{}"), 'field "name": found nothing, want a letter or digit'],
    ["a name that leads elsewhere", (path) => writeFileSync(path, listText("../x", {})), 'field "name": found "../x"'],
    ["no plugins", (path) => writeFileSync(path, listText("x", {}, { plugins: {} })), "found an object, want a list"],
    ["no plugin", (path) => writeFileSync(path, listText("x", {}, { plugins: [] })), "found an empty list, want a"],
    ["a plugin without type", (path) => writeFileSync(path, listText("x", {}, { plugins: [{}] })), "plugins[0].type"],
    ["a switch", (path) => writeFileSync(path, listText("x", {}, { loadOnlyInlinedPlugins: 1 })), "true or false"],
    ["a FIFO", (path) => execFileSync("mkfifo", [path]), 'x.conflist" cannot be read: it is not a regular file'],
    ["a link to a device", (path) => symlinkSync("/dev/zero", path), "cannot be read: it is not a regular file"],
    ["a link to nothing", (path) => symlinkSync("nothing", path), "cannot be read: it is a dangling symbolic link"],
    ["a link to itself", (path) => symlinkSync("x.conflist", path), "cannot be read: ELOOP"],
    ["a file that is too large", makeLarge, tooLarge],
    ["a slip", (path) => writeFileSync(path, listText("lan", { detectIPConflikt: true })), slip],
  ])("%s", (_what, make, text) => {
    given({ "x.conflist": lan(501), "y.conflist": listText("other", { hostRuleTable: 502 }) });
    rmSync(place(path));
    make(place(path));
    for (const _ of [1, 2]) {
      expect(definitions.problems).toHaveLength(1);
      expect(definitions.problems.join()).toContain(text);
    }
    expect([table("lan"), table("other")]).toEqual([501, 502]);
    expect(lines).toEqual(["warn A network definition is invalid"]);
    rmSync(place(path));
    put("x.conflist", lan(503));
    expect([table("lan"), definitions.problems]).toEqual([503, []]);
  });

  it("one that never was right says nothing, but its name counts when it is known", () => {
    given({ "a.conflist": listText("lan", { mode: "over" }), "b.conflist": lan(501), "c.conflist": "{" });
    expect(table("lan")).toBe(undefined);
    expect(definitions.problems.map((text) => text.replaceAll(`${path}/`, ""))).toEqual([
      expect.stringContaining('File "c.conflist": Malformed JSON'),
      expect.stringContaining('field "mode": found "over", want one of'),
      'File "b.conflist" is ignored: "a.conflist" defines a network "lan" too',
    ]);
  });

  it("in a network's folder", () => {
    given({ "a.conflist": listText("lan", undefined) });
    mkdirSync(join(path, "lan"));
    writeFileSync(join(path, "lan", "c.conf"), "{}");
    expect(definitions.problems.join()).toContain('lan/c.conf": field "type": found nothing, want text');
  });

  it(`of more than ${MAX_DEFINITION_FILES} files the first by name are read`, () => {
    const names = Array.from({ length: MAX_DEFINITION_FILES + 1 }, (_, index) => String(index).padStart(3, "0"));
    const files = names.map((name) => [`${name}.conflist`, listText(`n${name}`, { hostRuleTable: 501 })]);
    given(Object.fromEntries(files));
    expect([table("n255"), table("n256")]).toEqual([501, undefined]);
    expect(definitions.problems.join()).toContain("has 257 network definitions; the first 256 by name are read");
  });
});

it("the effective settings are resolved once for each definition and resource", () => {
  const object = { apiVersion: "ipam.vendor.io/v1", kind: "Coordinator", metadata: { name: "default" } };
  const coordinator = decodeCoordinator({ ...object, spec: { hostRuleTable: 600, detectIPConflict: true } }, "x");
  const definition = { hostRuleTable: 601, warnings: [] };
  const resolved = new ResolvedSettings();
  expect(resolved.of(undefined, { coordinator: undefined })).toEqual(DEFAULT_COORDINATOR_CONF);
  expect(resolved.of(definition, { coordinator })).toMatchObject({ hostRuleTable: 601, detectIPConflict: true });
  expect(resolved.of(definition, { coordinator })).toBe(resolved.of(definition, { coordinator }));
  expect(resolved.of({ ...definition, hostRuleTable: 602 }, { coordinator })).toMatchObject({ hostRuleTable: 602 });
  expect(resolved.of(definition, { coordinator: undefined })).toMatchObject({ detectIPConflict: false });
  expect(resolved.of(undefined, { coordinator })).toMatchObject({ hostRuleTable: 600 });
});
