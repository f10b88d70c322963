import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  explainPod,
  explainPool,
  probeHealth,
  showAllocations,
  showHealth,
  showPools,
} from "../../../host/cli/commands.ts";
import { formatTable } from "../../../host/cli/table.ts";

/** An agent that gives these answers by path. */
async function withAgent(answers: Record<string, unknown>, test: (socket: string) => Promise<void>): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "berth-cli-"));
  const socket = join(directory, "agent.sock");
  const server = createServer((request, response) => {
    const answer = answers[request.url ?? ""];
    response.end(typeof answer === "string" ? answer : JSON.stringify(answer));
  });
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  try {
    await test(socket);
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    rmSync(directory, { recursive: true });
  }
}

const QUESTION = { namespace: "default", interface: "eth0", network: "" };
const EXPLAIN = "/v1/explain?pod=web-0&namespace=default&interface=eth0&network=";

describe("berthctl", () => {
  it("health: problems are listed", () => {
    const health = { status: "ready", version: "1", problems: [], spool: { waiting: 0, rejected: 0 } };
    return withAgent({ "/v1/health": health }, async (socket) => {
      expect(await showHealth(socket)).toEqual({ text: "berth-agent 1: ready", ok: true });
    }).then(() =>
      withAgent(
        { "/v1/health": { ...health, problems: ["x"], spool: { waiting: 2, rejected: 1 } } },
        async (socket) => {
          const { text, ok } = await showHealth(socket);
          expect([text.split("\n").slice(1), ok]).toEqual([
            ["- x", "- 2 DELs wait in the spool", "- 1 spooled requests could not be read"],
            false,
          ]);
        },
      ),
    );
  });

  it.each<[status: string, live: boolean, ready: boolean]>([
    ["ready", true, true],
    ["not ready", true, false],
  ])("health --probe: an agent that is %s is live: %s, ready: %s, whatever its problems are", (status, live, ready) => {
    const health = { status, version: "1", problems: ["x"], spool: { waiting: 0, rejected: 1 } };
    return withAgent({ "/v1/health": health }, async (socket) => {
      expect((await probeHealth(socket, "live")).ok).toBe(live);
      expect((await probeHealth(socket, "ready")).ok).toBe(ready);
    });
  });

  it("health --probe: no agent is neither", () =>
    expect(probeHealth("/nonexistent/agent.sock", "live")).rejects.toThrow("No agent answers"));

  it("allocations: continues to the last page", () => {
    const line = {
      address: "10.0.0.1",
      cursor: "10.0.0.1/lab",
      pool: "p",
      state: "Bound",
      namespace: "",
      pod: "",
      interface: "eth0",
      containerId: "c",
    };
    const pages = { "/v1/allocations": [line], "/v1/allocations?after=10.0.0.1%2Flab": [] };
    return withAgent(pages, async (socket) => {
      expect((await showAllocations(socket)).text).toBe(
        "ADDRESS   POOL  STATE  POD  INTERFACE  CONTAINER\n10.0.0.1  p     Bound  -    eth0       c",
      );
    });
  });

  it("allocations and pools: what is in quarantine, and whose it is", () => {
    const line = {
      cursor: "c",
      pool: "p",
      state: "Quarantined",
      namespace: "",
      pod: "",
      interface: "",
      containerId: "",
    };
    const rivals = [{ mac: "02:11:22:33:44:55", parent: "uplink" }, { parent: "" }];
    const lines = rivals.map((quarantine, index) => ({ ...line, address: `10.0.0.${index + 1}`, quarantine }));
    const pool = { name: "p", subnet: "10.0.0.0/29", total: "6", used: "2", free: "4", states: { Quarantined: 2 } };
    const pages = { "/v1/allocations": lines, "/v1/allocations?after=c": [], "/v1/pools": [pool] };
    return withAgent(pages, async (socket) => {
      expect((await showAllocations(socket)).text.split("\n").slice(1)).toEqual([
        "10.0.0.1  p     Quarantined  (02:11:22:33:44:55 behind uplink)",
        "10.0.0.2  p     Quarantined  (unknown MAC)",
      ]);
      expect((await showPools(socket)).text.split("\n")).toEqual([
        "POOL  SUBNET       TOTAL  USED  FREE  COOLING  QUARANTINED  NOTES",
        "p     10.0.0.0/29  6      2     4     0        2",
      ]);
    });
  });

  it("a refusal of the agent is its words, not a crash", () => {
    const refusal = { cniVersion: "1.1.0", code: 107, msg: "The registry could not record the address" };
    const answers = {
      "/v1/health": refusal,
      "/v1/pools": refusal,
      "/v1/allocations": { error: "no" },
      [EXPLAIN]: refusal,
    };
    return withAgent(answers, async (socket) => {
      for (const show of [showHealth, showPools]) {
        await expect(show(socket)).rejects.toThrow("refuses GET /v1/");
        await expect(show(socket)).rejects.toThrow("The registry could not record the address");
      }
      await expect(showAllocations(socket)).rejects.toThrow(/refuses GET \/v1\/allocations: no$/);
      expect(await explainPod(socket, "web-0", QUESTION)).toEqual({
        text: "The registry could not record the address",
        ok: false,
      });
    });
  });

  it("explain pool: its words, or why there are none", () => {
    const refusal = { cniVersion: "1.1.0", code: 100, msg: 'There is no IPPool "b"' };
    const answers = { "/v1/explain?pool=a": { explanation: "pool a" }, "/v1/explain?pool=b": refusal };
    return withAgent(answers, async (socket) => {
      expect(await explainPool(socket, "a")).toEqual({ text: "pool a", ok: true });
      expect(await explainPool(socket, "b")).toEqual({ text: 'There is no IPPool "b"', ok: false });
    });
  });

  it("an answer that is none is said to be none", () =>
    withAgent({ "/v1/pools": "<html>", "/v1/health": "null", [EXPLAIN]: "7" }, async (socket) => {
      await expect(showPools(socket)).rejects.toThrow("answered with status 200 and a body that is not JSON");
      await expect(showHealth(socket)).rejects.toThrow("refuses GET /v1/health: null");
      await expect(explainPod(socket, "web-0", QUESTION)).rejects.toThrow("The agent's answer is not a JSON object");
    }));

  it("without an agent names the socket", async () => {
    await expect(showPools("/nowhere/agent.sock")).rejects.toThrow("No agent answers on /nowhere/agent.sock");
  });

  it("a table of very many rows is one", () => {
    const rows = Array.from({ length: 200_000 }, (_, index) => [`a${index}`, "x"]);
    expect(formatTable(["A", "B"], rows).split("\n")).toHaveLength(200_001);
  });
});
