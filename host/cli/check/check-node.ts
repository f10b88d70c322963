/**
 * Finds the faults of this node: its files, kernel and host programs, then its agent, then the agent's own findings.
 * Only the last needs an agent.
 */
import { hostname } from "node:os";
import * as z from "zod";
import { AGENT_PROBLEMS, checkAgent, findUnread } from "../../findings/host/check-agent.ts";
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
  readonly findings: Finding[];
  /** The agent's. */
  readonly record?: CheckRecord;
  /** Why there is no record. */
  readonly failure?: AgentError;
}

/** An agent of the release before lists its unread state beside the findings. */
export const agentRecord = checkRecord
  .extend({ problems: z.array(z.string()).default([]) })
  .transform(({ problems, findings, ...rest }) => ({ ...rest, findings: [...findings, ...findUnread(problems)] }));

/** Returns the findings that need no record. */
export async function checkHost({ paths, version }: NodeCheck): Promise<NodeAnswer> {
  const host = diagnoseHost(readHost(paths));
  const health = await orFailure(readHealth(paths.socket));
  return health instanceof AgentError ? failed(host, health) : { findings: [...host, ...checkAgent(health, version)] };
}

export async function checkNode(check: NodeCheck): Promise<NodeAnswer> {
  const { findings, failure } = await checkHost(check);
  if (failure !== undefined) return { findings, failure };
  const record = await orFailure(askForCheck(check));
  return record instanceof AgentError
    ? failed(findings, record)
    : { findings: [...findings, ...record.findings], record };
}

function failed(findings: readonly Finding[], failure: AgentError): NodeAnswer {
  const problem = failure.isAnswer ? AGENT_PROBLEMS.refuses : AGENT_PROBLEMS.silent;
  return { findings: [...findings, problem({ answer: failure.message })], failure };
}

function orFailure<T>(answer: Promise<T>): Promise<T | AgentError> {
  return answer.catch((error: unknown) => {
    if (error instanceof AgentError) return error;
    throw error;
  });
}

function askForCheck({ paths: { socket }, isRepair = false, withUsed = false }: NodeCheck): Promise<CheckRecord> {
  const [path, method] = isRepair ? (["/v1/repair", "POST"] as const) : (["/v1/check", "GET"] as const);
  return askForRecord(agentRecord, socket, `${path}${withUsed ? "?used" : ""}`, method);
}

/** Returns the report of one node. */
export function reportOfNode({ findings, record }: NodeAnswer): CheckReport {
  return {
    time: record?.time ?? new Date().toISOString(),
    cluster: record?.cluster,
    nodes: record === undefined ? [] : [nodeOf(record)],
    findings: ofNode({ node: record?.node ?? hostname(), findings }),
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
