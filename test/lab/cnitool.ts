/**
 * Calling CNI plugins as a runtime does: one executable by itself, or a whole network through the reference `cnitool`.
 *
 *   const { exitCode, stdout } = await runPlugin({ plugin: "berth", command: "ADD", containerId: "c1", netns: pod.path,
 *     ifName: "eth0", args: "K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web-0", stdin: netConf, env: agent.env });
 *   await cnitool("add", "blue", pod.path, { confDir, args, env: agent.env, node });
 *
 * `node` is the namespace that plays the host: bridges and macvlan parents must be there.
 * cnitool keeps its results in /var/lib/cni/results until DEL; {@link forgetNetwork} removes those of a network.
 * Effects: starts plugins, which change namespaces and, for Berth, call its agent.
 */
import { readdir, rm } from "node:fs/promises";
import { delimiter, isAbsolute, join } from "node:path";
import { tryOr } from "../../host/lib/try-or.ts";
import { referenceTool, root } from "../../scripts/setup/paths.mjs";
import { type CommandOutcome, runCommand } from "./command.ts";
import type { Netns } from "./netns.ts";

/** Folder of Berth's built plugins. */
export const berthBin = join(root, "dist", "bin");
/**
 * Folder of the reference plugins: bridge, host-device, host-local, ipvlan, loopback, macvlan, portmap, ptp, static,
 * tuning, vlan.
 */
export const referenceBin = referenceTool("plugins").directory;
/** CNI_PATH of every call by default: Berth's plugins first. */
export const defaultCniPath: readonly string[] = [berthBin, referenceBin];

export const cnitoolPath = join(referenceTool("cnitool").directory, "cnitool");
const RESULTS = "/var/lib/cni/results";

export interface PluginCall {
  /** A file's absolute path, or the name of one of Berth's or of the reference plugins. */
  readonly plugin: string;
  readonly command: "ADD" | "DEL" | "CHECK" | "GC" | "STATUS" | "VERSION";
  readonly containerId?: string;
  /** Path of the pod's namespace. */
  readonly netns?: string;
  readonly ifName?: string;
  /** CNI_ARGS. */
  readonly args?: string;
  /** The network configuration: text, or a value to be encoded. */
  readonly stdin?: string | object;
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cniPath?: readonly string[];
  readonly node?: Netns;
  readonly timeoutMs?: number;
}

/** `stdout` is the decoded JSON; undefined when nothing, or something else, was printed (then see `text`). */
export interface PluginOutcome {
  readonly exitCode: number;
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into it by name, and a wrong name gives undefined.
  readonly stdout: any;
  readonly text: string;
  readonly stderr: string;
}

/** Executes one plugin; variables that are not given are absent from its environment. */
export async function runPlugin(call: PluginCall): Promise<PluginOutcome> {
  const path = call.cniPath ?? defaultCniPath;
  const env = {
    CNI_COMMAND: call.command,
    CNI_CONTAINERID: call.containerId,
    CNI_NETNS: call.netns,
    CNI_IFNAME: call.ifName,
    CNI_ARGS: call.args,
    CNI_PATH: path.join(delimiter),
    ...call.env,
  };
  const argv = [await locatePlugin(call.plugin, path)];
  const stdin = typeof call.stdin === "object" ? JSON.stringify(call.stdin) : (call.stdin ?? "");
  const timeoutMs = call.timeoutMs ?? 120_000;
  return decodeOutcome(await runCommand(call.node?.enter(argv) ?? argv, { stdin, env, timeoutMs }));
}

export interface CnitoolOptions {
  /** The folder of the .conflist files. */
  readonly confDir: string;
  readonly cniPath?: readonly string[];
  /** CNI_ARGS. */
  readonly args?: string;
  /** CAP_ARGS, such as `{ ips: ["10.0.0.7/24"] }`. */
  readonly capabilityArgs?: object;
  /** Default: eth0. */
  readonly ifName?: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly node?: Netns;
}

export type CnitoolVerb = "add" | "del" | "check" | "gc" | "status";

/**
 * Runs `cnitool <command> <network> <netns>`. Its container ID is a hash of the namespace's path. Errors are text on
 * stderr.
 */
export async function cnitool(
  command: CnitoolVerb,
  network: string,
  netns: string,
  options: CnitoolOptions,
): Promise<PluginOutcome> {
  const env = {
    NETCONFPATH: options.confDir,
    CNI_PATH: (options.cniPath ?? defaultCniPath).join(delimiter),
    CNI_ARGS: options.args,
    CAP_ARGS: options.capabilityArgs === undefined ? undefined : JSON.stringify(options.capabilityArgs),
    CNI_IFNAME: options.ifName ?? "eth0",
    ...options.env,
  };
  const argv = [cnitoolPath, command, network, netns];
  return decodeOutcome(await runCommand(options.node?.enter(argv) ?? argv, { env, timeoutMs: 120_000 }));
}

/** Removes cnitool's records of a network whose attachments were never deleted. */
export async function forgetNetwork(network: string): Promise<void> {
  const names = await readdir(RESULTS).catch((): string[] => []);
  const ours = names.filter((name) => name.startsWith(`${network}-cnitool-`));
  await Promise.all(ours.map((name) => rm(join(RESULTS, name), { force: true })));
}

/** A CNI error, as a plugin prints it. */
export interface Refusal {
  readonly code: number;
  readonly msg: string;
  readonly details?: string;
}

/** Returns the plugin's answer; throws its output unless it succeeded. */
export function requireSuccess(
  { exitCode, stdout, text, stderr }: PluginOutcome,
  what: string,
): PluginOutcome["stdout"] {
  if (exitCode !== 0) throw new Error(`${what} failed: ${text}${stderr}`);
  return stdout;
}

/**
 * The plugin's error; throws unless it refused with one, in `cniVersion` when that is given. Reference plugins pass
 * the error of their IPAM plugin on without a version: "any".
 */
export function requireRefusal(outcome: PluginOutcome, what: string, cniVersion?: string): Refusal {
  const { exitCode, stdout, text, stderr } = outcome;
  const version = stdout?.cniVersion;
  const isInVersion = cniVersion === "any" || (typeof version === "string" && version === (cniVersion ?? version));
  if (exitCode !== 1 || typeof stdout?.code !== "number" || !isInVersion)
    throw new Error(`${what} was not refused as it should be (exit code ${exitCode}): ${text}${stderr}`);
  return stdout;
}

async function locatePlugin(plugin: string, path: readonly string[]): Promise<string> {
  if (isAbsolute(plugin)) return plugin;
  for (const directory of path) {
    if ((await readdir(directory).catch((): string[] => [])).includes(plugin)) return join(directory, plugin);
  }
  throw new Error(`No plugin "${plugin}" in ${path.join(", ")}; "npm run setup" builds them`);
}

function decodeOutcome({ exitCode, stdout, stderr }: CommandOutcome): PluginOutcome {
  return { exitCode, stdout: decodeJson(stdout), text: stdout, stderr };
}

function decodeJson(text: string): unknown {
  return tryOr(() => JSON.parse(text), undefined);
}
