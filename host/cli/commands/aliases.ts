/** `berthctl doctor` and `berthctl health`: names that `check` has taken over. They remain for one release. */
import { type Command, Option } from "commander";
import { checkAgent } from "../../findings/host/check-agent.ts";
import type { HealthRecord } from "../../records/health-record.ts";
import { type CommandLine, type OutputFlags, withRecordOutput } from "../command-line.ts";
import { ExitCode } from "../exit-code.ts";
import { type HostPathFlags, hostPaths, withHostPaths } from "../host-checks/host-paths.ts";
import { readHealth } from "../node-source.ts";

const DEPRECATED = "is deprecated and goes with the next release; use berthctl check";

/** A command that the help does not list. */
function addAlias(cli: CommandLine, name: string, description: string): Command {
  return withRecordOutput(cli.root.command(name, { hidden: true }).description(description));
}

export function addDoctor(cli: CommandLine): void {
  withHostPaths(addAlias(cli, "doctor", "The part of check that is about the host and its agent")).action(
    (flags: OutputFlags & HostPathFlags) =>
      cli.runOnAgents(flags, async (socket, { out, note }) => {
        note(`berthctl doctor ${DEPRECATED}`);
        const { checkHost } = await import("../check/check-node.ts");
        const { findings: all } = await checkHost({ paths: hostPaths(socket, flags), version: cli.version });
        const findings = all.map(({ kind: check, level, text, remedy }) => ({ check, level, text, remedy }));
        const lines = all.flatMap(({ kind, level, text, remedy }) => [`${level}: ${kind}: ${text}`, `  ${remedy}`]);
        await out.report(lines.length === 0 ? ["Nothing is wrong"] : lines, { findings });
        return findings.some(({ level }) => level !== "warning") ? ExitCode.Problem : ExitCode.Success;
      }),
  );
}

export function addHealth(cli: CommandLine): void {
  addAlias(cli, "health", "The part of check that is about the agent")
    .addOption(
      new Option("--probe <what>", "only ask whether the agent answers (live) or can attach pods (ready)").choices([
        "live",
        "ready",
      ]),
    )
    .action((flags: OutputFlags & { probe?: "live" | "ready" }) =>
      cli.runOnAgents(flags, async (socket, { out, note }) => {
        note(`berthctl health ${DEPRECATED}, and as a probe berth --probe live or ready`);
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

/** Returns a line, and one more for each finding. */
function describeHealth(health: HealthRecord): string[] {
  const { status, version, mode, node } = health;
  const where = mode === "cluster" ? `, node ${node} of a cluster` : "";
  const found = [...checkAgent(health, version)];
  return [`berth-agent ${version}: ${status}${where}`, ...found.map(({ text }) => `- ${text}`)];
}
