/** `berthctl export`: addresses in use for other inventories, as CSV, JSON, or records of a DNS zone. */
import { Option } from "commander";
import { ALLOCATION_TABLE } from "../../../host/cli/allocation-table.ts";
import type { ClusterSource } from "../../../host/cli/cluster-source.ts";
import type { Call, CommandLine } from "../../../host/cli/command-line.ts";
import { type FilterFlags, namespaceOf, withFilter } from "../../../host/cli/commands/allocations.ts";
import { ExitCode, UsageError } from "../../../host/cli/exit-code.ts";
import { followRecords } from "../../../host/cli/follow-records.ts";
import type { Source } from "../../../host/cli/source.ts";
import { parseSpan } from "../../../host/cli/times.ts";
import { pauseUnlessAborted } from "../../../host/lib/abort.ts";
import { messageOf } from "../../../host/lib/describe.ts";
import { replaceFile } from "../../../host/lib/replace-file.ts";
import type { AllocationRecord } from "../../../host/records/allocation-record.ts";
import type { ExportFlags, Form } from "./export/form.ts";

interface Flags extends ExportFlags, FilterFlags {
  readonly watch?: boolean;
  readonly file?: string;
  readonly every: string;
}

export function addExport(cli: CommandLine): void {
  const command = cli
    .command("export", "Write the addresses in use for another IPAM, a spreadsheet or a DNS server", [
      "export -n shop > addresses.csv",
      "export -o zone --origin pods.example.org --file pods.zone --watch",
    ])
    .addOption(new Option("-o, --output <format>", "form").choices(["csv", "json", "zone"]).default("csv"))
    .option("--no-headers", "no line of titles")
    .option("-w, --watch", "go on, and print what changes")
    .option("--file <path>", "write this file, which is replaced as a whole; with --watch after each change")
    .option("--every <duration>", "with --watch and --file: replace it at most once in this time", "5s");
  withFilter(command)
    .option("--cluster <name>", "name of the cluster, for its column")
    .option("--origin <domain>", "domain in which pods have their names")
    .option("--reverse <network>", "of a zone: PTR records of this network in place of A and AAAA")
    .option("--ttl <duration>", "of a zone: how long an answer may be kept", "30s")
    .option("--soa <name>", "of a zone: begin with SOA and NS records of this name server")
    .action((flags: Flags) => cli.run({}, (call) => runExport(call, flags, cli.options.node)));
}

async function runExport(call: Call, flags: Flags, node: string | undefined): Promise<ExitCode> {
  const { watch = false, file, pool, state, output } = flags;
  const namespace = namespaceOf(flags);
  // Loads the schemas of names, which no other command needs.
  const { openForm } = await import("./export/form.ts");
  const form = openForm(flags);
  const everyMs = parseSpan("--every", flags.every);
  if (watch && output === "zone" && file === undefined)
    throw new UsageError("--watch of a zone needs --file, which is replaced after each change");
  const source = await call.source();
  const scope = await source.scope();
  if (scope !== undefined) call.note(scope);
  const read = () => source.allocations({ namespace, pool, state, node });
  if (watch) return watchExport(call, source, { read, form, everyMs, file });
  const records = await read();
  const { api } = source as Partial<ClusterSource>;
  const { withMacs } = await import("./export/pod-macs.ts");
  const text = form.whole(api === undefined || output === "zone" ? records : await withMacs(api, records));
  if (file === undefined) call.out.document(text);
  else await write(file, text);
  return ExitCode.Success;
}

interface Watched {
  readonly read: () => Promise<readonly AllocationRecord[]>;
  readonly form: Form;
  readonly file: string | undefined;
  readonly everyMs: number;
}

async function watchExport(call: Call, source: Source, { read, form, file, everyMs }: Watched): Promise<ExitCode> {
  const following = { kind: "allocations" as const, nameOf: ALLOCATION_TABLE.nameOf, read, note: call.note };
  for await (const seen of followRecords(source, following, call.signal)) {
    if (file === undefined) {
      call.out.document(form.changes(seen));
      continue;
    }
    await write(file, form.whole(seen.records));
    const { records, added, changed, removed, isFirst } = seen;
    const counts = isFirst ? "" : `: ${added.length} added, ${changed.length} changed, ${removed.length} removed`;
    call.note(`${file}: ${records.length} addresses${counts}`);
    await pauseUnlessAborted(everyMs, call.signal);
  }
  return ExitCode.Success;
}

/** Rejects with UsageError if it cannot be written. */
async function write(path: string, content: string): Promise<void> {
  try {
    await replaceFile(path, { content, mode: 0o644, temporary: `${path}.${process.pid}.new` });
  } catch (error) {
    throw new UsageError(`Option --file: ${JSON.stringify(path)} cannot be written: ${messageOf(error)}`);
  }
}
