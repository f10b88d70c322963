/**
 * The benchmark `node`: ADD and DEL as a node sees them, through libcni from Go, from an agent that has served few
 * pods, and from the same one after many. Berth beside host-local, by turns.
 * Effects: runs plugins and agents; network namespaces; files below .scratch, removed at the end.
 */
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { referenceTool, root } from "../../scripts/setup/paths.mjs";
import { berthIpam, hostLocalIpam, mainEntry, networkList, PLAIN } from "../coordinator/configuration.ts";
import { type Node, openNode } from "../coordinator/node.ts";
import { writeConf } from "../coordinator/pods.ts";
import { sayProgress } from "../harness/progress.ts";
import type { Bench, BenchOptions, BenchReport } from "../harness/report.ts";
import { type CallerBatch, type CallerOutcome, callBatches } from "./caller.ts";
import { AT_ONCE, BERTH, type Cell, describeHeadline, type Kind, PEER, SERVED, tabulate } from "./tabulate.ts";

export const nodeBench: Bench = { name: "node", run: runNode };

/** For each kind, `agents` are measured one after the other, each with so many pods of either contestant. */
interface Course {
  readonly agents: number;
  /** One at a time: few, so that an agent has served hardly more pods at the last than at the first. */
  readonly pods: number;
  readonly podsAtOnce: number;
  /** Number of pods that an agent has served before it is measured, and before it is measured again. */
  readonly served: readonly number[];
}

const FULL: Course = { agents: 4, pods: 15, podsAtOnce: 32, served: SERVED };
const QUICK: Course = { agents: 1, pods: 10, podsAtOnce: 16, served: SERVED };

/** Pods of the peer before it is measured, which has no daemon to warm up. */
const PEER_PODS = 8;

/** Most pods that exist at a time while an agent serves pods that are not measured. */
const LOT = 50;

const KINDS: readonly Kind[] = [
  { name: "IPAM", atOnce: 1 },
  { name: "chain", atOnce: 1 },
  { name: "chain", atOnce: AT_ONCE },
];

async function runNode({ quick }: BenchOptions): Promise<BenchReport> {
  const directory = join(root, ".scratch", `bench-${process.pid}`);
  using stack = new DisposableStack();
  stack.defer(() => rmSync(directory, { recursive: true, force: true }));
  const course = quick ? QUICK : FULL;
  const cells: Cell[] = [];
  for (const kind of KINDS) {
    for (let turn = 0; turn < course.agents; turn++) {
      sayProgress(`${kind.name}, ${kind.atOnce} at once: agent ${turn + 1} of ${course.agents}`);
      const place = join(directory, `${kind.name}-${kind.atOnce}-${turn}`);
      mkdirSync(place, { recursive: true });
      await using life = new AsyncDisposableStack();
      const node = await openNode(life, `bench-${process.pid}`, place, 0);
      cells.push(...(await measureAgent(node, kind, course, turn)));
    }
  }
  return {
    tables: tabulate(cells),
    targets: [],
    headlines: { "README.md": describeHeadline(cells) },
    notes: NOTES,
    versions: { "macvlan and host-local": referenceTool("plugins").version, libcni: referenceTool("cnitool").version },
  };
}

interface Contestant {
  readonly name: typeof PEER | typeof BERTH;
  /** The file of its network list. */
  readonly list: string;
}

/**
 * The peer and Berth: the IPAM by itself, as if it were a main plugin; or the chain of a NIC, which has the
 * coordinator with Berth only.
 */
function contestantsOf(node: Node, kind: Kind): [Contestant, Contestant] {
  const hostLocal = hostLocalIpam(join(node.directory, "ipam"));
  const isAlone = kind.name === "IPAM";
  const peer = networkList("reference", [isAlone ? { type: "host-local", ipam: hostLocal } : mainEntry(hostLocal)]);
  const berth = networkList(PLAIN, [{ type: "berth", ipam: berthIpam(PLAIN) }]);
  return [
    { name: PEER, list: writeConf(node, "peer.conflist", peer) },
    {
      name: BERTH,
      list: isAlone ? writeConf(node, "berth.conflist", berth) : join(node.agent.cniConfDir, `${PLAIN}.conflist`),
    },
  ];
}

/** `turn` decides whose turn is first. */
async function measureAgent(node: Node, kind: Kind, course: Course, turn: number): Promise<Cell[]> {
  const [peer, berth] = contestantsOf(node, kind);
  const contestants = turn % 2 === 0 ? [peer, berth] : [berth, peer];
  const measured = kind.atOnce === 1 ? course.pods : course.podsAtOnce;
  const measure = kind.atOnce === 1 ? measureInTurn : measureAtOnce;
  const cells: Cell[] = [];
  await serve(node, peer, PEER_PODS, kind.atOnce);
  let served = 0;
  for (const wanted of course.served) {
    await serve(node, berth, wanted - served, kind.atOnce);
    const outcomes = await measure(node, contestants, measured);
    for (const [index, { name }] of contestants.entries())
      cells.push({ kind, served: wanted, contestant: name, pods: measured, outcome: outcomes[index] ?? NO_CALLS });
    served = wanted + measured;
  }
  return cells;
}

const NO_CALLS: CallerOutcome = { addMs: [], delMs: [], wallMs: Number.NaN };

/** So many pods come and go. */
async function serve(node: Node, { list }: Contestant, count: number, atOnce: number): Promise<void> {
  for (let left = count; left > 0; left -= LOT) {
    const lot = Math.min(left, LOT);
    const first = await node.pods.make(lot, () => ({ kind: "none" }));
    await callBatches(node, [{ list, verb: "POD", atOnce, first, count: lot }]);
    await node.pods.remove(first, lot);
  }
}

/** One ADD of each in turn, `count` times; then the DELs in the same order. */
async function measureInTurn(node: Node, contestants: readonly Contestant[], count: number): Promise<CallerOutcome[]> {
  const all = count * contestants.length;
  const first = await node.pods.make(all, () => ({ kind: "none" }));
  const calls = (verb: "ADD" | "DEL"): CallerBatch[] =>
    Array.from({ length: all }, (_, index) => {
      const list = contestants[index % contestants.length]?.list ?? "";
      return { list, verb, atOnce: 1, first: first + index, count: 1 };
    });
  const added = await callBatches(node, calls("ADD"));
  const deleted = await callBatches(node, calls("DEL"));
  await node.pods.remove(first, all);
  const mine = (outcomes: readonly CallerOutcome[], place: number): CallerOutcome[] =>
    outcomes.filter((_, index) => index % contestants.length === place);
  return contestants.map((_, place) => ({
    addMs: mine(added, place).flatMap(({ addMs }) => addMs),
    delMs: mine(deleted, place).flatMap(({ delMs }) => delMs),
    wallMs: Number.NaN,
  }));
}

/**
 * Pods that come and go, {@link AT_ONCE} at a time: of one, and then of the other, when nothing of the first is left.
 */
async function measureAtOnce(node: Node, contestants: readonly Contestant[], count: number): Promise<CallerOutcome[]> {
  const outcomes: CallerOutcome[] = [];
  for (const { list } of contestants) {
    const first = await node.pods.make(count, () => ({ kind: "none" }));
    outcomes.push(...(await callBatches(node, [{ list, verb: "POD", atOnce: AT_ONCE, first, count }])));
    await node.pods.remove(first, count);
  }
  return outcomes;
}

const NOTES = [
  "Milliseconds of a call to libcni's AddNetworkList or DelNetworkList, from one process in Go, as container runtimes make them: libcni executes the plugins, hands each the result of the one before, and keeps the last one. The contestants take turns, one ADD each, then one DEL each. `ratio` compares the medians within the run.",
  `A node with thirty pods makes some hundred calls in weeks, and V8 compiles what an agent calls often: so each figure is there twice, of agents that had served ${SERVED.join(" and of those that had served ")} pods of the kind when they were measured. ${FULL.agents} agents for each kind, ${FULL.pods} ADDs and DELs of each one at a time; each agent is new, without anything that V8 has compiled in an earlier start.`,
  "Agents run in the environment of the installed service, with the log levels and the audit log that they have without options, the coordinator's log at its default, `debug`, and the default cooldown. Neither the pool nor host-local's range holds other addresses.",
  "IPAM is called as if it were a main plugin. A chain is macvlan with its IPAM; with Berth the coordinator follows, with services and access to the node, which the peer's pods do not have.",
  `${AT_ONCE} at once: pods that come and go, ADD, DEL and the deletion of the namespace, by all the time that they took.`,
];
