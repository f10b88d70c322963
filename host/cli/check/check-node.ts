/**
 * Finds the faults of this node: its files, kernel and host programs, then its agent, then the agent's own findings.
 * Only the last needs an agent.
 */
import { hostname } from "node:os";
import { AGENT_PROBLEMS, checkAgent, SEE_LOG, START_AGENT } from "../../findings/host/check-agent.ts";
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
  /** The agent repairs drift first. */
  readonly isRepair?: boolean;
  /** The record has the addresses on NICs. */
  readonly withUsed?: boolean;
}

interface NodeAnswer {
  /** The findings that need no record. */
  readonly host: Finding[];
  /** Of the agent, with all findings. */
  readonly record?: CheckRecord;
  /** Why there is no record. */
  readonly failure?: AgentError;
}

export async function checkHost({ paths, version }: NodeCheck): Promise<NodeAnswer> {
  const host = diagnoseHost(readHost(paths));
  const health = await orFailure(readHealth(paths.socket));
  if (!(health instanceof AgentError)) return { host: [...host, ...checkAgent(health, version)] };
  const { message: answer, isAnswer } = health;
  return { host: isAnswer ? [...host, AGENT_PROBLEMS.refuses({ answer })] : host, failure: health };
}

export async function checkNode(check: NodeCheck): Promise<NodeAnswer> {
  const { host, failure } = await checkHost(check);
  const record = failure ?? (await orFailure(askForCheck(check)));
  if (record instanceof AgentError) return { host, failure: record };
  return { host, record: { ...record, findings: [...host, ...record.findings] } };
}

function orFailure<T>(answer: Promise<T>): Promise<T | AgentError> {
  return answer.catch((error: unknown) => {
    if (error instanceof AgentError) return error;
    throw error;
  });
}

function askForCheck({ paths: { socket }, isRepair = false, withUsed = false }: NodeCheck): Promise<CheckRecord> {
  const [path, method] = isRepair ? (["/v1/repair", "POST"] as const) : (["/v1/check", "GET"] as const);
  return askForRecord(checkRecord, socket, `${path}${withUsed ? "?used" : ""}`, method);
}

/** Returns the report of one node. */
export function reportOfNode({ host, record, failure }: NodeAnswer): CheckReport {
  const node = hostname();
  const silent = failure && { node, reason: failure.message, remedy: failure.isAnswer ? SEE_LOG : START_AGENT };
  return {
    time: record?.time ?? new Date().toISOString(),
    cluster: record?.cluster,
    nodes: record === undefined ? [] : [nodeOf(record)],
    notCompared: silent === undefined ? [] : [silent],
    findings: ofNode(record ?? { node, findings: host }),
    problems: [],
  };
}

/** Returns a report's facts about a node, without its findings. */
export function nodeOf({ findings: _, used: __, ...node }: CheckRecord): CheckReport["nodes"][number] {
  return node;
}

/** Returns the findings of one node as those of a report. */
export function ofNode({ node, findings }: Pick<CheckRecord, "node" | "findings">): Finding[] {
  return findings.map((finding) => ({ ...finding, node }));
}
