/**
 * One report about a whole cluster: what its agents find on their nodes, and what only all of them together and the
 * API server show.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type ClusterFacts, findClusterDamage } from "../../findings/find-cluster-damage.ts";
import { keyOf, warning } from "../../findings/finding.ts";
import type { KubeApi } from "../../kubernetes/kube-api.ts";
import { decode } from "../../lib/schema.ts";
import { type CheckRecord, type CheckReport, checkRecord } from "../../records/check-record.ts";
import type { Finding } from "../../records/finding.ts";
import { type AgentPod, askAgents, type ClusterOptions, isRunning, listAgents } from "../cluster-agents.ts";
import { nodeOf, ofNode } from "./check-node.ts";
import { findOpen } from "./find-open.ts";
import { readCluster } from "./read-cluster.ts";

/** Between the two readings of the API server: milliseconds. */
const CLUSTER_RECHECK_MS = 2_000;

/** The words by which an agent's berthctl prints its record, with the addresses on its NICs. */
export const RECORD_WORDS = ["check", "--record"];

type NotCompared = CheckReport["notCompared"][number];

interface Answers {
  readonly records: readonly CheckRecord[];
  readonly notCompared: readonly NotCompared[];
}

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
  const named = new Set(agents.map(({ node }) => node));
  const isWhole = options.node === undefined;
  const ofCluster = isWhole ? await findTwice({ api, options, agents, facts, records }) : [];
  const home = agents[0]?.namespace;
  const further = isWhole ? await more(facts) : [];
  const open = isWhole && home !== undefined ? await findOpen(api, home) : [];
  return {
    time: new Date().toISOString(),
    cluster: facts.cluster,
    nodes: records.map(nodeOf),
    notCompared: [...notCompared, ...(isWhole ? withoutAgent(facts, named) : [])],
    findings: [...records.flatMap(ofNode), ...ofCluster, ...further, ...open.map(warnOfOpen)],
    problems: [...facts.problems],
  };
}

function warnOfOpen(text: string): Finding {
  const remedy = 'Set "tenantDefinitions: closed" in vendor-conf if tenants are not trusted with the nodes\' network';
  return warning("open", text, remedy);
}

async function askForRecords(
  agents: readonly AgentPod[],
  options: ClusterOptions,
  words: readonly string[] = RECORD_WORDS,
): Promise<Answers> {
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
  try {
    const decoded = decode(checkRecord, JSON.parse(text));
    return decoded.ok ? decoded.value : undefined;
  } catch {
    return undefined;
  }
}

/** Nodes with addresses in use, or at least with pods' addresses, on which no agent runs. */
function withoutAgent({ nodes, allocations }: ClusterFacts, agents: ReadonlySet<string>): NotCompared[] {
  const inUse = allocations.filter(({ spec }) => spec.state === "Bound").map(({ spec }) => spec.node);
  const missing = [...new Set(inUse)].filter((node) => !agents.has(node) && nodes?.has(node) !== false);
  return missing.sort().map((node) => ({ node, reason: "no agent runs there, and it has addresses" }));
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
