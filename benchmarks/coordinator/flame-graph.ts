/**
 * Distribution of the agent's time for a pod's NIC: `node benchmarks/coordinator/flame-graph.ts [PAIRS]` profiles an
 * agent while chains of macvlan, berth and coordinator attach and detach pods one after the other, and draws
 * docs/develop/coordinator-add.svg.
 * Effects: those of a benchmark's node; docs/develop/coordinator-add.svg.
 */
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../scripts/setup/paths.mjs";
import { drawProfiles, nowUs, profilingOptions } from "../harness/flame-graph.ts";
import { watchSignals } from "../harness/interruption.ts";
import { runBatch } from "../harness/runner.ts";
import { chainsOf, WHOLE } from "./chain.ts";
import { openNode } from "./node.ts";

const PAIRS_AT_ONCE = 50;
const WARM_UP_PAIRS = 100;

async function main(pairs: number): Promise<void> {
  watchSignals();
  const directory = join(root, ".scratch", `flame-${process.pid}`);
  const profiles = join(directory, "profiles");
  mkdirSync(profiles, { recursive: true });
  try {
    const fromUs = await runProfiled(directory, profiles, pairs);
    const subject = "One ADD and its DEL of a pod's NIC (berth, then coordinator)";
    const svgPath = join(root, "docs", "develop", "coordinator-add.svg");
    drawProfiles({ directory: profiles, fromUs, pairs, subject, svgPath });
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Returns when the measured pairs began. */
async function runProfiled(directory: string, profiles: string, pairs: number): Promise<number> {
  const node = await openNode(`flame-${process.pid}`, directory, 0, { nodeOptions: profilingOptions(profiles) });
  try {
    const chain = chainsOf(node).find(({ row }) => row.name === WHOLE);
    if (chain === undefined) throw new Error(`There is no chain "${WHOLE}"`);
    let fromUs = 0;
    for (let done = 0; done < WARM_UP_PAIRS + pairs; done += PAIRS_AT_ONCE) {
      const first = await node.pods.make(PAIRS_AT_ONCE, () => ({ kind: "none" }));
      if (done === WARM_UP_PAIRS) fromUs = nowUs();
      await runBatch({ subject: chain.pair, atOnce: 1, first, count: PAIRS_AT_ONCE }, node.netns);
    }
    return fromUs;
  } finally {
    await node.close();
  }
}

await main(Number(process.argv[2] ?? 300));
