/** `berthctl check`: where objects, records, pods, NICs, neighbours, routes and rules disagree. */
import { writeFileSync } from "node:fs";
import { Option } from "commander";
import { messageOf } from "../../lib/describe.ts";
import { type CheckRecord, type CheckReport, checkRecord } from "../../records/check-record.ts";
import { askForRecord } from "../ask-agent.ts";
import { type CommandLine, type OutputFlags, withRecordOutput } from "../command-line.ts";
import { ExitCode, UsageError } from "../exit-code.ts";

interface CheckFlags extends OutputFlags {
  readonly report?: string;
  readonly record?: true;
}

export function addCheck(cli: CommandLine): void {
  withRecordOutput(
    cli.command(
      "check",
      "Compare records, objects, pods, NICs, neighbours, routes and rules: duplicates, leaks, lost records and more",
    ),
  )
    .option("--report <file>", 'write the report to this file, as JSON, for "release --from-report"')
    .addOption(new Option("--record", "print the agent's record for kubectl berth").hideHelp())
    .action((flags: CheckFlags) =>
      cli.run(flags, async (call) => {
        const { out } = call;
        if (flags.record === true) return printRecord(cli.options.socket, out);
        const report = cli.isCluster ? await reportOfCluster(cli) : await reportOfNode(cli.options.socket);
        const { describeReport, exitCodeOfReport } = await import("../check/describe-report.ts");
        if (flags.report !== undefined) writeReport(flags.report, report);
        await out.report(describeReport(report), report);
        return exitCodeOfReport(report);
      }),
    );
}

/** Throws UsageError if the file cannot be written. */
function writeReport(path: string, report: CheckReport): void {
  try {
    writeFileSync(path, `${JSON.stringify(report, undefined, 2)}\n`, { mode: 0o600 });
  } catch (error) {
    throw new UsageError(`Option --report: ${messageOf(error)}`);
  }
}

async function printRecord(socket: string, out: { value(value: unknown): Promise<void> }): Promise<ExitCode> {
  await out.value(await askForRecord(checkRecord, socket, "/v1/check?used"));
  return ExitCode.Success;
}

async function reportOfCluster(cli: CommandLine): Promise<CheckReport> {
  const { checkCluster } = await import("../check/check-cluster.ts");
  const source = await cli.openCluster();
  try {
    return await checkCluster(source.api, cli.place);
  } finally {
    await source.close();
  }
}

async function reportOfNode(socket: string): Promise<CheckReport> {
  const record: CheckRecord = await askForRecord(checkRecord, socket, "/v1/check");
  const { findings, used: _, ...node } = record;
  return {
    time: record.time,
    cluster: record.cluster,
    nodes: [node],
    notCompared: [],
    findings: findings.map((finding) => ({ ...finding, node: record.node })),
    problems: [],
  };
}
