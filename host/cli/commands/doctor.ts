/** `berthctl doctor`: what is wrong with this host, whether an agent runs or not. */
import { type Command, Option } from "commander";
import { type CommandLine, type OutputFlags, withRecordOutput } from "../command-line.ts";
import { diagnoseHost } from "../doctor/diagnose.ts";
import type { DoctorFinding } from "../doctor/finding.ts";
import { type HostPaths, readHost } from "../doctor/read-host.ts";
import { ExitCode } from "../exit-code.ts";

export interface HostPathFlags {
  readonly cniConfDir: string;
  readonly cniBinDir: string;
  readonly stateDir: string;
  readonly hostRoot: string;
}

type DoctorFlags = OutputFlags & HostPathFlags;

/** Adds the options for where things are on this host. */
export function withHostPaths(command: Command): Command {
  return command
    .addOption(
      new Option("--cni-conf-dir <directory>", "directory of network definitions")
        .default("/etc/cni/net.d")
        .env("BERTH_CNI_CONF_DIR"),
    )
    .addOption(
      new Option("--cni-bin-dir <directory>", "directory of plugins").default("/opt/cni/bin").env("BERTH_CNI_BIN_DIR"),
    )
    .addOption(
      new Option("--state-dir <directory>", "directory of the agent's registry")
        .default("/var/lib/berth/state")
        .env("BERTH_STATE"),
    )
    .addOption(
      new Option("--host-root <directory>", "where the host's root is, for files of other programs")
        .default("/")
        .env("BERTH_HOST_ROOT"),
    );
}

export function hostPaths(socket: string, { cniConfDir, cniBinDir, stateDir, hostRoot }: HostPathFlags): HostPaths {
  return { socket, stateDirectory: stateDir, confDirectory: cniConfDir, binDirectory: cniBinDir, hostRoot };
}

export function addDoctor(cli: CommandLine): void {
  withHostPaths(
    withRecordOutput(
      cli.command(
        "doctor",
        "Find out what is wrong with this host: kernel, plugins, network definitions, sysctls, other programs, the agent",
      ),
    ),
  ).action((flags: DoctorFlags) =>
    cli.runOnAgents(flags, async (socket, { out }) => {
      const findings = diagnoseHost(await readHost(hostPaths(socket, flags), cli.version));
      await out.report(describe(findings), { findings });
      return findings.some(({ level }) => level === "error") ? ExitCode.Problem : ExitCode.Success;
    }),
  );
}

function describe(findings: readonly DoctorFinding[]): string[] {
  if (findings.length === 0) return ["Nothing is wrong"];
  return findings.flatMap(({ check, level, text, remedy }) => [`${level}: ${check}: ${text}`, `  ${remedy}`]);
}
