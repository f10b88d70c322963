/** `berthctl support-bundle`: one file for maintainers, about this host or a cluster. */
import { rmSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import type { Call, CommandLine } from "../../host/cli/command-line.ts";
import { ExitCode, UsageError } from "../../host/cli/exit-code.ts";
import { type HostPathFlags, hostPaths, withHostPaths } from "../../host/cli/host-checks/host-paths.ts";
import { LOG_DIRECTORY } from "../../host/config/coordinator-conf.ts";
import { errnoOf, messageOf } from "../../host/lib/describe.ts";
import { tryOr } from "../../host/lib/try-or.ts";
import type { BundleFile } from "./bundle/archive.ts";

interface BundleFlags extends HostPathFlags {
  readonly file?: string;
  readonly logDir: string;
  readonly maxSize?: string;
}

/** Longest time that one pod may take by default: milliseconds. */
const BUNDLE_AGENT_MS = 60_000;

export function addSupportBundle(cli: CommandLine): void {
  withHostPaths(
    cli.command(
      "support-bundle",
      "Write a tar.gz with what a maintainer needs to know of this host or cluster; without secrets",
      ["support-bundle", "support-bundle --file - > bundle.tar.gz"],
    ),
  )
    .option("--file <path>", "path of the bundle, - for stdout; default: berth-HOST-TIME.tar.gz")
    .option("--log-dir <directory>", "directory of the audit log", LOG_DIRECTORY)
    .option("--max-size <MiB>", "largest bundle before it is compressed")
    .action((flags: BundleFlags) => cli.run({}, (call) => writeBundle(cli, call, flags)));
}

async function writeBundle(cli: CommandLine, call: Call, flags: BundleFlags): Promise<ExitCode> {
  const { packBundle, MAX_BUNDLE, MAX_CLUSTER_BUNDLE } = await import("./bundle/archive.ts");
  const most = cli.isCluster ? MAX_CLUSTER_BUNDLE : MAX_BUNDLE;
  const maxBytes = Math.min(most, flags.maxSize === undefined ? most : parseSize(flags.maxSize) * 2 ** 20);
  const now = new Date();
  const subject = cli.isCluster ? "cluster" : hostname();
  const folder = `berth-${subject}-${now.toISOString().replaceAll(/[-:]|\.\d+/g, "")}`;
  const path = flags.file ?? `${folder}.tar.gz`;
  if (path !== "-") tryNew(path);
  const files = cli.isCluster ? await collectCluster(cli) : await collectHost(cli, flags);
  const { archive, notes } = await packBundle(files, { folder, timeS: now.getTime() / 1_000, maxBytes });
  if (path === "-") {
    process.stdout.write(archive);
    return ExitCode.Success;
  }
  writeNew(path, archive);
  const missing = notes.length === 0 ? "" : `, ${notes.length} of them not complete (LEFT-OUT lists them)`;
  call.out.text(
    `Wrote ${path}: ${files.length} files${missing}. Read it before you send it: names and addresses are in it`,
  );
  return ExitCode.Success;
}

function parseSize(text: string): number {
  const value = Number(text);
  if (text.trim() !== "" && value > 0 && value <= 3_600) return value;
  throw new UsageError(`Option --max-size: found ${JSON.stringify(text)}, want a number above 0 and at most 3600`);
}

/** Tells before the collection what would refuse the bundle after it: UsageError. */
function tryNew(path: string): void {
  writeNew(path, Buffer.alloc(0));
  rmSync(path);
}

/** An existing file would keep its owner and mode, and a link would lead elsewhere: UsageError. */
function writeNew(path: string, content: Buffer): void {
  try {
    writeFileSync(path, content, { mode: 0o600, flag: "wx" });
  } catch (error) {
    // A disk that is full has its beginning.
    if (errnoOf(error) !== "EEXIST") tryOr(() => rmSync(path), undefined);
    throw new UsageError(`Option --file: ${messageOf(error)}`);
  }
}

async function collectHost(cli: CommandLine, flags: BundleFlags): Promise<readonly BundleFile[]> {
  const { collectHostFiles } = await import("./bundle/host-files.ts");
  return collectHostFiles({ ...hostPaths(cli.options.socket, flags), logDirectory: flags.logDir }, cli.version);
}

async function collectCluster(cli: CommandLine): Promise<readonly BundleFile[]> {
  // Loaded only here: it starts processes.
  const { collectClusterBundle } = await import("./bundle/cluster-bundle.ts");
  const source = await cli.openCluster();
  const about = { berthctl: cli.version, time: new Date().toISOString() };
  const { timeoutMs = BUNDLE_AGENT_MS } = cli.place;
  try {
    return await collectClusterBundle({ api: source.api, about, ...cli.place, timeoutMs });
  } finally {
    await source.close();
  }
}
