/** `berthctl recover`: restores lost rows of a node's registry (docs/recovery.md). */
import * as z from "zod";
import { askForRecord } from "../ask-agent.ts";
import type { CommandLine } from "../command-line.ts";
import { ExitCode } from "../exit-code.ts";

const recoveryRecord = z.object({ report: z.array(z.string()) });

interface RecoverFlags {
  readonly results: readonly string[];
  readonly netns: readonly string[];
  readonly dryRun?: true;
}

export function addRecover(cli: CommandLine): void {
  cli
    .command("recover", "Recover lost registry rows from the cached results of runtimes and the NICs of pods", [
      "recover --dry-run",
      "recover --results /var/lib/cni/results",
    ])
    .option("--results <directory...>", "directories with cached results of runtimes", ["/var/lib/cni/results"])
    .option("--netns <directory...>", "directories with network namespaces of pods", [
      "/run/netns",
      "/run/docker/netns",
    ])
    .option("--dry-run", "print what would be recovered without writing anything")
    .action((flags: RecoverFlags) =>
      cli.runOnAgents({}, async (socket, { out }) => {
        const { report } = await askForRecord(recoveryRecord, socket, `/v1/recover?${queryOf(flags)}`, "POST");
        out.text(report.join("\n"));
        return ExitCode.Success;
      }),
    );
}

function queryOf({ results, netns, dryRun }: RecoverFlags): URLSearchParams {
  return new URLSearchParams([
    ...results.map((path) => ["results", path]),
    ...netns.map((path) => ["netns", path]),
    ...(dryRun === undefined ? [] : [["dryRun", ""]]),
  ]);
}
