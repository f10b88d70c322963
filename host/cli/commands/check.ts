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
  readonly repair?: true;
}

export function addCheck(cli: CommandLine): void {
  withRecordOutput(
    cli.command(
      "check",
      "Compare records, objects, pods, NICs, neighbours, routes and rules: duplicates, leaks, lost records and more",
    ),
  )
    .option("--report <file>", 'write the report to this file, as JSON, for "release --from-report"')
    .option(
      "--repair",
      "first restore what the coordinator's ADDs left in pods and on the node, where it is missing or changed",
    )
    .addOption(new Option("--record", "print the agent's record for kubectl berth").hideHelp())
    .action((flags: CheckFlags) =>
      cli.run(flags, async (call) => {
        const { out } = call;
        const { socket } = cli.options;
        if (flags.record === true) return printRecord(socket, out, flags);
        const report = cli.isCluster ? await reportOfCluster(cli, flags) : await reportOfNode(socket, flags);
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

function askForCheck(socket: string, { repair }: CheckFlags, query = ""): Promise<CheckRecord> {
  return repair === true
    ? askForRecord(checkRecord, socket, `/v1/repair${query}`, "POST")
    : askForRecord(checkRecord, socket, `/v1/check${query}`);
}

async function printRecord(
  socket: string,
  out: { value(value: unknown): Promise<void> },
  flags: CheckFlags,
): Promise<ExitCode> {
  await out.value(await askForCheck(socket, flags, "?used"));
  return ExitCode.Success;
}

async function reportOfCluster(cli: CommandLine, { repair }: CheckFlags): Promise<CheckReport> {
  const { checkCluster } = await import("../check/check-cluster.ts");
  const source = await cli.openCluster();
  try {
    return await checkCluster(source.api, cli.place, { isRepair: repair === true });
  } finally {
    await source.close();
  }
}

async function reportOfNode(socket: string, flags: CheckFlags): Promise<CheckReport> {
  const record = await askForCheck(socket, flags);
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
