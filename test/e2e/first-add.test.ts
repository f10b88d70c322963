/** What must not be in the way of the first pod's ADD after a start. */
import { statSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { AGENT_SETTINGS } from "../../host/bin/run-main.ts";
import { startAgent } from "../lab/agent.ts";
import { CONF, ipPool } from "../lab/manifests.ts";
import { eventually } from "../lab/netns-world.ts";

/** Of the main thread: V8 names each isolate in the lines that it prints, and the main thread's collection is the first of all. */
function collectionsOf(output: string): string[] {
  const lines = output.split("\n").filter((line) => /Scavenge|Mark-Compact/.test(line));
  const [, isolate = ""] = /^\[\d+:(0x[0-9a-f]+)/.exec(lines[0] ?? "") ?? [];
  return lines.filter((line) => line.includes(isolate));
}

const CONFIG = { "conf.yaml": CONF, "pool.yaml": ipPool("blue", "10.6.0.0/16", { ips: ["10.6.0.10-10.6.0.200"] }) };

it("V8 collects the young generation only before the agent answers", async () => {
  const agent = await startAgent({
    config: CONFIG,
    nodeOptions: [...AGENT_SETTINGS.options, "--trace-gc"],
  });
  try {
    const atAnswer = collectionsOf(agent.stderr());
    expect(atAnswer).not.toEqual([]);
    expect(atAnswer.filter((line) => line.includes("Mark-Compact"))).toEqual([]);
    // At rest it collects all: what is read here is what V8 says of that.
    const later = await eventually(
      async () => collectionsOf(agent.stderr()),
      (found) => found.some((line) => line.includes("Mark-Compact")),
    );
    expect(later.length).toBeGreaterThan(atAnswer.length);
  } finally {
    await agent.delete();
  }
});

it("the registry's log is begun, which takes two fsyncs, before there is a call", async () => {
  const agent = await startAgent({ config: CONFIG });
  const bytesOfLog = (): number =>
    statSync(join(agent.state, "registry.sqlite-wal"), { throwIfNoEntry: false })?.size ?? 0;
  try {
    await agent.stop();
    expect(bytesOfLog()).toBe(0);
    await agent.start();
    await expect.poll(bytesOfLog, { timeout: 900, interval: 10 }).toBeGreaterThan(0);
  } finally {
    await agent.delete();
  }
});
