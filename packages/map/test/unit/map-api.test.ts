import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { expect, it, onTestFinished, vi } from "vitest";
import { ip, prefix, range } from "../../../../test/world/values.ts";
import { createMapApi, findAlerts } from "../../server/map-api.ts";
import { poolsAnswer } from "../../server/map-records.ts";
import { UsageSamples } from "../../server/usage-samples.ts";

const NEARLY = "The pool is nearly full: 9 of 100 addresses are free.";
const FULL = "The pool has no free address: new pods that need it do not start.";
const WHY = "its node was lost, or its block goes back.";
const ONE = `1 address is in quarantine: another machine answered for it, ${WHY}`;
const TWO = `2 addresses are in quarantine: another machine answered for each, ${WHY}`;

it.each([
  [100n, 100n, 0, false, []],
  [100n, 10n, 0, false, []],
  [100n, 9n, 0, false, [NEARLY]],
  [100n, 0n, 0, false, [FULL]],
  [0n, 0n, 0, false, []],
  [100n, 0n, 0, true, []],
  [2n ** 64n, 2n ** 64n - 1_000n, 0, false, []],
  [9n, 8n, 1, false, [ONE]],
  [9n, 0n, 2, true, [TWO]],
] as const)(
  "a pool of %s with %i free, %i in quarantine, generated %s",
  (size, free, quarantined, isGenerated, wanted) =>
    expect(findAlerts({ size, free, quarantined, isGenerated }).map(({ text }) => text)).toEqual(wanted),
);

const used = ["10.6.0.10", "10.6.0.15", "10.6.0.200", "10.6.0.201", "10.6.0.202"];
const pool = { name: "blue", subnet: prefix("10.6.0.0/24"), addressSpace: "", excluded: [], conditions: [] };
const source = {
  ...{ mode: "cluster", refresh: async () => {}, subscribe: () => () => {}, problems: () => [] },
  pools: () => [{ ...pool, ranges: [range("10.6.0.10-10.6.0.15")], isDefault: true, isDisabled: false }],
  reserved: () => [{ name: "db", addressSpace: "", ranges: [range("10.6.0.14-10.6.0.15")] }],
  allocations: () =>
    used.map((text) => ({ ip: ip(text), addressSpace: "", pool: "blue", state: "Bound", holders: [] })),
};

async function ask(path: string) {
  const answer = createMapApi({ source: source as never, samples: new UsageSamples(), version: "1" });
  const query = new URLSearchParams({ pool: "blue" });
  return (await answer(path, { query, viewer: "all", user: "", signal: new AbortController().signal })).body;
}

it("counts only the addresses that the pool gives out, and not those that have left its ranges", async () => {
  const [{ size, free, alerts } = {}] = poolsAnswer.parse(JSON.parse(String(await ask("/api/v1/pools")))).pools;
  expect([size, free, alerts]).toEqual(["6", "3", []]);
});

it("a stream of changes ends for a reader that has not read it yet, and nothing is written after", async () => {
  const body = await ask("/api/v1/changes");
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const response = new ServerResponse(new IncomingMessage(new Socket()));
  const failed = vi.fn();
  response.on("error", failed);
  if (typeof body === "function") body(response);
  await vi.advanceTimersByTimeAsync(600_000);
  expect([response.writableEnded, failed.mock.calls]).toEqual([true, []]);
});
