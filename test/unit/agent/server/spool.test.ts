import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { type Dispatched, Dispatcher } from "../../../../host/agent/server/dispatcher.ts";
import { MAX_BODY_BYTES, MAX_HEAD_BYTES, parseSpooled, Spool } from "../../../../host/agent/server/spool.ts";
import { noFaults } from "../../../../host/lib/fault.ts";
import { NO_AUDIT } from "../../../world/no-audit.ts";
import { recordLog } from "../../../world/recorded-log.ts";
import { cases } from "../../../world/rows.ts";
import { temporaryDirectory } from "../../../world/temporary-directory.ts";

const POST = "POST /v1/cni/berth HTTP/1.1";

function spooled(
  containerId: string,
  { body = "{}", length = body.length, head }: { body?: string; length?: number; head?: readonly string[] } = {},
): Buffer {
  const own = ["Host: berth", "CNI-Command: DEL", `CNI-ContainerID: ${containerId}`, "CNI-IfName: eth0"];
  return Buffer.from(`${(head ?? [POST, ...own, `Content-Length: ${length}`]).join("\r\n")}\r\n\r\n${body}`);
}

describe("parseSpooled", () => {
  it("reads a request as the shim writes it", () => {
    const body = '{"name":"ü"}';
    const headers = { host: "berth", "cni-command": "DEL", ...ofContainer("c1"), "content-length": "13" };
    expect(parseSpooled(spooled("c1", { body, length: 13 }))).toEqual({ plugin: "berth", headers, body });
  });

  it("keeps blanks and colons inside values", () => {
    const head = ["POST /v1/cni/ifacer HTTP/1.1", "CNI-Command: DEL", "CNI-Args: A=b: c", "Content-Length: 2"];
    expect(parseSpooled(spooled("c1", { head })).headers["cni-args"]).toBe("A=b: c");
  });

  it.each(cases<Buffer>`
    nothing ${Buffer.alloc(0)} => The head of the request has no end
    a head without an end ${spooled("c1").subarray(0, 40)} => The head of the request has no end
    another request line ${spooled("c1", { head: ["GET / HTTP/1.1"] })}
      => "GET / HTTP/1.1" is not a request line of the shim
    a line that is no header ${spooled("c1", { head: [POST, ": x"] })} => ": x" is no header
    a body cut short ${spooled("c1").subarray(0, -1)} => The body has 1 bytes, Content-Length says 2
    a body too long ${spooled("c1", { length: 1 })} => The body has 2 bytes, Content-Length says 1
    no length ${spooled("c1", { head: [POST, "CNI-Command: DEL"] })}
      => The body has 2 bytes, Content-Length says nothing
    another command ${spooled("c1", { head: [POST, "CNI-Command: ADD", "Content-Length: 2"] })}
      => Command ADD is not spooled
    no command ${spooled("c1", { head: [POST, "Content-Length: 2"] })}
      => Command (none) is not spooled
  `)("refuses %s", (_what, bytes, text) => expect(() => parseSpooled(bytes)).toThrow(text));
});

let directory: string;
let spool: Spool;
let requested: string[];
let lines: string[];
/** The outcome of the DEL of a container. */
let answer: (containerId: string) => Dispatched | Promise<Dispatched>;
const files = () => readdirSync(directory).sort();

beforeEach(() => {
  directory = temporaryDirectory("berth-spool-", onTestFinished);
  const recorded = recordLog();
  [requested, lines, answer] = [[], recorded.lines, () => done];
  const dispatch: Dispatcher["dispatch"] = async ({ headers }) => {
    requested.push(String(headers["cni-containerid"]));
    return answer(String(headers["cni-containerid"]));
  };
  spool = new Spool(directory, { dispatch, translate: (call) => call }, noFaults, recorded.log);
});

const done: Dispatched = { status: 200, body: "" };
const refusal = (code: number): Dispatched => ({ status: 422, body: JSON.stringify({ code, msg: "no" }) });

function put(...containerIds: string[]): void {
  for (const [index, containerId] of containerIds.entries())
    writeFileSync(join(directory, `${index}.1-1.del`), spooled(containerId));
}

const ofContainer = (containerId: string, ifName = "eth0") => ({
  "cni-containerid": containerId,
  "cni-ifname": ifName,
});

it("a DEL of a driver that this build lacks is kept, not taken for a DEL of nothing", async () => {
  const { log } = recordLog();
  const unused = undefined as never;
  const dispatcher = new Dispatcher({ berth: unused, coordinator: unused, ifacer: unused }, NO_AUDIT, log);
  const head = ["POST /v1/cni/netavark HTTP/1.1", "CNI-Command: DEL", "Content-Length: 2"];
  writeFileSync(join(directory, "1.1-1.del"), spooled("", { head }));
  await new Spool(directory, dispatcher, noFaults, log).drain();
  expect(files()).toEqual(["1.1-1.del.rejected"]);
  const call = { plugin: "netavark", headers: { "cni-command": "DEL" }, body: "{}" };
  const { body } = await dispatcher.dispatch(call, new AbortController().signal);
  expect(body).toContain('No plugin is called \\"netavark\\"; this build has berth, coordinator, ifacer');
});

describe("the spool", () => {
  it("is carried out oldest first, once, for any number of callers", async () => {
    put("a", "b", "c");
    writeFileSync(join(directory, "9.1-1.tmp"), "half");
    expect(spool.count()).toEqual({ waiting: 3, rejected: 0 });
    await Promise.all([spool.drain(), spool.drain()]);
    expect([requested, files()]).toEqual([["a", "b", "c"], ["9.1-1.tmp"]]);
  });

  it("is looked at again for a caller that joins a replay: a DEL may have been spooled since", async () => {
    const first = Promise.withResolvers<Dispatched>();
    answer = (containerId) => (containerId === "a" ? first.promise : done);
    put("a");
    const drains = [spool.drain()];
    await vi.waitFor(() => expect(requested).toEqual(["a"]));
    put("a", "b");
    drains.push(spool.drain(), spool.clear(ofContainer("b")));
    first.resolve(done);
    await Promise.all(drains);
    expect([requested, files()]).toEqual([["a", "b"], []]);
  });

  it.each<[what: string, containerId: string, ifName: string, file: string, code: number | undefined]>([
    ["its own DEL is refused", "a", "eth0", "", 11],
    ["its own DEL comes after one that says nothing is recorded", "b", "eth0", "", 11],
    ["another interface's DEL is refused", "a", "eth1", "", undefined],
    ["another container's DEL is refused", "c", "eth0", "", undefined],
    ["a file is refused that is no DEL", "c", "eth0", "9.1-1.del", undefined],
  ])("lets an ADD pass or wait while %s", async (_what, containerId, ifName, file, code) => {
    answer = () => refusal(107);
    put("a", "b");
    if (file !== "") mkdirSync(join(directory, file));
    expect((await spool.clear(ofContainer(containerId, ifName)).catch((error) => error))?.code).toBe(code);
  });

  it("sets aside files that cannot be read, and goes on", async () => {
    answer = (containerId) => (containerId === "b" ? refusal(7) : done);
    put("a", "b", "c");
    writeFileSync(join(directory, "0.0-1.del"), "broken");
    await spool.drain();
    expect(files()).toEqual(["0.0-1.del.rejected", "1.1-1.del.rejected"]);
    expect(spool.count()).toEqual({ waiting: 0, rejected: 2 });
  });

  it("keeps DELs that may be possible later, and goes on", async () => {
    answer = (containerId) => (containerId === "a" ? refusal(11) : done);
    put("a", "b");
    await spool.drain();
    expect([requested, files()]).toEqual([["a", "b"], ["0.1-1.del"]]);
  });

  it("stops where the registry records nothing", async () => {
    answer = () => refusal(107);
    put("a", "b");
    await spool.drain();
    expect([requested, files()]).toEqual([["a"], ["0.1-1.del", "1.1-1.del"]]);
    expect(lines).toEqual(["warn A spooled DEL was refused; it stays in the spool"]);
  });

  it("survives a file that goes away before its turn", async () => {
    answer = () => {
      rmSync(join(directory, "1.1-1.del"), { force: true });
      return done;
    };
    put("a", "b", "c");
    await spool.drain();
    expect([requested, files()]).toEqual([["a", "c"], []]);
    expect(lines).toEqual(["warn Replaying a spooled DEL failed; it stays in the spool"]);
  });

  const makeLarge = (path: string): void => {
    writeFileSync(path, "");
    truncateSync(path, MAX_HEAD_BYTES + MAX_BODY_BYTES + 1);
  };
  it.each<[what: string, make: (path: string) => unknown]>([
    ["a directory", (path) => mkdirSync(path)],
    ["a pipe without a writer", (path) => execFileSync("mkfifo", [path])],
    ["a link to an endless file", (path) => symlinkSync("/dev/zero", path)],
    ["a link to nothing", (path) => symlinkSync("nothing", path)],
    ["a file larger than any request", makeLarge],
  ])("sets %s aside, and goes on", async (_what, make) => {
    make(join(directory, "0.0-1.del"));
    put("a");
    await spool.drain();
    expect([requested, files()]).toEqual([["a"], ["0.0-1.del.rejected"]]);
    expect(lines).toEqual(["error A spooled request cannot be read; renamed it to *.rejected"]);
  });

  it("has nothing while its directory is gone", async () => {
    rmSync(directory, { recursive: true });
    await spool.drain();
    expect(spool.count()).toEqual({ waiting: 0, rejected: 0 });
  });
});
