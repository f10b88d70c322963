/** `berthctl check`: where objects, records, pods and NICs disagree. */
import { writeFileSync } from "node:fs";
import { type CheckRecord, checkRecord } from "../../records/check-record.ts";
import { askForRecord } from "../ask-agent.ts";
import { type CommandLine, type OutputFlags, withRecordOutput } from "../command-line.ts";
import { ExitCode } from "../exit-code.ts";

export function addCheck(cli: CommandLine): void {
  withRecordOutput(
    cli.command(
      "check",
      "Compare records, objects, pods and NICs of each node: duplicates, leaks, lost records and more",
    ),
  )
    .option("--report <file>", "write the findings to this file, as JSON")
    .action((flags: OutputFlags & { report?: string }) =>
      cli.runOnAgents(flags, async (socket, { out }) => {
        const record = await askForRecord(checkRecord, socket, "/v1/check");
        if (flags.report !== undefined)
          writeFileSync(flags.report, `${JSON.stringify(record, undefined, 2)}\n`, { mode: 0o600 });
        await out.report(describeCheck(record), record);
        return record.findings.length > 0 ? ExitCode.Problem : ExitCode.Success;
      }),
    );
}

function describeCheck({ node, records, nics, objects, findings, problems }: CheckRecord): string[] {
  const compared = `${records} records and ${nics} addresses on NICs${objects === undefined ? "" : `, ${objects} objects`}`;
  return [
    `node ${node}: ${findings.length} findings; compared ${compared}`,
    ...findings.flatMap(({ kind, address, pool, namespace, pod, interface: ifName, text, remedy }) => {
      const whose = pod === "" ? "" : ` of pod ${namespace}/${pod}, ${ifName}`;
      const place = pool === "" ? "" : ` of pool ${pool}`;
      return [`${kind}: ${address}${place}${whose}: ${text}`, `  ${remedy}`];
    }),
    ...problems.map((problem) => `not compared: ${problem}`),
  ];
}
