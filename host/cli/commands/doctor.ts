/** `berthctl doctor`: what is wrong with this host, whether an agent runs or not. */
import { type CommandLine, type OutputFlags, withRecordOutput } from "../command-line.ts";
import { type DoctorFinding, diagnoseHost } from "../doctor/diagnose.ts";
import { readHost } from "../doctor/read-host.ts";
import { ExitCode } from "../exit-code.ts";

interface DoctorFlags extends OutputFlags {
  readonly cniConfDir: string;
  readonly cniBinDir: string;
}

export function addDoctor(cli: CommandLine): void {
  withRecordOutput(
    cli.command(
      "doctor",
      "Find out what is wrong with this host: kernel, plugins, network definitions, sysctls, the agent",
    ),
  )
    .option("--cni-conf-dir <directory>", "directory of network definitions", "/etc/cni/net.d")
    .option("--cni-bin-dir <directory>", "directory of plugins", "/opt/cni/bin")
    .action((flags: DoctorFlags) =>
      cli.runOnAgents(flags, async (socket, { out }) => {
        const paths = { socket, confDirectory: flags.cniConfDir, binDirectory: flags.cniBinDir };
        const findings = diagnoseHost(await readHost(paths, cli.version));
        await out.report(describe(findings), { findings });
        return findings.some(({ level }) => level === "error") ? ExitCode.Problem : ExitCode.Success;
      }),
    );
}

function describe(findings: readonly DoctorFinding[]): string[] {
  if (findings.length === 0) return ["Nothing is wrong"];
  return findings.flatMap(({ check, level, text, remedy }) => [`${level}: ${check}: ${text}`, `  ${remedy}`]);
}
