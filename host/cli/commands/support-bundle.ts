/** `berthctl support-bundle`: one file with what a maintainer needs to know of this host. */
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { hostname, release, uptime } from "node:os";
import { join } from "node:path";
import { messageOf } from "../../lib/describe.ts";
import { askAgent } from "../ask-agent.ts";
import type { CommandLine } from "../command-line.ts";
import { diagnoseHost } from "../doctor/diagnose.ts";
import { readHost } from "../doctor/read-host.ts";
import { ExitCode, UsageError } from "../exit-code.ts";
import { type BundleFile, packBundle } from "../support/archive.ts";

interface BundleFlags {
  readonly file?: string;
  readonly cniConfDir: string;
  readonly cniBinDir: string;
}

/** Questions to the agent whose answers are in the bundle. */
const QUESTIONS = ["health", "stats", "pools", "allocations", "check"];

/** Commands whose output is in the bundle, by file name. */
const COMMANDS: readonly (readonly [file: string, command: string, ...words: string[]])[] = [
  ["journal.log", "journalctl", "--unit=berth-agent", "--since=-6h", "--no-pager", "--lines=20000"],
  ["ip-address.txt", "ip", "address", "show"],
  ["ip-rule.txt", "ip", "rule", "show"],
  ["ip-route.txt", "ip", "route", "show", "table", "all"],
  ["ip-6-route.txt", "ip", "-6", "route", "show", "table", "all"],
  ["ip-neigh.txt", "ip", "neighbour", "show"],
];

export function addSupportBundle(cli: CommandLine): void {
  cli
    .command("support-bundle", "Write a tar.gz with what a maintainer needs to know of this host; without secrets")
    .option("--file <path>", "path of the bundle; default: berth-HOST-TIME.tar.gz")
    .option("--cni-conf-dir <directory>", "directory of network definitions", "/etc/cni/net.d")
    .option("--cni-bin-dir <directory>", "directory of plugins", "/opt/cni/bin")
    .action((flags: BundleFlags) =>
      cli.run({}, async ({ out }) => {
        if (cli.isCluster) throw new UsageError("support-bundle is about one host; run berthctl on the node");
        const now = new Date();
        const folder = `berth-${hostname()}-${now.toISOString().replaceAll(/[-:]|\.\d+/g, "")}`;
        const path = flags.file ?? `${folder}.tar.gz`;
        const files = await collectFiles(cli, flags);
        writeFileSync(path, packBundle(folder, files, now.getTime() / 1_000), { mode: 0o600 });
        out.text(`Wrote ${path}: ${files.length} files. Read it before you send it: names and addresses are in it`);
        return ExitCode.Success;
      }),
    );
}

async function collectFiles(cli: CommandLine, flags: BundleFlags): Promise<BundleFile[]> {
  const { socket } = cli.options;
  const paths = { socket, confDirectory: flags.cniConfDir, binDirectory: flags.cniBinDir };
  const facts = await readHost(paths, cli.version);
  const about = { version: cli.version, node: process.version, kernel: release(), host: hostname(), uptimeS: uptime() };
  const answers: BundleFile[] = [];
  for (const question of QUESTIONS)
    answers.push({ path: `agent/${question}.json`, text: await answerOf(socket, question) });
  return [
    { path: "about.json", text: json(about) },
    { path: "doctor.json", text: json(diagnoseHost(facts)) },
    ...answers,
    ...readDirectory(flags.cniConfDir).map(({ path, text }) => ({ path: `net.d/${path}`, text })),
    ...COMMANDS.map(([path, command, ...words]) => ({ path, text: outputOf(command, words) })),
  ];
}

function json(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}

async function answerOf(socket: string, question: string): Promise<string> {
  try {
    return json(await askAgent(socket, `/v1/${question}`));
  } catch (error) {
    return `${messageOf(error)}\n`;
  }
}

/** Files only: a folder of a network may be in it. */
function readDirectory(directory: string): BundleFile[] {
  try {
    const names = readdirSync(directory, { withFileTypes: true }).filter((entry) => entry.isFile());
    // A kubeconfig of Multus or Calico is all secret.
    const texts = names.filter(({ name }) => !/kubeconfig/i.test(name));
    return texts.map(({ name }) => ({ path: name.slice(0, 60), text: readFileSync(join(directory, name), "utf8") }));
  } catch (error) {
    return [{ path: "unreadable", text: `${messageOf(error)}\n` }];
  }
}

function outputOf(command: string, words: readonly string[]): string {
  const { stdout, error } = spawnSync(command, words, {
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
    timeout: 20_000,
  });
  return error === undefined ? stdout : `${messageOf(error)}\n`;
}
