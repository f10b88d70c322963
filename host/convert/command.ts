/**
 * `berthctl convert`: Berth's manifests out of those of another IPAM (docs/migration.md). Writes nothing to a cluster
 * without --apply.
 */
import { Argument, Option } from "commander";
import type { ClusterSource } from "../cli/cluster-source.ts";
import type { Call, CommandLine, OutputFlags } from "../cli/command-line.ts";
import { ExitCode, UsageError } from "../cli/exit-code.ts";
import type { Applied } from "./cluster.ts";
import type { ConversionPlan, Peer, PlanOptions } from "./conversion-plan.ts";

interface ConvertFlags extends OutputFlags {
  readonly out?: string;
  readonly suffix: string;
  readonly ips?: readonly string[];
  readonly apply?: true;
  readonly patch?: readonly string[];
  readonly acceptLosses?: true;
}

const PEERS = ["spiderpool", "whereabouts", "host-local", "calico"] as const satisfies readonly Peer[];

/** Names all patches of a plan. */
const ALL = "all";

export function addConvert(cli: CommandLine): void {
  cli
    .command("convert", "Convert pools, addresses in use, networks and annotations of another IPAM (docs/migration.md)")
    .addArgument(new Argument("<ipam>", "the other IPAM").choices(PEERS))
    .argument("[path...]", "files and directories to read, of host-local also as node=path; default: the cluster")
    .addOption(new Option("-o, --output <format>", "one record instead of manifests").choices(["json", "yaml"]))
    .option(
      "--out <directory>",
      "write manifests, patches, files for nodes and the report here; default: manifests on stdout",
    )
    .option("--suffix <text>", "appended to names of network definitions", "-berth")
    .option(
      "--ips <range...>",
      "pools allocate only these, first-last or in CIDR form, which the other IPAM must exclude: both run side by side",
    )
    .option("--apply", "write the manifests to the cluster, by server-side apply")
    .option(
      "--patch <workload...>",
      'with --apply, also patch these: kind/namespace/name as in the report, or "all"; pods restart',
    )
    .option("--accept-losses", "apply although something is lost")
    .action((ipam: Peer, paths: readonly string[], flags: ConvertFlags) =>
      cli.run(flags, (call) => runConvert(cli, call, { ipam, paths, flags })),
    );
}

interface Words {
  readonly ipam: Peer;
  readonly paths: readonly string[];
  readonly flags: ConvertFlags;
}

async function runConvert(cli: CommandLine, call: Call, words: Words): Promise<ExitCode> {
  const { flags, paths } = words;
  checkFlags(cli, words);
  const isFromCluster = paths.length === 0;
  const source = isFromCluster || flags.apply === true ? await cli.openCluster() : undefined;
  try {
    const plan = await planOf(words, source);
    const { isLossy } = await import("./output.ts");
    await print(call, plan, flags);
    const ending = isLossy(plan) ? ExitCode.Problem : ExitCode.Success;
    if (flags.apply !== true || source === undefined) return ending;
    if (ending === ExitCode.Problem && flags.acceptLosses !== true) {
      call.note("Nothing was applied: the conversion is incomplete. --accept-losses applies it nevertheless");
      return ending;
    }
    return (await apply(call, source, { plan, patches: flags.patch ?? [] })) ? ending : ExitCode.Problem;
  } finally {
    await source?.close();
  }
}

function checkFlags(cli: CommandLine, { paths, flags }: Words): void {
  if (paths.length === 0 && !cli.isCluster)
    throw new UsageError("Name files or directories, or with --kubeconfig or --context a cluster");
  if (flags.apply === true && !cli.isCluster)
    throw new UsageError("--apply needs a cluster: --kubeconfig or --context");
  if (flags.patch !== undefined && flags.apply !== true) throw new UsageError("--patch needs --apply");
  if (!/^[a-z0-9.-]*[a-z0-9]$/.test(flags.suffix))
    throw new UsageError(
      `Option --suffix: found ${JSON.stringify(flags.suffix)}, want lower-case letters, digits, "-" and ".", with a letter or digit at the end`,
    );
}

async function planOf({ ipam, paths, flags }: Words, source: ClusterSource | undefined): Promise<ConversionPlan> {
  const { convert } = await import("./convert.ts");
  const { readInput } = await import("./input.ts");
  const { inputOf, listInput, readTarget } = await import("./cluster.ts");
  const target = source === undefined ? { pools: [], allocated: new Map() } : await readTarget(source);
  const { parseSpan } = await import("./address-draft.ts");
  const ips = flags.ips?.map((text) => {
    const range = parseSpan(text);
    if (range !== undefined) return range;
    throw new UsageError(`Option --ips: found ${JSON.stringify(text)}, want first-last or a network in CIDR form`);
  });
  const options: PlanOptions = { peer: ipam, suffix: flags.suffix, target, ips };
  if (paths.length === 0 && source !== undefined) {
    const objects = await listInput(source, ipam);
    return convert(({ findings }) => inputOf(objects, findings), options);
  }
  const { readInputFiles } = await import("./read-files.ts");
  const { splitNode } = await import("./host-local.ts");
  const files = readInputFiles(paths.map((path) => (ipam === "host-local" ? splitNode(path) : { path })));
  return convert(({ findings }) => readInput(files, findings), options);
}

/**
 * Prints manifests on stdout and the report on stderr; with --out, manifests become files, and the report is on stdout.
 */
async function print({ out, note }: Call, plan: ConversionPlan, flags: ConvertFlags): Promise<void> {
  const { formatManifests, planFiles, planRecord, reportLines } = await import("./output.ts");
  const report = reportLines(plan);
  if (flags.out !== undefined) {
    const { writeFiles } = await import("./write-files.ts");
    writeFiles(flags.out, planFiles(plan));
  }
  if (flags.output !== undefined) await out.value(planRecord(plan));
  else if (flags.out !== undefined || flags.apply === true) out.text(report.join("\n"));
  else {
    out.text(formatManifests(plan.manifests).trimEnd());
    note(report.join("\n"));
    const { nodeFiles, patches } = plan;
    if (nodeFiles.length + patches.length > 0)
      note("Files for nodes and patches are written with --out DIRECTORY only");
  }
}

interface Application {
  readonly plan: ConversionPlan;
  /** As named on the command line. */
  readonly patches: readonly string[];
}

/** Returns whether the API server accepted everything. */
async function apply({ note }: Call, source: ClusterSource, { plan, patches }: Application): Promise<boolean> {
  const { applyManifests, applyPatches, listLeftovers } = await import("./cluster.ts");
  const { patchName } = await import("./conversion-plan.ts");
  const known = plan.patches.map(patchName);
  for (const name of patches)
    if (name !== ALL && !known.includes(name)) note(`${name} needs no patch, or is not in the input`);
  const written = await applyManifests(source, plan);
  const isRefused = written.some(({ outcome }) => outcome === "refused");
  const chosen = plan.patches.filter((patch) => patches.includes(ALL) || patches.includes(patchName(patch)));
  if (isRefused && chosen.length > 0) note("No workload was patched: the API server refused an object");
  const patched = isRefused ? [] : await applyPatches(source, chosen);
  const all = [...written, ...patched];
  note(all.map(appliedLine).join("\n") || "Nothing to apply");
  for (const name of await listLeftovers(source, plan))
    note(`${name} is of an earlier conversion and no longer needed; delete it when no pod uses it`);
  return all.every(({ outcome }) => outcome !== "refused");
}

function appliedLine({ name, outcome, reason }: Applied): string {
  return reason === undefined ? `${name} ${outcome}` : `${name} ${outcome}: ${reason}`;
}
