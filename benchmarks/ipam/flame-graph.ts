/**
 * Distribution of the time of an ADD and its DEL: `node benchmarks/ipam/flame-graph.ts [PAIRS]` profiles an agent
 * while the shim makes calls, and draws docs/develop/ipam-add.svg from the samples of its threads.
 * Effects: an agent, one network namespace, docs/develop/ipam-add.svg.
 */
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../scripts/setup/paths.mjs";
import { startAgent } from "../../test/lab/agent.ts";
import { berthBin } from "../../test/lab/cnitool.ts";
import { createNetns } from "../../test/lab/netns.ts";
import { drawProfiles, nowUs, profilingOptions } from "../harness/flame-graph.ts";
import { runBatch } from "../harness/runner.ts";
import { writeNetConf } from "./berth.ts";
import { callEnvironment } from "./contestant.ts";

const PAIRS_AT_ONCE = 100;
const WARM_UP_PAIRS = 500;

const POOL = `apiVersion: ipam.vendor.io/v1
kind: IPPool
metadata: {name: bench}
spec: {subnet: 10.9.0.0/24, ips: [10.9.0.2-10.9.0.254], gateway: 10.9.0.1, default: true, cooldown: 0s}
`;

async function main(pairs: number): Promise<void> {
  const directory = join(root, ".scratch", `flame-${process.pid}`);
  mkdirSync(directory, { recursive: true });
  const netns = await createNetns(`berth-flame-${process.pid}`);
  try {
    const fromUs = await runProfiled(directory, netns.path, pairs);
    const subject = "One ADD and its DEL of IPAM";
    drawProfiles({ directory, fromUs, pairs, subject, svgPath: join(root, "docs", "develop", "ipam-add.svg") });
  } finally {
    await netns.delete();
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Returns when the measured calls began. */
async function runProfiled(directory: string, netnsPath: string, pairs: number): Promise<number> {
  const agent = await startAgent({ config: { "pool.yaml": POOL }, nodeOptions: profilingOptions(directory) });
  try {
    const place = { directory, netnsPath };
    const stdinFile = writeNetConf(place);
    const run = async (command: "ADD" | "DEL", first: number): Promise<void> => {
      const env = callEnvironment(command, place, agent.env);
      await runBatch({
        subject: { path: join(berthBin, "berth"), stdinFile, env },
        atOnce: 1,
        first,
        count: PAIRS_AT_ONCE,
      });
    };
    let fromUs = 0;
    for (let done = 0; done < WARM_UP_PAIRS + pairs; done += PAIRS_AT_ONCE) {
      if (done === WARM_UP_PAIRS) fromUs = nowUs();
      await run("ADD", done);
      await run("DEL", done);
    }
    return fromUs;
  } finally {
    await agent.delete();
  }
}

await main(Number(process.argv[2] ?? 5_000));
