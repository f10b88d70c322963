/**
 * One report about a whole cluster: its agents' findings about their nodes, and the findings that take all agents and
 * the API server.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { INVALID } from "../../findings/conditions.ts";
import { type ClusterFacts, findClusterDamage } from "../../findings/find-cluster-damage.ts";
import { AGENT_PROBLEMS, findUnread } from "../../findings/host/check-agent.ts";
import { keyOf } from "../../findings/problem.ts";
import type { KubeApi } from "../../kubernetes/kube-api.ts";
import { listSome } from "../../lib/describe.ts";
import { decode } from "../../lib/schema.ts";
import type { CheckRecord, CheckReport } from "../../records/check-record.ts";
import type { Finding } from "../../records/finding.ts";
import { type AgentPod, askAgents, type ClusterOptions, isRunning, listAgents } from "../cluster-agents.ts";
import { tryTo } from "../read-objects.ts";
import { agentRecord, nodeOf, ofNode } from "./check-node.ts";
import { findOpen } from "./find-open.ts";
import { readCluster } from "./read-cluster.ts";

/** Between the two readings of the API server, so that another controller leads by then: milliseconds. */
const CLUSTER_RECHECK_MS = 3_000;

/** Most nodes that one finding names. */
const MAX_NODES = 20;

/** The words by which an agent's berthctl prints its record, with the addresses on its NICs. */
const RECORD_WORDS = ["check", "--record"];

interface CheckOptions {
  readonly isRepair: boolean;
  /** More words for the agents' berthctl. */
  readonly words: readonly string[];
  /** Finds more problems of a whole cluster. */
  readonly more: (facts: ClusterFacts) => Promise<readonly Finding[]>;
}

/**
 * Rejects if there is no agent, or the API server's allocations cannot be read. With `options.node` only that node's
 * agent is asked. `isRepair`: the agents repair drift first.
 */
export async function checkCluster(
  api: KubeApi,
  options: ClusterOptions,
  { isRepair, words: given, more }: CheckOptions,
): Promise<CheckReport> {
  const agents = await listAgents(options);
  const words = [...RECORD_WORDS, ...given, ...(isRepair ? ["--repair"] : [])];
  const { records, silent } = await askForRecords(agents, options, words);
  const facts = await readCluster(api);
  const ofCluster =
    options.node === undefined
      ? [
          ...facts.stated,
          ...(await findTwice({ api, options, agents }, facts, records)),
          ...(await more(facts)),
          ...(await findOpen(api, agents[0]?.namespace ?? "")),
        ]
      : [];
  return {
    time: new Date().toISOString(),
    cluster: facts.cluster,
    nodes: records.map(nodeOf),
    findings: [
      ...joinSettings(records.flatMap(ofNode).filter(({ text }) => !ofCluster.some((each) => isRepeated(each, text)))),
      ...ofCluster,
      ...silent,
      ...findUnread(facts.problems),
    ],
  };
}

/** Whether an agent says the same: its sentence about an object that it cannot use has the object and the fault. */
function isRepeated({ object, text }: Finding, said: string): boolean {
  if (!text.startsWith(INVALID)) return said === text;
  const [kind, name] = object.split(" ");
  return said.includes(`${kind} "${name}"`) && said.endsWith(text.slice(INVALID.length));
}

/** All nodes have the same settings: what several say about them is one finding, with their names. */
function joinSettings(findings: readonly Finding[]): Finding[] {
  const ofSettings = findings.filter(({ remedy }) => remedy === AGENT_PROBLEMS.settings.remedy);
  const said = Map.groupBy(ofSettings, ({ text }) => text);
  return findings.flatMap((finding) => {
    const { node, text } = finding;
    const nodes = (said.get(text) ?? []).map((same) => same.node);
    if (nodes.length < 2) return finding;
    return node === nodes[0] ? { ...finding, node: "", text: `${text} (nodes ${listSome(nodes, MAX_NODES)})` } : [];
  });
}

async function askForRecords(
  agents: readonly AgentPod[],
  options: ClusterOptions,
  words: readonly string[] = RECORD_WORDS,
) {
  const records: CheckRecord[] = [];
  const silent = agents
    .filter((agent) => !isRunning(agent))
    .map(({ node, phase }) => AGENT_PROBLEMS.notRunning({ phase }, { node }));
  for (const { node, exitCode, stdout, error } of await askAgents(agents.filter(isRunning), words, options)) {
    const record = exitCode <= 1 ? decodeRecord(stdout) : undefined;
    if (record?.node === node) records.push(record);
    else if (record !== undefined) silent.push(AGENT_PROBLEMS.otherName({ name: record.node }, { node }));
    else {
      const answer = `its agent did not answer: ${error || `exit code ${exitCode}`}`;
      silent.push(AGENT_PROBLEMS.silent({ answer }, { node, remedy: "See the log of the agent's pod" }));
    }
  }
  return { records, silent: silent.sort((a, b) => (a.node < b.node ? -1 : 1)) };
}

function decodeRecord(text: string): CheckRecord | undefined {
  const decoded = tryTo(() => decode(agentRecord, JSON.parse(text)));
  return decoded?.ok ? decoded.value : undefined;
}

interface Cluster {
  readonly api: KubeApi;
  readonly options: ClusterOptions;
  readonly agents: readonly AgentPod[];
}

/**
 * A change during the check is no finding: the API server is read again, and nodes that have an address of a finding
 * are asked again.
 */
async function findTwice(
  { api, options, agents }: Cluster,
  facts: ClusterFacts,
  records: readonly CheckRecord[],
): Promise<Finding[]> {
  const named = new Set(agents.map(({ node }) => node));
  const first = findClusterDamage({ facts, records, agents: named });
  if (first.length === 0) return [];
  await sleep(CLUSTER_RECHECK_MS);
  const [before, addresses] = [new Set(first.map(keyOf)), new Set(first.map(({ address }) => address))];
  const hasOne = ({ used = [] }: CheckRecord): boolean => used.some(({ address }) => addresses.has(address));
  const nodes = new Set(records.filter(hasOne).map(({ node }) => node));
  const again = await askForRecords(
    agents.filter(({ node }) => nodes.has(node)),
    options,
  );
  const now = [...records.filter(({ node }) => !nodes.has(node)), ...again.records];
  const found = findClusterDamage({ facts: await readCluster(api), records: now, agents: named });
  return found.filter((finding) => before.has(keyOf(finding)));
}
