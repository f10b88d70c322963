/**
 * Time that detection adds to an ADD, in pairs: the same call without it and with it, on the same node, one after the
 * other. Early stage: `berth` by itself on a NIC that is down and bare, as `macvlan` has it then. Late stage: the
 * coordinator on a NIC that is ready. And the chain, where the early stage asks and the coordinator need not.
 * Effects: runs plugins in pods that it makes.
 */
import { type Batch, runBatch, runBatches, type Sample, type Subject } from "../harness/runner.ts";
import {
  ASKING,
  berthIpam,
  coordinatorConf,
  mainConf,
  PLAIN,
  rivalAddress,
  TAKEN,
  WINDOW_MS,
} from "./configuration.ts";
import type { Node } from "./node.ts";
import { pluginStep, preparePods, writeConf } from "./pods.ts";
import { openRivals } from "./rivals.ts";

export interface DetectionRow {
  readonly name: string;
  /** Time that detection must take: the window if there is no answer, nothing if there is one. */
  readonly dueMs: number;
  readonly without: readonly Sample[];
  readonly with: readonly Sample[];
}

/** Calls for the pods from `first` on. */
interface Side {
  readonly first: number;
  readonly add: Subject;
  readonly del: Subject;
}

/** `pairs` must be fewer than there are rivals. */
export async function measureDetection(node: Node, pairs: number): Promise<DetectionRow[]> {
  const silences = await measureSilences(node, pairs);
  await using _rivals = await openRivals(node);
  return [...silences, ...(await measureConflicts(node, pairs))];
}

async function measureSilences(node: Node, pairs: number): Promise<DetectionRow[]> {
  const measure = async (name: string, without: Promise<Side>, asking: Promise<Side>): Promise<DetectionRow> =>
    measurePairs(node, { name: `silence, ${name}`, dueMs: WINDOW_MS, sides: [await without, await asking], pairs });
  return [
    await measure("early stage: berth", early(node, PLAIN, pairs), early(node, ASKING, pairs)),
    await measure("late stage: coordinator", late(node, false, pairs), late(node, true, pairs)),
    await measure("the whole chain", chain(node, PLAIN, pairs), chain(node, ASKING, pairs)),
  ];
}

async function measureConflicts(node: Node, pairs: number): Promise<DetectionRow[]> {
  const refused = (side: Side): Side => ({ ...side, add: { ...side.add, exits: 1 } });
  const measure = async (name: string, without: Promise<Side>, asking: Promise<Side>): Promise<DetectionRow> =>
    measurePairs(node, { name: `conflict, ${name}`, dueMs: 0, sides: [await without, refused(await asking)], pairs });
  return [
    await measure("early stage: berth", early(node, PLAIN, pairs), early(node, TAKEN, pairs)),
    await measure("late stage: coordinator", late(node, false, pairs), late(node, true, pairs, rivalAddress)),
  ];
}

/** The coordinator on NICs that are ready. */
function late(node: Node, asks: boolean, count: number, v4?: (index: number) => string): Promise<Side> {
  return preparePods(node, count, { families: "IPv4", asks, ...(v4 === undefined ? {} : { v4 }) });
}

/** `berth` on NICs that are down and bare. */
async function early(node: Node, network: string, count: number): Promise<Side> {
  const conf = writeConf(node, `berth-${network}.json`, mainConf(network, berthIpam(network)));
  const call = (command: "ADD" | "DEL") => pluginStep(node, "berth", command, conf);
  return { first: await node.pods.make(count, () => ({ kind: "bare" })), add: call("ADD"), del: call("DEL") };
}

async function chain(node: Node, network: string, count: number): Promise<Side> {
  const main = writeConf(node, `chain-${network}.json`, mainConf(network, berthIpam(network)));
  const asks = network !== PLAIN;
  const added = writeConf(node, `chain-${network}-add.json`, coordinatorConf(network, asks, "{prevResult}"));
  const deleted = writeConf(node, `chain-${network}-del.json`, coordinatorConf(network, asks));
  return {
    first: await node.pods.make(count, () => ({ kind: "none" })),
    add: { ...pluginStep(node, "macvlan", "ADD", main), next: [pluginStep(node, "coordinator", "ADD", added)] },
    del: { ...pluginStep(node, "coordinator", "DEL", deleted), next: [pluginStep(node, "macvlan", "DEL", main)] },
  };
}

interface Pairs {
  readonly name: string;
  readonly dueMs: number;
  readonly sides: readonly [Side, Side];
  readonly pairs: number;
}

async function measurePairs(node: Node, { name, dueMs, sides, pairs }: Pairs): Promise<DetectionRow> {
  const indices = Array.from({ length: pairs }, (_, index) => index);
  const one = ({ first, add: subject }: Side, index: number): Batch => {
    return { subject, atOnce: 1, first: first + index, count: 1 };
  };
  const batches = indices.flatMap((index) => sides.map((side) => one(side, index)));
  const samples = (await runBatches(batches, node.netns)).flatMap((outcome) => outcome.samples);
  for (const { first, del } of sides) {
    await runBatch({ subject: del, atOnce: 1, first, count: pairs }, node.netns);
    await node.pods.remove(first, pairs);
  }
  const ofSide = (side: number): Sample[] => samples.filter((_, index) => index % sides.length === side);
  return { name, dueMs, without: ofSide(0), with: ofSide(1) };
}
