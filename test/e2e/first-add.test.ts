/** Work that must not be in the way of the first pod's ADD after a start. */
import { statSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { startAgent } from "../lab/agent.ts";
import { CONF, ipPool } from "../lab/manifests.ts";

const CONFIG = { "conf.yaml": CONF, "pool.yaml": ipPool("blue", "10.6.0.0/16", { ips: ["10.6.0.10-10.6.0.200"] }) };

it("the registry's log is begun, which takes two fsyncs, before there is a call", async () => {
  const agent = await startAgent({ config: CONFIG });
  const bytesOfLog = (): number =>
    statSync(join(agent.state, "registry.sqlite-wal"), { throwIfNoEntry: false })?.size ?? 0;
  onTestFinished(() => agent.delete());
  await agent.stop();
  expect(bytesOfLog()).toBe(0);
  await agent.start();
  await expect.poll(bytesOfLog, { timeout: 900, interval: 10 }).toBeGreaterThan(0);
});
