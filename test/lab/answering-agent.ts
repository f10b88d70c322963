/** An agent that gives fixed answers, and command lines that ask it. */
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach } from "vitest";
import { runBerthctl } from "./berthctl.ts";

const SPOOL = { waiting: 0, rejected: 0 };
export const HEALTH = { status: "ready", version: "1", mode: "embedded", problems: [], spool: SPOOL };
export const POOL = { name: "p", subnet: "10.0.0.0/29", total: "6", used: "2", free: "4", states: { Quarantined: 2 } };
export const LINE = {
  ...{ address: "10.0.0.1", cursor: "10.0.0.1", pool: "p", state: "Bound", namespace: "shop", pod: "web-0" },
  ...{ interface: "eth0", containerId: "c" },
};

/** Serves while the tests of the calling file run. */
export function answeringAgent() {
  const directory = mkdtempSync(join(tmpdir(), "berth-cli-"));
  const socket = join(directory, "agent.sock");
  let given: Record<string, unknown> = {};
  const server = createServer(({ url = "" }, response) => {
    const found = given[url];
    response.end(typeof found === "string" ? found : JSON.stringify(found));
  });
  beforeAll(async () => {
    await once(server.listen(socket), "listening");
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
    rmSync(directory, { recursive: true });
  });
  /** The agent answers so, by path. */
  const answer = (answers: Record<string, unknown>): void => {
    given = { "/v1/health": HEALTH, ...answers };
  };
  /** A command line that asks that agent. */
  const run = (...words: string[]) => runBerthctl(...words, "--socket", socket);
  return {
    ...{ socket, answer, run },
    /** The same for each test of a block. */
    answers: (all: Record<string, unknown>) => beforeEach(() => answer(all)),
    linesOf: async (...words: string[]) => (await run(...words)).out.split("\n"),
    jsonOf: async (...words: string[]) => JSON.parse((await run(...words, "-o", "json")).out),
  };
}

/** Answers of an agent with these allocations, on one page. */
export const pageOf = (...lines: readonly Partial<typeof LINE>[]) => ({
  "/v1/allocations": lines,
  [`/v1/allocations?after=${encodeURIComponent(lines.at(-1)?.cursor ?? "")}`]: [],
});
