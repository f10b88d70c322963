/**
 * Finds the faults of this node: its files, kernel and host programs, then its agent, then the agent's own findings.
 * Only the last needs an agent.
 */
import { hostname } from "node:os";
import { error } from "../../findings/finding.ts";
import { checkAgent, SEE_LOG, START_AGENT } from "../../findings/host/check-agent.ts";
import { diagnoseHost } from "../../findings/host/diagnose.ts";
import { type CheckRecord, type CheckReport, checkRecord } from "../../records/check-record.ts";
import type { Finding } from "../../records/finding.ts";
import { AgentError, askForRecord } from "../ask-agent.ts";
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
  | { readonly host: readonly Finding[]; readonly failure: AgentError };

/** Returns the findings that need no record, and why there can be none. */
export async function checkHost({ paths, version }: NodeCheck): Promise<{
  readonly host: readonly Finding[];
  readonly failure?: AgentError;
}> {
  const host = diagnoseHost(readHost(paths));
  try {
    return { host: [...host, ...checkAgent(await readHealth(paths.socket), version)] };
  } catch (failure) {
    if (!(failure instanceof AgentError)) throw failure;
    return { host: failure.isAnswer ? [...host, error("agent", failure.message, SEE_LOG)] : host, failure };
  }
}

export async function checkNode(check: NodeCheck): Promise<NodeAnswer> {
  const { host, failure } = await checkHost(check);
  if (failure !== undefined) return { host, failure };
  try {
    const record = await askForCheck(check);
    return { record: { ...record, findings: [...host, ...record.findings] } };
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
    findings: host.map((finding) => ({ ...finding, node })),
    problems: [],
  };
}

/** Returns what a report says of a node beside its findings. */
export function nodeOf({ findings: _, used: __, ...node }: CheckRecord): CheckReport["nodes"][number] {
  return node;
}

/** Returns the findings of one node as those of a report. */
export function ofNode({ node, findings }: CheckRecord): Finding[] {
  return findings.map((finding) => ({ ...finding, node }));
}
