/** `berthctl check`: the problems of a node or a cluster, and their remedies. */
import { randomBytes } from "node:crypto";
import { type Command, Option } from "commander";
import type { ClusterFacts } from "../../findings/find-cluster-damage.ts";
import { messageOf } from "../../lib/describe.ts";
import { replaceFile } from "../../lib/replace-file.ts";
import type { CheckReport } from "../../records/check-record.ts";
import type { NodeCheck } from "../check/check-node.ts";
import { type Call, type CommandLine, type OutputFlags, withRecordOutput } from "../command-line.ts";
import { ExitCode, UsageError } from "../exit-code.ts";
import { givenHostPaths, type HostPathFlags, hostPaths, withHostPaths } from "../host-checks/host-paths.ts";

interface CheckFlags extends OutputFlags, HostPathFlags {
  readonly report?: string;
  readonly record?: true;
  readonly repair?: true;
}

export function addCheck(cli: CommandLine): void {
  const command = withRecordOutput(
    cli.command(
      "check",
      "Say what is wrong and what to do: files, kernel and programs of the host, the agent, records, objects, NICs, routes",
      ["check", "check --report found.json"],
    ),
  );
  withHostPaths(command)
    .option("--report <file>", 'write the report to this file, as JSON, for "release --from-report"')
    .option(
      "--repair",
      "first restore what the coordinator's ADDs left in pods and on the node, where it is missing or changed",
    )
    .addOption(new Option("--record", "print what kubectl berth joins to a report").hideHelp())
    .action((flags: CheckFlags) =>
      cli.run(flags, async (call) => {
        const alone = cli.clusterChecks.find(({ option }) => givenOf(command, option) !== undefined && !cli.isCluster);
        if (alone) throw new UsageError(`${alone.option.long} needs a cluster: give --kubeconfig or --context`);
        if (flags.record === true) return printRecord(nodeCheck(cli, flags), call);
        const report = cli.isCluster ? await reportOfCluster(cli, flags, command) : await reportOfHost(cli, flags);
        const { describeReport, exitCodeOfReport } = await import("../check/describe-report.ts");
        await call.out.report(describeReport(report), report);
        if (flags.report !== undefined) await writeReport(flags.report, report);
        return exitCodeOfReport(report);
      }),
    );
}

/** By rename: a link is replaced, not followed. Rejects with UsageError if the file cannot be written. */
async function writeReport(path: string, report: CheckReport): Promise<void> {
  try {
    const content = `${JSON.stringify(report, undefined, 2)}\n`;
    await replaceFile(path, { content, mode: 0o600, temporary: `${path}.${randomBytes(6).toString("hex")}` });
  } catch (error) {
    throw new UsageError(`Option --report: ${messageOf(error)}`);
  }
}

function nodeCheck(cli: CommandLine, flags: CheckFlags): NodeCheck {
  const paths = hostPaths(cli.options.socket, flags);
  return { paths, version: cli.version, isRepair: flags.repair === true };
}

async function printRecord(check: NodeCheck, { out }: Call): Promise<ExitCode> {
  const { checkNode } = await import("../check/check-node.ts");
  const { record, failure, findings } = await checkNode({ ...check, withUsed: true });
  if (record === undefined) throw failure;
  await out.value({ ...record, findings });
  return ExitCode.Success;
}

async function reportOfCluster(cli: CommandLine, { repair }: CheckFlags, command: Command): Promise<CheckReport> {
  const { checkCluster } = await import("../check/check-cluster.ts");
  const source = await cli.openCluster();
  try {
    const words = givenHostPaths(command);
    const more = async (facts: ClusterFacts) => {
      const found = cli.clusterChecks.map(({ option, find }) => find(source.api, facts, givenOf(command, option)));
      return (await Promise.all(found)).flat();
    };
    return await checkCluster(source.api, cli.place, { isRepair: repair === true, words, more });
  } finally {
    await source.close();
  }
}

function givenOf(command: Command, option: Option): string | undefined {
  return command.opts<Record<string, string | undefined>>()[option.attributeName()];
}

async function reportOfHost(cli: CommandLine, flags: CheckFlags): Promise<CheckReport> {
  const { checkNode, reportOfNode } = await import("../check/check-node.ts");
  return reportOfNode(await checkNode(nodeCheck(cli, flags)));
}
