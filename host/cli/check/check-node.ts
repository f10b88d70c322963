/**
 * Finds the faults of this node: its files, kernel and host programs, then its agent, then the agent's own findings.
 * Only the last needs an agent.
 */
import { hostname } from "node:os";
import { type CheckRecord, type CheckReport, checkRecord, type HostFinding } from "../../records/check-record.ts";
import { AgentError, askForRecord } from "../ask-agent.ts";
import { checkAgent, SEE_LOG, START_AGENT } from "../host-checks/check-agent.ts";
import { diagnoseHost } from "../host-checks/diagnose.ts";
import { hostError } from "../host-checks/finding.ts";
import type { HostPaths } from "../host-checks/host-paths.ts";
import { readHost } from "../host-checks/read-host.ts";
import { readHealth } from "../node-source.ts";

export interface NodeCheck {
  readonly paths: HostPaths;
  /** berthctl's version. */
  readonly version: string;
  /** The agent first restores what it finds as drift. */
  readonly isRepair?: boolean;
  /** The record has the addresses on NICs. */
  readonly withUsed?: boolean;
}

/**
 * The answer of this node: its agent's record with the findings of its host, or only these, and the reason why the
 * agent gives no record.
 */
type NodeAnswer =
  | { readonly record: CheckRecord }
  | { readonly host: readonly HostFinding[]; readonly failure: AgentError };

/** Returns the findings that need no record, and why there can be none. */
export async function checkHost({ paths, version }: NodeCheck): Promise<{
  readonly host: readonly HostFinding[];
  readonly failure?: AgentError;
}> {
  const host = diagnoseHost(readHost(paths));
  try {
    return { host: [...host, ...checkAgent(await readHealth(paths.socket), version)] };
  } catch (error) {
    if (!(error instanceof AgentError)) throw error;
    return { host: error.isAnswer ? [...host, hostError("agent", error.message, SEE_LOG)] : host, failure: error };
  }
}

export async function checkNode(check: NodeCheck): Promise<NodeAnswer> {
  const { host, failure } = await checkHost(check);
  if (failure !== undefined) return { host, failure };
  try {
    return { record: { ...(await askForCheck(check)), host: [...host] } };
  } catch (error) {
    if (error instanceof AgentError) return { host, failure: error };
    throw error;
  }
}

function askForCheck({ paths: { socket }, isRepair = false, withUsed = false }: NodeCheck): Promise<CheckRecord> {
  const [path, method] = isRepair ? (["/v1/repair", "POST"] as const) : (["/v1/check", "GET"] as const);
  return askForRecord(checkRecord, socket, `${path}${withUsed ? "?used" : ""}`, method);
}

/** Returns the report of one node. */
export function reportOfNode(answer: NodeAnswer): CheckReport {
  if ("record" in answer) {
    const { time, cluster } = answer.record;
    return {
      time,
      cluster,
      nodes: [nodeOf(answer.record)],
      notCompared: [],
      findings: ofNode(answer.record),
      problems: [],
    };
  }
  const { host, failure } = answer;
  const node = hostname();
  return {
    time: new Date().toISOString(),
    nodes: [],
    notCompared: [{ node, reason: failure.message, remedy: failure.isAnswer ? SEE_LOG : START_AGENT }],
    findings: ofHost(node, host),
    problems: [],
  };
}

/** Returns what a report says of a node beside its findings. */
export function nodeOf({ findings: _, host: __, used: ___, ...node }: CheckRecord): CheckReport["nodes"][number] {
  return node;
}

/** Returns the findings of one node as those of a report. */
export function ofNode({ node, host = [], findings }: CheckRecord): CheckReport["findings"] {
  return [...ofHost(node, host), ...findings.map((finding) => ({ level: "error" as const, ...finding, node }))];
}

/** Returns findings of a host, or of a cluster, as those of a report. */
export function ofHost(node: string, host: readonly HostFinding[]): CheckReport["findings"] {
  const nothing = { address: "", pool: "", namespace: "", pod: "", interface: "", owner: "", container: "" };
  return host.map(({ check, ...finding }) => ({ kind: check, ...nothing, ...finding, isReleasable: false, node }));
}
