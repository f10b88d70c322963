/** Which findings of a report `release --from-report` may release, and where; the agents judge each again. */
import type { CheckReport } from "../../records/check-record.ts";
import { ProblemError } from "../exit-code.ts";

/** Age of a report from which it is refused unless forced: minutes. */
export const REPORT_MINUTES = 15;

type Finding = CheckReport["findings"][number];

export interface PlannedRelease {
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

/** Returns the report of one node's releases, for its agent's berthctl. */
export function reportOf(report: CheckReport, node: string, findings: readonly Finding[]): CheckReport {
  const nodes = report.nodes.filter((each) => each.node === node);
  return { ...report, nodes, notCompared: [], problems: [], findings: [...findings] };
}
