/**
 * The whole chain of a NIC as a runtime executes it: `macvlan` with its IPAM, then `coordinator` with the result of
 * it, against `macvlan` with `host-local` and nothing after it.
 * Effects: runs plugins in pods that it makes.
 */
import { join } from "node:path";
import { root } from "../../scripts/setup/paths.mjs";
import { type Batch, type BatchOutcome, runBatches, type Sample, type Step, type Subject } from "../harness/runner.ts";
import { berthIpam, coordinatorConf, hostLocalIpam, mainConf, PLAIN } from "./configuration.ts";
import type { Node } from "./node.ts";
import { pluginStep, podEnvironment, writeConf } from "./pods.ts";

export interface ChainRow {
  readonly name: string;
  readonly node: string;
  /** ADDs, one at a time. */
  readonly samples: Sample[];
  /** DELs, one at a time. */
  readonly dels: Sample[];
}

export const REFERENCE = "macvlan + host-local";
export const WITHOUT_COORDINATOR = "macvlan + berth";
export const WHOLE = "macvlan + berth + coordinator";

export interface Chain {
  readonly row: ChainRow;
  readonly add: Subject;
  readonly del: Subject;
  /** A pod's life: ADD, DEL, and its namespace deleted, as a runtime does at once. */
  readonly pair: Subject;
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

export function chainsOf(node: Node): Chain[] {
  const hostLocal = writeConf(
    node,
    "host-local.json",
    mainConf("reference", hostLocalIpam(join(node.directory, "ipam"))),
  );
  const berth = writeConf(node, "berth.json", mainConf(PLAIN, berthIpam(PLAIN)));
  const coordinator = writeConf(node, "coordinator.json", coordinatorConf(PLAIN, false, "{prevResult}"));
  const alone = writeConf(node, "coordinator-del.json", coordinatorConf(PLAIN, false));
  const main = (command: "ADD" | "DEL", stdinFile: string) => pluginStep(node, "macvlan", command, stdinFile);
  const chain = (name: string, adds: readonly [Step, ...Step[]], dels: readonly [Step, ...Step[]]): Chain => {
    const subject = ([first, ...next]: readonly [Step, ...Step[]]): Subject => ({ ...first, next });
    const row: ChainRow = { name, node: node.name, samples: [], dels: [] };
    return { row, add: subject(adds), del: subject(dels), pair: subject([...adds, ...dels, unmount]) };
  };
  const unmount = { path: join(root, "dist", "bench", "unmount"), stdinFile: alone, env: podEnvironment(node, "DEL") };
  const [add, del] = [main("ADD", berth), main("DEL", berth)];
  return [
    chain(REFERENCE, [main("ADD", hostLocal)], [main("DEL", hostLocal)]),
    chain(WITHOUT_COORDINATOR, [add], [del]),
    chain(
      WHOLE,
      [add, pluginStep(node, "coordinator", "ADD", coordinator)],
      [pluginStep(node, "coordinator", "DEL", alone), del],
    ),
  ];
}

/** ADDs in turn on fresh pods, then the DELs in the same order. */
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
  const deleted = await runBatches(
    turns.map(({ chain, number }) => one(chain.del, number)),
    node.netns,
  );
  await node.pods.remove(first, count);
  if (!measured) return;
  for (const [index, { chain }] of turns.entries()) {
    chain.row.samples.push(...samplesOf(added[index]));
    chain.row.dels.push(...samplesOf(deleted[index]));
  }
}

function samplesOf(outcome: BatchOutcome | undefined): readonly Sample[] {
  return outcome?.samples ?? [];
}

function one(subject: Subject, first: number): Batch {
  return { subject, atOnce: 1, first, count: 1 };
}
