/** `berthctl version`: the versions of berthctl and of the programs that it asks. */
import { type CommandLine, type OutputFlags, withOutput } from "../command-line.ts";
import { ExitCode } from "../exit-code.ts";
import type { Table } from "../output.ts";
import type { VersionRecord } from "../source.ts";

const VERSION_TABLE: Table<VersionRecord> = {
  nameOf: ({ component, version }) => `${component}/${version}`,
  columns: [
    { title: "COMPONENT", cell: ({ component }) => component },
    { title: "VERSION", cell: ({ version }) => version },
    { title: "RUNNING", cell: ({ count }) => (count === undefined ? undefined : String(count)), isNumber: true },
  ],
};

export function addVersion(cli: CommandLine): void {
  const description = "Show the versions of berthctl and of the agent, or of agents and controllers";
  withOutput(cli.command("version", description, ["version", "version --client"]))
    .option("--client", "only the version of berthctl")
    .action((flags: OutputFlags & { client?: boolean }) =>
      cli.run(flags, async ({ source, out }) => {
        const own = { component: "berthctl", version: cli.version };
        const running = flags.client === true ? [] : source().then((opened) => opened.versions());
        const [others] = await Promise.allSettled([running]);
        await out.list(VERSION_TABLE, [own, ...(others.status === "fulfilled" ? others.value : [])]);
        if (others.status === "rejected") throw others.reason;
        return ExitCode.Success;
      }),
    );
}
