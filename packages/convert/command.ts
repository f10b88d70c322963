/**
 * `berthctl convert`: Berth's manifests out of those of another IPAM (docs/migration.md). Writes nothing to a cluster
 * without --apply.
 */
import { Argument, Option } from "commander";
import { splitList } from "../../host/cli/arguments.ts";
import type { Call, CommandLine } from "../../host/cli/command-line.ts";
import { type ExitCode, UsageError } from "../../host/cli/exit-code.ts";
import type { Peer } from "./conversion-plan.ts";
import type { ConvertFlags, Words } from "./convert.ts";

const PEERS = ["spiderpool", "whereabouts", "host-local", "calico"] as const satisfies readonly Peer[];

export function addConvert(cli: CommandLine): void {
  cli
    .command("convert", "Convert pools, addresses in use, networks and annotations of another IPAM", [
      "convert whereabouts --kubeconfig admin.conf --out plan",
      "convert host-local /etc/cni/net.d/10-lan.conflist",
    ])
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
      splitList,
    )
    .option("--apply", "write the manifests to the cluster, by server-side apply")
    .option(
      "--patch <workload...>",
      'with --apply, also patch these: kind/namespace/name as in the report, or "all"; pods restart',
      splitList,
    )
    .option("--accept-losses", "apply although something is lost")
    .action((ipam: Peer, paths: readonly string[], flags: ConvertFlags) =>
      cli.run(flags, (call) => runConvert(cli, call, { ipam, paths, flags })),
    );
}

async function runConvert(cli: CommandLine, call: Call, words: Words): Promise<ExitCode> {
  const { flags, paths } = words;
  checkFlags(cli, words);
  const source = paths.length === 0 || flags.apply === true ? await cli.openCluster() : undefined;
  try {
    const { runConversion } = await import("./convert.ts");
    return await runConversion(call, words, source);
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
