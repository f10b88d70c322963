/** The page docs/findings.md: the problems that `check` can find, from the tables beside the checks. */
import { readExtensions } from "../../../host/bin/extensions.ts";
import { OPEN_PROBLEMS } from "../../../host/cli/check/find-open.ts";
import { CONTROLLER_PROBLEMS } from "../../../host/findings/check-controllers.ts";
import { CLUSTER_PROBLEMS } from "../../../host/findings/find-cluster-damage.ts";
import { AGENT_PROBLEMS } from "../../../host/findings/host/check-agent.ts";
import { HOST_PROBLEMS } from "../../../host/findings/host/diagnose.ts";
import { FILE_PROBLEMS } from "../../../host/findings/host/file-checks.ts";
import { ADDRESS_PROBLEMS } from "../../../host/findings/node/find-damage.ts";
import { DRIFT_PROBLEMS } from "../../../host/findings/node/find-drift.ts";
import type { Problem } from "../../../host/findings/problem.ts";

const INTRODUCTION = `# Findings

What [\`check\`](diagnostics.md#check) can find, and → what to do about it. A name in braces stands for a value. A warning does not count for the exit code,
an unknown state is no answer (3). Beside these it says what [conditions](pool-status.md#conditions) of pools, Subnets, ReservedIPs and the
Coordinator say: the id is the condition's reason.
`;

const SECTIONS: Readonly<Record<string, readonly object[]>> = {
  "The host": [HOST_PROBLEMS, FILE_PROBLEMS],
  "Agents and controllers": [AGENT_PROBLEMS, CONTROLLER_PROBLEMS],
  "Addresses, routes and rules": [ADDRESS_PROBLEMS, CLUSTER_PROBLEMS, DRIFT_PROBLEMS, OPEN_PROBLEMS],
  Packages: await Promise.all((await readExtensions()).map(({ readProblems }) => readProblems?.() ?? [])),
};

/** A row for each id. */
function* rowsOf(title: string, tables: readonly object[]): Iterable<string> {
  yield `| **${title}** | |`;
  const problems: Problem[] = tables.flatMap(Object.values);
  for (const [kind, same] of Map.groupBy(problems, (each) => each.kind))
    yield `| \`${kind}\` | ${same.map(describe).join("<br>")} |`;
}

function describe({ level, text, remedy }: Problem): string {
  const said = text === "{text}" ? "" : `${text} `;
  return `${level === "error" ? "" : `${level}: `}${said}→ ${remedy}`.replaceAll("*", "\\*");
}

export function findingsPage(): string {
  const rows = Object.entries(SECTIONS).flatMap(([title, tables]) => [...rowsOf(title, tables)]);
  return `${INTRODUCTION}\n| Id | Finding |\n|---|---|\n${rows.join("\n")}\n`;
}
