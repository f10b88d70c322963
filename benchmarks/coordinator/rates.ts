/**
 * Pairs of an ADD and a DEL of the whole chain, several at once: their rate, and the cost of a pair. Each pod's
 * namespace is deleted after its DEL, as a runtime does; the chains take turns.
 * Effects: runs plugins in pods that it makes.
 */
import { daemonCpuMs, mean } from "../../test/lab/statistics.ts";
import { until } from "../../test/lab/waiting.ts";
import { runBatch, type Sample } from "../harness/runner.ts";
import { chainsOf } from "./chain.ts";
import type { Node } from "./node.ts";

export interface RateRow {
  readonly name: string;
  readonly node: string;
  readonly atOnce: number;
  readonly samples: Sample[];
  /** Per round, pairs in a second. */
  readonly perSecond: number[];
  /** Per round, CPU time of a pair: milliseconds. */
  readonly pluginMs: number[];
  readonly agentMs: number[];
  /** Per round, until the last link of the node's pairs was gone after the last DEL: milliseconds. */
  readonly goneMs: number[];
}

export interface RateCourse {
  readonly rounds: number;
  /** In a round, for each chain. */
  readonly pairs: number;
}

const AT_ONCE = [1, 8, 40];

const GONE_MS = 10_000;

/** Measures each chain in each round, in an order that changes; a round before them is not measured. */
export async function measureRates(node: Node, { rounds, pairs }: RateCourse): Promise<RateRow[]> {
  const chains = chainsOf(node);
  const turns = AT_ONCE.flatMap((atOnce) =>
    chains.map(({ row: { name }, pair }) => {
      const row: RateRow = {
        ...{ name, node: node.name, atOnce },
        ...{ samples: [], perSecond: [], pluginMs: [], agentMs: [], goneMs: [] },
      };
      return { pair, row };
    }),
  );
  const links = await countLinks(node);
  for (let round = 0; round <= rounds; round++) {
    for (let index = 0; index < turns.length; index++) {
      const turn = turns[(round + index) % turns.length];
      if (turn === undefined) throw new Error("A round without turns");
      const { pair: subject, row } = turn;
      const first = await node.pods.make(pairs, () => ({ kind: "none" }));
      const before = daemonCpuMs(node.agent.pid);
      const outcome = await runBatch({ subject, atOnce: row.atOnce, first, count: pairs }, node.netns);
      const goneMs = await until("no link of a pod is left", async () => (await countLinks(node)) <= links, GONE_MS);
      if (round === 0) continue;
      row.samples.push(...outcome.samples);
      row.perSecond.push((pairs / outcome.wallMs) * 1000);
      row.pluginMs.push(mean(outcome.samples.map(({ cpuMs }) => cpuMs)));
      row.agentMs.push((daemonCpuMs(node.agent.pid) - before) / pairs);
      row.goneMs.push(goneMs);
    }
  }
  return turns.map(({ row }) => row);
}

async function countLinks({ netns }: Node): Promise<number> {
  return (await netns.ipJson<unknown>("link show")).length;
}
