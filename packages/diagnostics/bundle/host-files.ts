/**
 * The part of a support bundle that comes from this host: versions, the agent's answers, metrics, logs, network
 * definitions, the node's addresses and routes.
 */
import { type Dirent, readdirSync, realpathSync } from "node:fs";
import { hostname, release, uptime } from "node:os";
import { join } from "node:path";
import { askAgent, askForText } from "../../../host/cli/ask-agent.ts";
import { checkNode, reportOfNode } from "../../../host/cli/check/check-node.ts";
import { commandTail } from "../../../host/cli/command-tail.ts";
import type { HostPaths } from "../../../host/cli/host-checks/host-paths.ts";
import { NodeSource } from "../../../host/cli/node-source.ts";
import { messageOf } from "../../../host/lib/describe.ts";
import { type BundleFile, MAX_BUNDLE_FILE } from "./archive.ts";
import { fileTail, wholeLines } from "./file-tail.ts";
import { isKubeconfig } from "./redact.ts";

/** Most files of the directory of network definitions in a support bundle. */
const MAX_BUNDLE_DEFINITIONS = 100;

/** Longest network definition in a support bundle: bytes. */
const MAX_BUNDLE_DEFINITION = 64 * 1024;

/** Time for which a support bundle waits for one command, such as `ip route`: milliseconds. */
const BUNDLE_COMMAND_MS = 20_000;

export interface HostBundlePaths extends HostPaths {
  readonly logDirectory: string;
}

/** Questions to the agent whose answers are in the bundle. */
const QUESTIONS = ["health", "stats", "pools"];

/** Commands whose output is in the bundle, by file name. */
const COMMANDS: readonly (readonly [file: string, ...argv: string[]])[] = [
  ["journal.log", "journalctl", "--unit=berth-agent", "--since=-6h", "--no-pager", "--lines=20000"],
  ["ip-address.txt", "ip", "address", "show"],
  ["ip-rule.txt", "ip", "rule", "show"],
  ["ip-6-rule.txt", "ip", "-6", "rule", "show"],
  ["ip-route.txt", "ip", "route", "show", "table", "all"],
  ["ip-6-route.txt", "ip", "-6", "route", "show", "table", "all"],
  ["ip-neigh.txt", "ip", "neighbour", "show"],
];

/** Collects the most important files first: if not all fit, the last are left out. */
export async function collectHostFiles(paths: HostBundlePaths, version: string): Promise<BundleFile[]> {
  const { socket, confDirectory, binDirectory, logDirectory } = paths;
  const about = { version, node: process.version, kernel: release(), host: hostname(), uptimeS: uptime() };
  const files: BundleFile[] = [
    { path: "about.json", text: json(about) },
    { path: "check.json", text: json(reportOfNode(await checkNode({ paths, version }))) },
  ];
  for (const question of QUESTIONS)
    files.push(await answered(`agent/${question}.json`, async () => json(await askAgent(socket, `/v1/${question}`))));
  const addresses = async () => json(await new NodeSource(socket).allocations({}));
  files.push(await answered("agent/allocations.json", addresses));
  files.push(await answered("agent/metrics.txt", () => askForText(socket, "/metrics")));
  files.push(...readDefinitions(confDirectory), listOf("plugins.txt", binDirectory), listOf("logs.txt", logDirectory));
  files.push(readLog("audit.jsonl", logDirectory));
  for (const [path, ...argv] of COMMANDS) files.push(await outputOf(path, argv));
  files.push(readLog("coordinator.log", logDirectory));
  return files;
}

export function json(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}

/** Returns a file that says why it is missing. */
export function failedFile(path: string, reason: string): BundleFile {
  return { path, text: `${reason}\n`, note: reason };
}

async function answered(path: string, ask: () => Promise<string>): Promise<BundleFile> {
  try {
    return { path, text: await ask() };
  } catch (error) {
    return failedFile(path, messageOf(error));
  }
}

/** Files only: a folder of a network may be in it. */
function readDefinitions(directory: string): BundleFile[] {
  const names = listFiles(directory);
  if (!Array.isArray(names)) return [failedFile("net.d", names)];
  return names
    .slice(0, MAX_BUNDLE_DEFINITIONS)
    .map((name) => {
      const file = readTail(`net.d/${name.slice(0, 60)}`, directory, name, MAX_BUNDLE_DEFINITION);
      // One of Multus or Calico is all secret.
      const isSecret = /kubeconfig/i.test(name) || isKubeconfig(file.text);
      return isSecret ? failedFile(file.path, "A kubeconfig is left out") : file;
    })
    .concat(
      names.length > MAX_BUNDLE_DEFINITIONS
        ? [failedFile("net.d/more", `${names.length - MAX_BUNDLE_DEFINITIONS} more files are left out`)]
        : [],
    );
}

/** Returns the sorted names; the reason if they cannot be read. */
function listFiles(directory: string): string[] | string {
  try {
    return readdirSync(directory, { withFileTypes: true })
      .filter(isReadable)
      .map(({ name }) => name)
      .sort();
  } catch (error) {
    return messageOf(error);
  }
}

function isReadable(entry: Dirent): boolean {
  return entry.isFile() || entry.isSymbolicLink();
}

function listOf(path: string, directory: string): BundleFile {
  const names = listFiles(directory);
  return Array.isArray(names) ? { path, text: `${directory}\n${names.join("\n")}\n` } : failedFile(path, names);
}

function readLog(name: string, directory: string): BundleFile {
  return readTail(name, directory, name, MAX_BUNDLE_FILE);
}

/** Returns the end of a file as `path`; the reason if it cannot be read. */
function readTail(path: string, directory: string, name: string, maxBytes: number): BundleFile {
  try {
    const { text, wholeBytes } = fileTail(pathWithin(directory, name), maxBytes);
    return { path, text, note: noteOf(text.length, wholeBytes, maxBytes) };
  } catch (error) {
    return failedFile(path, messageOf(error));
  }
}

/** Returns the path without links. Throws if they lead out of the directory. */
function pathWithin(directory: string, name: string): string {
  const path = realpathSync(join(directory, name));
  if (path.startsWith(join(realpathSync(directory), "/"))) return path;
  throw new Error(`${join(directory, name)} is a link to ${path}, which is left out`);
}

/** Returns a command's output as a file; its end if it is long. */
export async function outputOf(
  path: string,
  argv: readonly string[],
  { maxBytes = MAX_BUNDLE_FILE, timeoutMs = BUNDLE_COMMAND_MS } = {},
): Promise<BundleFile> {
  const { content, wholeBytes, failure } = await commandTail(argv, { maxBytes, timeoutMs });
  const text = wholeLines(content, wholeBytes > content.length).toString();
  if (failure !== undefined) return { path, text: `${text}${failure}\n`, note: failure };
  return { path, text, note: noteOf(text.length, wholeBytes, maxBytes) };
}

function noteOf(keptBytes: number, wholeBytes: number, maxBytes: number): string | undefined {
  return wholeBytes > maxBytes ? `the last ${keptBytes} of ${wholeBytes} bytes` : undefined;
}
