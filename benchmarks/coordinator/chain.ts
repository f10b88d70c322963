/**
 * The whole chain of a NIC as a runtime executes it: `macvlan` with its IPAM, then `coordinator` with the result of it, against
 * `macvlan` with `host-local` and nothing after it.
 * Effects: runs plugins in pods that it makes.
 */
import { join } from "node:path";
import { type Batch, type BatchOutcome, runBatch, runBatches, type Sample, type Subject } from "../harness/runner.ts";
import { berthIpam, coordinatorConf, hostLocalIpam, mainConf, PLAIN } from "./configuration.ts";
import type { Node } from "./node.ts";
import { pluginStep, writeConf } from "./pods.ts";

export interface ChainRow {
  readonly name: string;
  readonly node: string;
  readonly samples: Sample[];
}

export const REFERENCE = "macvlan + host-local";
export const WITHOUT_COORDINATOR = "macvlan + berth";
export const WHOLE = "macvlan + berth + coordinator";

interface Chain {
  readonly row: ChainRow;
  readonly add: Subject;
  readonly del: Subject;
}

export interface ChainCourse {
  readonly rounds: number;
  /** Triples in a round, after one round that is not measured: each chain once, in an order that changes. */
  readonly triples: number;
}

export async function measureChains(nodes: readonly Node[], course: ChainCourse): Promise<ChainRow[]> {
  const all = nodes.map((node) => ({ node, chains: chainsOf(node) }));
  for (let round = 0; round <= course.rounds; round++) {
    for (const { node, chains } of all) await runRound(node, chains, course.triples, round > 0);
  }
  return all.flatMap(({ chains }) => chains.map(({ row }) => row));
}

function chainsOf(node: Node): Chain[] {
  const hostLocal = writeConf(
    node,
    "host-local.json",
    mainConf("reference", hostLocalIpam(join(node.directory, "ipam"))),
  );
  const berth = writeConf(node, "berth.json", mainConf(PLAIN, berthIpam(PLAIN)));
  const coordinator = writeConf(node, "coordinator.json", coordinatorConf(PLAIN, false, "{prevResult}"));
  const alone = writeConf(node, "coordinator-del.json", coordinatorConf(PLAIN, false));
  const main = (command: "ADD" | "DEL", stdinFile: string) => pluginStep(node, "macvlan", command, stdinFile);
  const row = (name: string): ChainRow => ({ name, node: node.name, samples: [] });
  return [
    { row: row(REFERENCE), add: main("ADD", hostLocal), del: main("DEL", hostLocal) },
    { row: row(WITHOUT_COORDINATOR), add: main("ADD", berth), del: main("DEL", berth) },
    {
      row: row(WHOLE),
      add: { ...main("ADD", berth), next: [pluginStep(node, "coordinator", "ADD", coordinator)] },
      del: { ...pluginStep(node, "coordinator", "DEL", alone), next: [main("DEL", berth)] },
    },
  ];
}

/** ADDs in turn on fresh pods, then, unmeasured, the DELs. */
async function runRound(node: Node, chains: readonly Chain[], triples: number, measured: boolean): Promise<void> {
  const count = triples * chains.length;
  const first = await node.pods.make(count, () => ({ kind: "none" }));
  const turns = Array.from({ length: count }, (_, index) => {
    const triple = Math.floor(index / chains.length);
    const chain = chains[(index + triple) % chains.length];
    if (chain === undefined) throw new Error("A turn without a chain");
    return { chain, number: first + index };
  });
  const added = await runBatches(
    turns.map(({ chain, number }) => one(chain.add, number)),
    node.netns,
  );
  if (measured) turns.forEach(({ chain }, index) => void chain.row.samples.push(...samplesOf(added[index])));
  for (const { chain, number } of turns) await runBatch(one(chain.del, number), node.netns);
}

function samplesOf(outcome: BatchOutcome | undefined): readonly Sample[] {
  return outcome?.samples ?? [];
}

function one(subject: Subject, first: number): Batch {
  return { subject, atOnce: 1, first, count: 1 };
}
