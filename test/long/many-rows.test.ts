/** The start of an agent of files whose registry has more rows than its heap could hold. */
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it, onTestFinished } from "vitest";
import { prefillBerth } from "../../benchmarks/ipam/prefill-berth.ts";
import { startAgent } from "../lab/agent.ts";
import { CONF, ipPool } from "../lab/manifests.ts";
import { temporaryDirectory } from "../world/temporary-directory.ts";

const ROWS = 260_000;
/** As an object, a row takes some 250 bytes. */
const HEAP_MB = 64;
/** The comparison of all attachments at the start has ended by then. */
const COMPARED_MS = 20_000;

function* addresses(): Generator<string> {
  for (let index = 0; index < ROWS; index++) yield `10.${16 + (index >> 16)}.${(index >> 8) & 255}.${index & 255}`;
}

it("an agent with 260,000 rows starts in a heap of 64 MB, and stays", { timeout: 300_000 }, async () => {
  const stateDir = temporaryDirectory("berth-many-rows-", onTestFinished);
  expect(await prefillBerth({ stateDir, pool: "wide", prefixLength: 12, addresses: addresses() })).toBe(ROWS);
  const config = { "conf.yaml": CONF, "wide.yaml": ipPool("wide", "10.16.0.0/12", { default: true }) };
  const nodeOptions = [`--max-old-space-size=${HEAP_MB}`];
  const agent = await startAgent({ config, stateDir, nodeOptions, readyMs: 60_000 });
  onTestFinished(() => agent.delete());
  await sleep(COMPARED_MS);
  expect(await agent.get("/v1/health")).toMatchObject({ status: "ready", problems: [] });
});
