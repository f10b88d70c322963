import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type Dispatched, LARGE_PAUSE_MS } from "../../../../host/agent/server/dispatcher.ts";
import { SOCKET_ANSWER_MS } from "../../../../host/agent/server/socket-lock.ts";
import { listenOnSocket, SILENCE_GRACE_MS, type SocketServer } from "../../../../host/agent/server/socket-server.ts";
import { SOCKET_RECHECK_MS, watchSocket } from "../../../../host/agent/server/socket-watch.ts";
import { MAX_NETWORK_CONFIG_BYTES } from "../../../../host/cni/net-conf.ts";
import { noFaults } from "../../../../host/lib/fault.ts";
import { recordLog, until } from "../../../world/recorded-log.ts";

/** Ends of the pauses after large requests, which last until a test calls them. */
const pauses = vi.hoisted((): (() => void)[] => []);
vi.mock("node:timers/promises", async (load) => {
  const timers = await load<typeof import("node:timers/promises")>();
  const pause = () => new Promise<void>((resolve) => pauses.push(resolve));
  return { ...timers, setTimeout: (ms: number) => (ms === LARGE_PAUSE_MS ? pause() : timers.setTimeout(ms)) };
});

/** A moment, in which arrived bytes are read, however late the timer is. */
async function pass(): Promise<void> {
  await sleep(20);
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
}

let path: string;
let server: SocketServer;
let lines: string[];
/** Container IDs in the order of their calls. */
let requested: string[];
let undone: string[];
let waiting: Map<string, (answer: Dispatched) => void>;
let beforeAdd: () => Promise<void>;

/** A server whose calls end when the test says so. */
beforeEach(async () => {
  path = join(mkdtempSync(join(tmpdir(), "berth-socket-")), "run", "agent.sock");
  const recorded = recordLog();
  lines = recorded.lines;
  [requested, undone, waiting, beforeAdd] = [[], [], new Map(), async () => {}];
  server = await listenOnSocket({
    ...{ path, beforeAdd: () => beforeAdd(), faults: noFaults, log: recorded.log },
    dispatcher: {
      translate: (call) => call,
      dispatch: ({ headers }) => {
        const containerId = String(headers["cni-containerid"]);
        requested.push(containerId);
        return new Promise((resolve) => waiting.set(containerId, resolve));
      },
    },
    inspect: async () => ({ status: 200, body: "{}" }),
  });
});

afterEach(async () => {
  for (const containerId of waiting.keys()) answer(containerId);
  await server.close();
  rmSync(join(path, "..", ".."), { recursive: true });
});

/** Lets the call of this container end. */
function answer(containerId: string, given: Partial<Dispatched> = {}): void {
  const undo = async (): Promise<void> => void undone.push(containerId);
  waiting.get(containerId)?.({ status: 200, body: "{}", undo, ...given });
}

/** A call of that container which has arrived. */
async function arrive(containerId: string) {
  const caller = call(post(containerId));
  await until(() => requested.includes(containerId));
  return caller;
}

function post(containerId: string): string {
  const head = `POST /v1/cni/berth HTTP/1.1\r\nHost: b\r\nCNI-Command: ADD\r\nCNI-ContainerID: ${containerId}\r\n`;
  return `${head}Content-Length: 2\r\n\r\n{}`;
}

function call(text: string) {
  const socket = connect(path);
  const chunks: Buffer[] = [];
  socket.on("data", (chunk: Buffer) => chunks.push(chunk));
  socket.on("error", () => {});
  const received = new Promise<string>((resolve) => {
    socket.once("close", () => resolve(Buffer.concat(chunks).toString()));
  });
  socket.write(text);
  return { socket, received };
}

/** Sends the text in so many pieces, with a pause between them. */
async function callInPieces(text: string, pieces: number) {
  const length = Math.ceil(text.length / pieces);
  const caller = call(text.slice(0, length));
  for (let at = length; at < text.length; at += length) {
    await pass();
    caller.socket.write(text.slice(at, at + length));
  }
  return caller;
}

describe("the socket server", () => {
  it.each([1, 2])("answers a request that comes in pieces: %i, and takes nothing back", async (pieces) => {
    const { received } = await callInPieces(post("c1"), pieces);
    await until(() => requested.length === 1);
    answer("c1", { notice: "line\r\nX: 1 ü" });
    expect(await received).toMatch(/^HTTP\/1\.1 200 OK\r\n(.+\r\n)*Berth-Notice: line X: 1 +\r\n(.+\r\n)*\r\n\{\}$/);
    expect(undone).toEqual([]);
  });

  it.each([
    { when: "in one piece", text: "GET /v1/health HTTP/1.1\r\nHost: b\r\n\r\n", pieces: 1 },
    { when: "in two pieces", text: "GET /v1/health HTTP/1.1\r\nHost: b\r\n\r\n", pieces: 2 },
    { when: "with a body", text: "GET /v1/health HTTP/1.1\r\nHost: b\r\nContent-Length: 2\r\n\r\n{}", pieces: 1 },
  ])("answers a question that comes $when", async ({ text, pieces }) => {
    const { received } = await callInPieces(text, pieces);
    expect(await received).toMatch(/^HTTP\/1\.1 200 OK\r\nContent-Type: application\/json\r\n(.+\r\n)*\r\n\{\}$/);
  });

  it.each([1, 2])("undoes the ADD of a caller that hung up; pieces: %i", async (pieces) => {
    const { socket, received } = await callInPieces(post("c1"), pieces);
    await until(() => requested.length === 1);
    socket.destroy();
    await received;
    await pass();
    answer("c1");
    await until(() => undone.length > 0);
    expect(undone).toEqual(["c1"]);
    expect(lines).toEqual(["warn The caller hung up before the answer; undoing the ADD"]);
  });

  it("undoes an ADD whose answer a caller has not read to the end", async () => {
    const { socket } = call(post("c1"));
    socket.pause();
    await until(() => requested.length === 1);
    answer("c1", { body: "x".repeat(4_000_000) });
    await pass();
    expect(undone).toEqual([]);
    socket.destroy();
    await until(() => undone.length > 0);
  });

  it("serves a caller that connects long before it asks", async () => {
    const { socket, received } = call("");
    await sleep(SILENCE_GRACE_MS + 100);
    socket.write(post("c1"));
    await until(() => requested.length === 1);
    answer("c1");
    expect(await received).toContain("200 OK");
  });

  it("reads large requests apart from each other, and small ones between them", async () => {
    const size = MAX_NETWORK_CONFIG_BYTES + 1;
    const large = (id: string): string => post(id).replace("2\r\n\r\n{}", `${size}\r\n\r\n${" ".repeat(size)}`);
    for (const id of ["l1", "l2", "l3"]) call(large(id));
    for (const [at, id] of ["c1", "c2"].entries()) {
      await until(() => requested.length > 2 * at);
      await arrive(id);
      await pass();
      await until(() => pauses.length > 0);
      pauses.shift()?.();
    }
    await until(() => requested.length === 5);
    expect(requested.map(([kind]) => kind).join("")).toBe("lclcl");
  });

  it("does not wait for a caller that says nothing", async () => {
    const { received } = call("");
    await pass();
    await server.close();
    expect(await received).toBe("");
  });

  it("an ADD is refused, not lost, when the work before it fails", async () => {
    beforeAdd = () => Promise.reject(new Error("no spool"));
    expect(await call(post("c1")).received).toMatch(/^HTTP\/1\.1 503 .*"code":11/s);
    expect(requested).toEqual([]);
  });

  it("closes when the calls under way have ended, and removes its own socket only", async () => {
    const { received } = await arrive("c1");
    rmSync(path);
    writeFileSync(path, "another agent's");
    const closed = server.close();
    answer("c1");
    expect(await received).toContain("200 OK");
    await closed;
    expect(existsSync(path)).toBe(true);
  });

  it("answers all that had connected when it closes, though it had accepted none of them", async () => {
    const callers = Array.from({ length: 50 }, (_, index) => call(post(`c${index}`)));
    // connect(2) has put them into the kernel's queue; the loop has had no turn to take them out.
    const closed = server.close();
    expect(existsSync(path)).toBe(false);
    await until(() => requested.length === callers.length);
    for (const containerId of requested) answer(containerId);
    const received = await Promise.all(callers.map((caller) => caller.received));
    expect(received.filter((text) => !text.startsWith("HTTP/1.1 200 OK"))).toEqual([]);
    await closed;
    expect(readdirSync(join(path, ".."))).toEqual([]);
  });

  it("names the loss of its socket, and binds it anew beside calls that go on", async () => {
    expect(server.findLoss()).toBeUndefined();
    const { received } = await arrive("c1");
    rmSync(join(path, ".."), { recursive: true });
    expect(server.findLoss()).toBe("removed");
    await server.restore();
    expect(server.findLoss()).toBeUndefined();
    rmSync(path);
    writeFileSync(path, "");
    expect(server.findLoss()).toBe("replaced");
    await server.restore();
    const second = await arrive("c2");
    for (const containerId of requested) answer(containerId);
    for (const text of [await received, await second.received]) expect(text).toContain("200 OK");
    expect(readdirSync(join(path, ".."))).toEqual(["agent.sock"]);
  });
});

it("another agent that has the lock for a moment, while it asks whether this one answers, does not end this one; one that keeps it does", async () => {
  const { log } = recordLog();
  let holder: string | undefined = "process 7";
  const deaths: string[] = [];
  const watch = watchSocket({
    path: "/run/a.sock",
    lock: { ensure: () => holder },
    server: { findLoss: () => undefined, restore: async () => {} },
    onDeath: ({ message }) => deaths.push(message),
    log,
  });
  await sleep(SOCKET_RECHECK_MS + 200);
  holder = undefined;
  await sleep(SOCKET_RECHECK_MS + SOCKET_ANSWER_MS);
  expect(deaths).toEqual([]);
  holder = "process 8";
  await until(() => deaths.length > 0);
  expect(deaths).toEqual(["Socket /run/a.sock was taken by another agent (process 8); this agent exits"]);
  await watch.close();
});
