/**
 * `release --from-report`: on this node through the agent, which judges each address again, or in a cluster through
 * berthctl in the pods of the nodes' agents. Releasing an address again changes nothing and is no failure.
 */
import { readClusterId } from "../../kubernetes/cluster-id.ts";
import { decode } from "../../lib/schema.ts";
import { tryOr } from "../../lib/try-or.ts";
import { type CheckReport, checkReport } from "../../records/check-record.ts";
import { healthRecord } from "../../records/health-record.ts";
import { operationRecord } from "../../records/operation-record.ts";
import { readGiven, STANDARD_INPUT } from "../arguments.ts";
import { askForRecord } from "../ask-agent.ts";
import { askAgents, isRunning, listAgents } from "../cluster-agents.ts";
import type { CommandLine } from "../command-line.ts";
import { ExitCode, ProblemError, UsageError } from "../exit-code.ts";
import type { Output } from "../output.ts";
import { CLUSTER_PATIENCE_MS } from "../read-objects.ts";

interface ReleaseOptions {
  readonly isDryRun: boolean;
  /** Use a report of any age. Nothing else is forced. */
  readonly isForced: boolean;
}

/** Throws UsageError for a file that is no report. */
export function readReport(path: string): CheckReport {
  const text = readGiven("--from-report", path);
  const decoded = tryOr(() => decode(checkReport, JSON.parse(text)), undefined);
  if (decoded?.ok) return decoded.value;
  throw new UsageError(`Option --from-report: ${path} is no report of "check --report"`);
}

/** Returns whether something is left to release, as an exit code; prints each address with its outcome. */
export async function releaseOnNode(
  report: CheckReport,
  { socket, out }: { readonly socket: string; readonly out: Output },
  options: ReleaseOptions,
): Promise<ExitCode> {
  const { node = "" } = await askForRecord(healthRecord, socket, "/v1/health");
  const planned = planRelease(report, { nowMs: Date.now(), isForced: options.isForced, node });
  let code: ExitCode = ExitCode.Success;
  for (const { address, kind, owner, container } of planned.byNode.get(node) ?? []) {
    const query = new URLSearchParams({ address, owner, container, node });
    if (report.cluster !== undefined) query.set("cluster", report.cluster);
    if (options.isDryRun) query.set("dryRun", "");
    const { steps } = await askForRecord(operationRecord, socket, `/v1/release?${query}`, "POST");
    const [step] = steps;
    if (step?.refusal === undefined) {
      out.text(`${address}: ${options.isDryRun ? "would be released" : "released"} (${kind}): ${step?.what ?? ""}`);
    } else if (step.isOver === true) out.text(`${address}: skipped: ${step.refusal}`);
    else {
      out.text(`${address}: refused: ${step.refusal}`, "red");
      code = ExitCode.Problem;
    }
  }
  showRest(out, planned);
  return code;
}

/** The same in a cluster. Rejects if there is no agent. */
export async function releaseInCluster(
  report: CheckReport,
  { cli, out }: { readonly cli: CommandLine; readonly out: Output },
  options: ReleaseOptions,
): Promise<ExitCode> {
  const { node } = cli.place;
  const planned = planRelease(report, { nowMs: Date.now(), isForced: options.isForced, node });
  await requireCluster(cli, report);
  showRest(out, planned);
  if (planned.byNode.size === 0) return ExitCode.Success;
  const agents = await listAgents(cli.place);
  const chosen = agents.filter((agent) => isRunning(agent) && planned.byNode.has(agent.node));
  const words = ["release", "--from-report", STANDARD_INPUT, options.isDryRun ? "--dry-run" : "--yes"];
  const answers = await askAgents(chosen, [...words, ...(options.isForced ? ["--force"] : [])], cli.place, (agent) =>
    JSON.stringify(reportOf(report, agent.node, planned.byNode.get(agent.node) ?? [])),
  );
  const codes: ExitCode[] = [ExitCode.Success];
  for (const { node: place, exitCode, stdout, error } of answers) {
    for (const line of stdout.split("\n").filter((text) => text !== "")) out.text(`node ${place}: ${line}`);
    if (exitCode === ExitCode.Success) continue;
    if (error !== "") out.text(`node ${place}: ${error}`, "red");
    codes.push(exitCode === ExitCode.Problem ? ExitCode.Problem : ExitCode.NoAnswer);
  }
  for (const [place, findings] of planned.byNode) {
    if (chosen.some((agent) => agent.node === place)) continue;
    out.text(
      `node ${place}: no agent runs there; not released: ${findings.map(({ address }) => address).join(", ")}`,
      "red",
    );
    codes.push(ExitCode.NoAnswer);
  }
  const worst = [ExitCode.NoAnswer, ExitCode.Problem].find((code) => codes.includes(code));
  return worst ?? ExitCode.Success;
}

async function requireCluster(cli: CommandLine, { cluster }: CheckReport): Promise<void> {
  if (cluster === undefined)
    throw new ProblemError("The report does not say of which cluster it is; run check in the cluster");
  const source = await cli.openCluster();
  try {
    if ((await readClusterId(source.api, CLUSTER_PATIENCE_MS)) === cluster) return;
  } finally {
    await source.close();
  }
  throw new ProblemError("The report is of another cluster: its namespace kube-system has another UID");
}

/** Findings that stay, and that there are none to release. */
function showRest(out: Output, { byNode, others }: PlannedRelease): void {
  if (byNode.size === 0) out.text("The report has no finding that can be released");
  if (others.length === 0) return;
  const kinds = [...Map.groupBy(others, ({ kind }) => kind)].map(([kind, same]) => `${same.length} ${kind}`);
  out.text(`Not for release, see their remedies: ${kinds.join(", ")}`);
}

/** Age of a report from which it is refused unless forced: minutes. */
export const REPORT_MINUTES = 15;

type Finding = CheckReport["findings"][number];

interface PlannedRelease {
  /** The findings to release, by node, in the order of the report. */
  readonly byNode: ReadonlyMap<string, readonly Finding[]>;
  /** Findings that no release can end. */
  readonly others: readonly Finding[];
}

interface PlanOptions {
  readonly nowMs: number;
  readonly isForced: boolean;
  /** Only findings of this node. */
  readonly node?: string | undefined;
}

/** Throws ProblemError for a report that is too old or does not cover the node. */
export function planRelease(report: CheckReport, { nowMs, isForced, node }: PlanOptions): PlannedRelease {
  const ageMinutes = (nowMs - Date.parse(report.time)) / 60_000;
  if (!isForced && !(ageMinutes < REPORT_MINUTES && ageMinutes > -REPORT_MINUTES)) {
    const age = ageMinutes > 0 ? `${Math.floor(ageMinutes)} minutes old` : "from the future";
    throw new ProblemError(
      `The report of ${report.time} is ${age}, and only reports of the last ${REPORT_MINUTES} minutes are used; ` +
        "run check again, or give --force",
    );
  }
  if (node !== undefined && !report.nodes.some((each) => each.node === node)) {
    const nodes = report.nodes.map((each) => each.node).join(", ") || "no node";
    throw new ProblemError(`The report is of another node: it compared ${nodes}, and this is ${node}`);
  }
  const wanted = report.findings.filter((finding) => node === undefined || finding.node === node);
  const releasable = wanted.filter(
    ({ isReleasable, address, owner }) => isReleasable && address !== "" && owner !== "",
  );
  return {
    byNode: Map.groupBy(releasable, (finding) => finding.node),
    others: wanted.filter((finding) => !releasable.includes(finding)),
  };
}

/** Returns the report of one node's releases, for its agent's berthctl: one of the release before wants all lists. */
export function reportOf(report: CheckReport, node: string, findings: readonly Finding[]): object {
  const none = { problems: [] };
  const nodes = report.nodes.filter((each) => each.node === node).map((each) => ({ ...each, ...none }));
  return { ...report, ...none, notCompared: [], nodes, findings: [...findings] };
}
