/** Reports of the built agent to the service manager that started it; the test plays the manager's socket. */
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, onTestFinished } from "vitest";
import { loadNative } from "../../host/kernel/native.ts";
import { type Agent, startAgent } from "../lab/agent.ts";
import { temporaryDirectory } from "../world/temporary-directory.ts";

const AF_UNIX = 1;
const SOCK_DGRAM = 2;
const MSG_DONTWAIT = 0x40;
const WATCHDOG_MS = 300;

const native = loadNative();
let directory: string;
let manager: number;
let agent: Agent | undefined;
const received: string[] = [];

/** Binds the socket: a path, or "@" and a name of the abstract namespace. */
function listen(path: string): void {
  const name = path.startsWith("@") ? `\0${path.slice(1)}` : `${path}\0`;
  manager = native.socket(AF_UNIX, SOCK_DGRAM, 0);
  expect(native.bind(manager, Buffer.concat([Buffer.from([AF_UNIX, 0]), Buffer.from(name)]))).toBe(0);
}

/** Everything that has arrived since the test began. */
function messages(): readonly string[] {
  const into = Buffer.alloc(1_024);
  for (;;) {
    const length = native.recv(manager, into, MSG_DONTWAIT);
    if (length < 0) return received;
    received.push(into.toString("utf8", 0, length));
  }
}

beforeEach(() => {
  directory = temporaryDirectory("berth-notify-", onTestFinished);
});

afterEach(async () => {
  await agent?.delete();
  agent = undefined;
  native.close(manager);
  received.length = 0;
});

it.each([
  ["a path", () => join(directory, "notify")],
  ["an abstract address", () => `@berth-notify-${process.pid}`],
])("a manager at %s learns when the agent is ready, that it lives, and that it stops", async (_, place) => {
  listen(place());
  const env = { NOTIFY_SOCKET: place(), WATCHDOG_USEC: `${WATCHDOG_MS * 1_000}` };
  agent = await startAgent({ config: {}, env });
  await expect.poll(() => messages().length, { timeout: 30_000 }).toBeGreaterThan(2);
  expect(new Set(messages())).toEqual(new Set(["READY=1", "WATCHDOG=1"]));
  expect(await agent.stop()).toBe(0);
  expect(messages().at(-1)).toBe("STOPPING=1");
});

it("a manager without a watchdog gets no messages in between", async () => {
  listen(join(directory, "notify"));
  agent = await startAgent({ config: {}, env: { NOTIFY_SOCKET: join(directory, "notify") } });
  expect(await agent.stop()).toBe(0);
  expect(messages()).toEqual(["READY=1", "STOPPING=1"]);
});

it("an agent whose manager does not listen works as without one", async () => {
  listen(join(directory, "other"));
  agent = await startAgent({ config: {}, env: { NOTIFY_SOCKET: join(directory, "notify"), WATCHDOG_USEC: "3000000" } });
  expect(await agent.get("/v1/health")).toMatchObject({ status: "ready" });
  expect(await agent.stop()).toBe(0);
});
