/** `blocks` against an agent with fixed answers, and the shells' completions. */
import { describe, expect, it } from "vitest";
import { createCommands } from "../../../../../host/cli/berthctl.ts";
import { complete } from "../../../../../host/cli/completion.ts";
import { answeringAgent, LINE, POOL, pageOf } from "../../../../../test/lab/answering-agent.ts";
import { addCommands } from "../../../cli/add-commands.ts";

const { answer, answers, jsonOf, linesOf, run } = answeringAgent();

describe("blocks", () => {
  const source = {
    ...{ range: "lan", member: "east", maxBlocks: 4, heard: "2026-11-27T00:00:00.000Z", reason: "HubAway" },
    problem: "the hub cannot be asked, pods get what is leased already",
    blocks: [
      { block: "10.0.0.0/29", state: "Active", total: 6 },
      { block: "10.0.0.8/29", state: "Draining", total: 8 },
    ],
    others: [{ member: "west", blocks: 3, ips: ["10.0.0.16-10.0.0.31", "10.0.0.40-10.0.0.47"] }],
  };
  const of = (address: string, more: object) => ({ ...LINE, address, cursor: address, ...more });
  const noPod = { pod: "", namespace: "" };
  answers({
    "/v1/pools": [{ ...POOL, source }],
    ...pageOf(
      of("10.0.0.1", {}),
      of("10.0.0.9", { pod: "web-1" }),
      of("10.0.0.10", { ...noPod, state: "Cooling" }),
      of("10.0.0.12", { pod: "other", addressSpace: "lab" }),
    ),
  });

  it("lists each cluster's blocks, the reasons that keep a block here, and the hub's last answer", async () => {
    expect((await run("blocks")).code).toBe(0);
    expect(await linesOf("blocks")).toEqual([
      'AddressRange "lan": this cluster, east, has 2 of 4 blocks; others: west 3',
      "  the hub cannot be asked, pods get what is leased already; it answered last at 2026-11-27T00:00:00.000Z",
      "RANGE  BLOCK                CLUSTER  POOL  STATE     USED  FREE  PINNED  BY",
      "lan    10.0.0.0/29          east     p     Active       1     5       -  -",
      "lan    10.0.0.8/29          east     p     Draining     2     6       2  shop/web-1, (Cooling 10.0.0.10)",
      "lan    10.0.0.16-10.0.0.31  west     -     -            -     -       -  -",
      "lan    10.0.0.40-10.0.0.47  west     -     -            -     -       -  -",
      "",
    ]);
  });

  it("prints the same as JSON, and as names", async () => {
    const { ranges, blocks } = await jsonOf("blocks");
    const { problem, heard, reason } = source;
    const told = { problem, heard, reason, others: [{ member: "west", blocks: 3 }] };
    expect(ranges).toEqual([{ name: "lan", member: "east", blocks: 2, maxBlocks: 4, ...told }]);
    const pod = { address: "10.0.0.9", state: "Bound", owner: "shop/web-1" };
    expect(blocks[1]).toMatchObject({ pinnedBy: [pod, { address: "10.0.0.10", state: "Cooling", owner: "" }] });
    expect((await run("blocks", "-o", "name")).out).toMatch(/^10\.0\.0\.0\/29\n/);
  });

  it("without a pool that leases says so", async () => {
    answer({ "/v1/pools": [POOL], ...pageOf(LINE) });
    expect(await run("blocks", "list")).toMatchObject({ code: 0, error: "No pool has spec.source\n" });
  });
});

it.each([
  ["--node n1 blocks re", "release rejoin"],
  ["blocks leave --pool b", "blue black"],
  ["blocks release --hub-kubeconfig ", "files"],
])("%j offers %j", async (line, wanted) => {
  const terminal = { write: () => {}, writeError: () => {}, isColored: false };
  const options = { program: "berthctl", version: "1", words: [], terminal, more: [addCommands] } as const;
  const { root } = await createCommands(options);
  const { candidates, isFile } = await complete(root, line.split(" "), async () => ["blue", "black", "red"]);
  expect(isFile ? "files" : candidates.map(({ value }) => value).join(" ")).toBe(wanted);
});
