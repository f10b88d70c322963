/** `berthctl health`: whether agents are ready, and what troubles them. */
import { Option } from "commander";
import type { HealthRecord } from "../../records/health-record.ts";
import { type CommandLine, type OutputFlags, withRecordOutput } from "../command-line.ts";
import { ExitCode } from "../exit-code.ts";
import { readHealth } from "../node-source.ts";

export function addHealth(cli: CommandLine): void {
  withRecordOutput(cli.command("health", "Show whether the agent is ready, and its problems"))
    .addOption(
      new Option("--probe <what>", "only ask whether the agent answers (live) or can attach pods (ready)").choices([
        "live",
        "ready",
      ]),
    )
    .action((flags: OutputFlags & { probe?: "live" | "ready" }) =>
      cli.runOnAgents(flags, async (socket, { out }) => {
        const health = await readHealth(socket);
        const isReady = health.status === "ready";
        if (flags.probe !== undefined) {
          // For a kubelet: problems of a ready agent do not matter.
          out.text(health.status);
          return flags.probe === "live" || isReady ? ExitCode.Success : ExitCode.Problem;
        }
        const lines = describeHealth(health);
        await out.report(lines, health);
        return isReady && lines.length === 1 ? ExitCode.Success : ExitCode.Problem;
      }),
    );
}

/** Returns a line, and one more for each problem. */
function describeHealth({ status, version, mode, node, problems, spool }: HealthRecord): string[] {
  const where = mode === "cluster" ? `, node ${node} of a cluster` : "";
  const lines = [`berth-agent ${version}: ${status}${where}`, ...problems.map((problem) => `- ${problem}`)];
  if (spool.waiting > 0) lines.push(`- ${spool.waiting} DELs wait in the spool`);
  if (spool.rejected > 0) lines.push(`- ${spool.rejected} spooled requests could not be read`);
  return lines;
}
