/**
 * One report about a whole cluster: what its agents find on their nodes, and what only all of them together and the
 * API server show.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type ClusterFacts, findClusterDamage } from "../../findings/find-cluster-damage.ts";
import { keyOf } from "../../findings/problem.ts";
import type { KubeApi } from "../../kubernetes/kube-api.ts";
import { decode } from "../../lib/schema.ts";
import { type CheckRecord, type CheckReport, checkRecord } from "../../records/check-record.ts";
import type { Finding } from "../../records/finding.ts";
import { type AgentPod, askAgents, type ClusterOptions, isRunning, listAgents } from "../cluster-agents.ts";
import { tryTo } from "../cluster-source.ts";
import { nodeOf, ofNode } from "./check-node.ts";
import { findOpen } from "./find-open.ts";
import { readCluster } from "./read-cluster.ts";

/** Between the two readings of the API server: milliseconds. */
const CLUSTER_RECHECK_MS = 2_000;

/** The words by which an agent's berthctl prints its record, with the addresses on its NICs. */
export const RECORD_WORDS = ["check", "--record"];

type NotCompared = CheckReport["notCompared"][number];

interface CheckOptions {
  readonly isRepair?: boolean;
  /** More words for the agents' berthctl. */
  readonly words?: readonly string[];
  /** What else is looked for in a whole cluster. */
  readonly more?: (facts: ClusterFacts) => Promise<readonly Finding[]>;
}

/**
 * Rejects if there is no agent, or the API server's allocations cannot be read. With `options.node` only that node's
 * agent is asked. `isRepair`: the agents first restore what they find as drift.
 */
export async function checkCluster(
  api: KubeApi,
  options: ClusterOptions,
  { isRepair = false, words: given = [], more = async () => [] }: CheckOptions = {},
): Promise<CheckReport> {
  const agents = await listAgents(options);
  const words = [...RECORD_WORDS, ...given, ...(isRepair ? ["--repair"] : [])];
  const { records, notCompared } = await askForRecords(agents, options, words);
  const facts = await readCluster(api);
  const { cluster, problems } = facts;
  const ofNodes = records.flatMap(ofNode);
  const [home] = agents;
  const ofCluster =
    options.node === undefined && home !== undefined
      ? [
          ...facts.stated,
          ...(await findTwice({ api, options, agents, facts, records })),
          ...(await more(facts)),
          ...(await findOpen(api, home.namespace)),
        ]
      : [];
  // Each agent says of a pool that it refuses the same as the pool's condition.
  const texts = new Set(ofCluster.map(({ text }) => text));
  return {
    time: new Date().toISOString(),
    cluster,
    nodes: records.map(nodeOf),
    notCompared: [...notCompared],
    findings: [...ofNodes.filter(({ text }) => !texts.has(text)), ...ofCluster],
    problems: [...problems],
  };
}

async function askForRecords(
  agents: readonly AgentPod[],
  options: ClusterOptions,
  words: readonly string[] = RECORD_WORDS,
) {
  const records: CheckRecord[] = [];
  const notCompared: NotCompared[] = agents
    .filter((agent) => !isRunning(agent))
    .map(({ node, phase }) => ({ node, reason: `the agent's pod is ${phase}` }));
  for (const { node, exitCode, stdout, error } of await askAgents(agents.filter(isRunning), words, options)) {
    const record = exitCode <= 1 ? decodeRecord(stdout) : undefined;
    if (record?.node === node) records.push(record);
    else if (record !== undefined) notCompared.push({ node, reason: `its agent calls itself ${record.node}` });
    else notCompared.push({ node, reason: `its agent did not answer: ${error || `exit code ${exitCode}`}` });
  }
  return { records, notCompared: notCompared.sort((a, b) => (a.node < b.node ? -1 : 1)) };
}

function decodeRecord(text: string): CheckRecord | undefined {
  const decoded = tryTo(() => decode(checkRecord, JSON.parse(text)));
  return decoded?.ok ? decoded.value : undefined;
}

interface TwiceOptions {
  readonly api: KubeApi;
  readonly options: ClusterOptions;
  readonly agents: readonly AgentPod[];
  readonly facts: ClusterFacts;
  readonly records: readonly CheckRecord[];
}

/**
 * A change during the check is no finding: the API server is read again, and nodes that seem to share an address are
 * asked again.
 */
async function findTwice({ api, options, agents, facts, records }: TwiceOptions): Promise<Finding[]> {
  const named = new Set(agents.map(({ node }) => node));
  const before = new Set(findClusterDamage({ facts, records, agents: named }).map(keyOf));
  if (before.size === 0) return [];
  await sleep(CLUSTER_RECHECK_MS);
  const shared = sharedNodes(records);
  const again = await askForRecords(
    agents.filter(({ node }) => shared.has(node)),
    options,
  );
  const now = [...records.filter(({ node }) => !shared.has(node)), ...again.records];
  const found = findClusterDamage({ facts: await readCluster(api), records: now, agents: named });
  return found.filter((finding) => before.has(keyOf(finding)));
}

/** Nodes with an address that another node has, too. */
function sharedNodes(records: readonly CheckRecord[]): Set<string> {
  const used = records.flatMap(({ node, used = [] }) => used.map(({ address }) => ({ address, node })));
  const nodes = [...Map.groupBy(used, ({ address }) => address).values()].map(
    (same) => new Set(same.map(({ node }) => node)),
  );
  return new Set(nodes.filter((each) => each.size > 1).flatMap((each) => [...each]));
}
