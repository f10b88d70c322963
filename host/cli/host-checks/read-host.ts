/** Reads the host's state for `berthctl check`: files, links, routes and settings. Changes nothing. */

import { spawnSync } from "node:child_process";
import { lstatSync, readdirSync, readlinkSync, type Stats, statSync } from "node:fs";
import { release } from "node:os";
import { dirname, join, resolve } from "node:path";
import { BERTH_PROTOCOL } from "../../coordinator/plan/constants.ts";
import { type HostFacts, type NetworkFacts, SYSCTLS } from "../../findings/host/diagnose.ts";
import { FILE_CHECKS } from "../../findings/host/file-checks.ts";
import type { HostFiles } from "../../findings/host/ini-file.ts";
import { pluginFileStatus } from "../../install/plugins.ts";
import { messageOf } from "../../lib/describe.ts";
import { readText } from "../../lib/regular-file.ts";
import { tryOr } from "../../lib/try-or.ts";
import { parseIp } from "../../net/ip.ts";
import type { HostPaths } from "./host-paths.ts";

const PLUGINS = ["berth", "coordinator", "ifacer"];

/** A route that Berth's coordinator made, as `ip route` prints it. */
const OWN_ROUTE = new RegExp(`\\bproto ${BERTH_PROTOCOL}\\b`);

export function readHost({ socket, stateDirectory, confDirectory, binDirectory, hostRoot }: HostPaths): HostFacts {
  const links = readLinkNames();
  return {
    isRoot: process.getuid?.() === 0,
    timeS: Date.now() / 1_000,
    kernel: release(),
    modules: readModules(hostRoot),
    confDirectory,
    ...readNetworks(confDirectory),
    binDirectory,
    plugins: PLUGINS.map((name) => ({
      name,
      kind: pluginFileStatus(join(binDirectory, name)),
      hasAlias: pluginFileStatus(join(binDirectory, `berth-${name}`)) === "own",
      mode: statusOf(join(binDirectory, name))?.mode ?? 0,
    })),
    sysctls: new Map(Object.keys(SYSCTLS).flatMap((name) => entryOf(name, findText(join("/proc/sys", name))?.trim()))),
    mtus: new Map(links.flatMap(([name, link]) => entryOf(name, readMtu(link)))),
    lowers: new Map(links.map(([name, link]) => [name, readLowers(link)])),
    files: [
      ...fileFacts([socket, stateDirectory], true),
      ...fileFacts([binDirectory, confDirectory, ...PLUGINS.map((name) => join(binDirectory, name))], false),
    ],
    hostFiles: readFiles(
      hostRoot,
      FILE_CHECKS.flatMap(({ paths }) => paths),
    ),
    leftovers: readLeftovers(binDirectory, confDirectory),
    foreignRoutes: readRoutes(500),
  };
}

function entryOf<T>(name: string, value: T | undefined): [string, T][] {
  return value === undefined ? [] : [[name, value]];
}

/** Longest list of the kernel's modules that is read: bytes. */
const MAX_MODULES_BYTES = 16 * 1024 * 1024;

function findText(path: string): string | undefined {
  return tryOr(() => readText(path, MAX_MODULES_BYTES), undefined);
}

function listNames(directory: string): string[] {
  return tryOr(() => readdirSync(directory).sort(), []);
}

function readMtu(name: string): number | undefined {
  return tryOr(() => Number(readText(`/sys/class/net/${name}/mtu`)), undefined);
}

/** Returns undefined for paths that do not exist, or that this user may not see. */
function statusOf(path: string): Stats | undefined {
  return tryOr(() => statSync(path), undefined);
}

/** Returns the facts of the files that exist. */
function fileFacts(paths: readonly string[], isPrivate: boolean): HostFacts["files"] {
  return paths.flatMap((path) => {
    const status = statusOf(path);
    return status === undefined ? [] : [{ path, uid: status.uid, mode: status.mode & 0o7777, isPrivate }];
  });
}

/** Returns the output; "" if there is no such program, or it fails. */
function runIp(...words: string[]): string {
  const { status, stdout } = spawnSync("ip", words, { encoding: "utf8" });
  return status === 0 ? stdout : "";
}

/** Returns each name and alternative name of an interface, with the interface's own name. */
function readLinkNames(): (readonly [name: string, link: string])[] {
  const rows: { ifname: string; altnames?: string[] }[] = JSON.parse(runIp("-j", "link", "show") || "[]");
  const alternative = rows.flatMap(({ ifname, altnames = [] }) => altnames.map((name) => [name, ifname] as const));
  return [...listNames("/sys/class/net").map((name) => [name, name] as const), ...alternative];
}

/** Returns the interfaces below one. */
function readLowers(name: string): string[] {
  return listNames(`/sys/class/net/${name}`).flatMap((entry) => /^lower_(.*)/.exec(entry)?.[1] ?? []);
}

/** Directory in which host-local keeps a file for each address, by network. */
const HOST_LOCAL = "/var/lib/cni/networks";

/** Programs and settings of other IPAM plugins. */
function readLeftovers(binDirectory: string, confDirectory: string): HostFacts["leftovers"] {
  // host-local names a file after its address; others are `lock` and `last_reserved_ip.0`.
  const isAddress = (name: string): boolean => parseIp(name) !== undefined;
  const count = (network: string): number => listNames(join(HOST_LOCAL, network)).filter(isAddress).length;
  const kept = new Map(listNames(HOST_LOCAL).map((network) => [network, count(network)]));
  const files: [ipam: string, path: string][] = [
    ["whereabouts", join(confDirectory, "whereabouts.d")],
    ["whereabouts", join(binDirectory, "whereabouts")],
    ["spiderpool", join(binDirectory, "spiderpool")],
    ["calico-ipam", join(binDirectory, "calico-ipam")],
  ];
  const found = files.filter(([, path]) => statusOf(path) !== undefined);
  return [
    ...(kept.size === 0 ? [] : [{ path: HOST_LOCAL, ipam: "host-local", addresses: kept }]),
    ...found.map(([ipam, path]) => ({ path, ipam, addresses: new Map<string, number>() })),
  ];
}

/** Loaded, built in, or to be loaded. */
function readModules(hostRoot: string): ReadonlySet<string> | undefined {
  const folder = join(hostRoot, "lib/modules", release());
  const lists = ["modules.builtin", "modules.dep"].map((name) => findText(join(folder, name)));
  const loaded = listNames("/sys/module");
  if (lists.every((text) => text === undefined)) return undefined;
  const found = lists.flatMap((text = "") => [...text.matchAll(/([^/\s:]+)\.ko/g)].map(([, name = ""]) => name));
  return new Set([...found, ...loaded].map((name) => name.replaceAll("-", "_")));
}

function readNetworks(directory: string): Pick<HostFacts, "networks" | "unreadable"> {
  const unreadable: string[] = [];
  if (statusOf(directory) === undefined) return { networks: undefined, unreadable };
  const names = listNames(directory).filter((name) => /\.(conflist|conf|json)$/.test(name));
  const networks = names.flatMap((name): NetworkFacts[] => {
    try {
      const conf = JSON.parse(readText(join(directory, name)));
      const plugins: unknown[] = Array.isArray(conf.plugins) ? conf.plugins : [conf];
      return [{ file: name, name: String(conf.name ?? ""), plugins: plugins.map(pluginOf) }];
    } catch (error) {
      unreadable.push(`${join(directory, name)} cannot be read: ${messageOf(error)}`);
      return [];
    }
  });
  return { networks, unreadable };
}

function pluginOf(entry: unknown): NetworkFacts["plugins"][number] {
  const keys: Readonly<Record<string, unknown>> = Object(entry);
  const { type = "", ipam, master = "", mtu, linkInContainer, vlanID, bond } = keys;
  // The master of a NIC on another of the pod's is none of the node's interfaces.
  const ofNode = linkInContainer === true ? "" : String(master);
  const devices = [...(Number(vlanID) > 0 ? ["vlan"] : []), ...(bond == null ? [] : ["bond"])];
  return { type: String(type), ipam: String(Object(ipam).type ?? ""), master: ofNode, mtu: Number(mtu) || 0, devices };
}

function readRoutes(table: number): readonly string[] {
  const lines = ["-4", "-6"].flatMap((family) => runIp(family, "route", "show", "table", String(table)).split("\n"));
  return lines.map((line) => line.trim()).filter((line) => line !== "" && !OWN_ROUTE.test(line));
}

/** Most bytes of one file that check judges; a larger one counts as empty. */
export const MAX_HOST_FILE_BYTES = 262_144;

/** Symbolic links that are followed, one after the other: as the kernel. */
const MAX_LINKS = 40;

/** Paths of the kernel and of this process, which do not move with the host's files. */
const OWN = /^\/(?:proc|sys)\//;

/**
 * Returns the existing ones of these paths, without the root. The last part of a path may be `*` and an ending: the
 * files of a folder. Folders, dangling links and unreadable files have an empty text.
 */
export function readFiles(root: string, paths: readonly string[]): HostFiles {
  const found = new Map<string, string>();
  for (const path of paths) {
    const base = OWN.test(path) ? "/" : root;
    for (const file of expand(base, path)) {
      const text = readWithin(base, file);
      if (text !== undefined) found.set(file, text);
    }
  }
  return found;
}

function expand(root: string, path: string): string[] {
  const [folder = "", ending] = path.split("/*");
  if (ending === undefined) return [path];
  const names = listNames(join(root, folder)).filter((name) => name.endsWith(ending));
  return names.map((name) => `${folder}/${name}`);
}

/** Returns undefined if there is nothing. An absolute link leads to a file below the root. */
function readWithin(root: string, path: string): string | undefined {
  let at = path;
  try {
    for (let links = 0; links < MAX_LINKS; links++) {
      const status = lstatSync(join(root, at));
      if (!status.isSymbolicLink())
        return status.isFile() && status.size <= MAX_HOST_FILE_BYTES
          ? readText(join(root, at), MAX_HOST_FILE_BYTES)
          : "";
      at = resolve(dirname(at), readlinkSync(join(root, at)));
    }
  } catch {
    return at === path ? undefined : "";
  }
  return "";
}
