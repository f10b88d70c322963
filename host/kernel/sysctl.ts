/**
 * Reads and writes sysctls (net.*) of a namespace, synchronously from inside.
 * Effects: files below /proc/sys/net; the calling thread is in the namespace meanwhile.
 */

import { accessSync, closeSync, constants, existsSync, openSync, readSync, writeFileSync } from "node:fs";
import { isMissing, messageOf } from "../lib/describe.ts";
import { insteadOf } from "../lib/try-or.ts";
import { EINVAL, EROFS, formatErrno } from "./errno.ts";
import { type NetnsHandle, withNetns } from "./netns.ts";

/** A path below `net`, with slashes because names of links may contain dots: `ipv4/conf/eth0.100/rp_filter`. */
type SysctlKey = string;

/** `errno` is the kernel's: ENOENT if the link or the setting does not exist. */
export class SysctlError extends Error {
  override readonly name = "SysctlError";
  readonly operation: "read" | "write";
  readonly key: SysctlKey;
  readonly errno: number;

  constructor(operation: "read" | "write", key: SysctlKey, errno: number, value?: string) {
    const target = value === undefined ? "" : ` to "${value}"`;
    const verb = operation === "read" ? "read" : "set";
    const remedy = errno === EROFS ? "; mount the node's /proc/sys/net, and set BERTH_SYSCTL_DIR to its path" : "";
    super(`Cannot ${verb} sysctl "net/${key}"${target}: ${formatErrno(errno)}${remedy}`);
    this.operation = operation;
    this.key = key;
    this.errno = errno;
  }
}

/**
 * The node's directory by another path, for a container with a read-only /proc/sys. It also shows the settings of the
 * reader's namespace.
 */
const DIRECTORY = process.env.BERTH_SYSCTL_DIR || "/proc/sys/net";

/** Returns whether the kernel has IPv6 in any namespace: it may be started without (`ipv6.disable=1`). */
export function hasIpv6(): boolean {
  return existsSync(`${DIRECTORY}/ipv6`);
}

/** Returns the path of the file; undefined for an invalid key: `..` would lead out of the namespace's settings. */
function pathOf(key: SysctlKey): string | undefined {
  const parts = key.split("/");
  const valid = parts.length > 1 && parts.every((part) => part !== "" && part !== "." && part !== "..");
  return valid && !key.includes("\0") ? `${DIRECTORY}/${key}` : undefined;
}

/** Calls `work` with the path. Errors of file system calls become {@link SysctlError}. */
function access<T>(
  operation: "read" | "write",
  key: SysctlKey,
  value: string | undefined,
  work: (path: string) => T,
): T {
  const path = pathOf(key);
  if (path === undefined) throw new SysctlError(operation, key, EINVAL, value);
  try {
    return work(path);
  } catch (error) {
    const errno = error instanceof Error ? Reflect.get(error, "errno") : undefined;
    if (typeof errno !== "number") throw error;
    throw new SysctlError(operation, key, -errno, value);
  }
}

/**
 * Returns the values of the existing settings, without final newlines, read in one visit of the namespace. Throws
 * {@link SysctlError}, or NetnsError.
 */
export function readSysctls(netns: string | NetnsHandle, keys: readonly SysctlKey[]): Map<SysctlKey, string> {
  const values = new Map<SysctlKey, string>();
  if (keys.length === 0) return values;
  const readAll = () => {
    for (const key of keys) {
      const value = access("read", key, undefined, readIfThere);
      if (value !== undefined) values.set(key, value);
    }
  };
  withNetns(netns, readAll);
  return values;
}

/** The kernel returns at most one page. */
const page = Buffer.alloc(4_096);

function readIfThere(path: string): string | undefined {
  return insteadOf(isMissing, undefined, () => {
    const fd = openSync(path, "r");
    try {
      return page.toString("utf8", 0, readSync(fd, page)).trimEnd();
    } finally {
      closeSync(fd);
    }
  });
}

/** Returns the sentence that says why none can be set, as in a container with a read-only /proc/sys. */
export function findObstacle(): string[] {
  try {
    access("write", "ipv4/ip_forward", undefined, (path) => accessSync(path, constants.W_OK));
    return [];
  } catch (error) {
    return [messageOf(error)];
  }
}

/** Sets the settings in order, in one visit, up to the first failure. Throws {@link SysctlError}, or NetnsError. */
export function writeSysctls(netns: string | NetnsHandle, values: ReadonlyMap<SysctlKey, string>): void {
  if (values.size === 0) return;
  const writeAll = () => {
    for (const [key, value] of values)
      access("write", key, value, (path) => writeFileSync(path, value, { flag: "r+" }));
  };
  withNetns(netns, writeAll);
}

/** Throws {@link SysctlError}, or NetnsError. */
export function writeSysctl(netns: string | NetnsHandle, key: SysctlKey, value: string): void {
  writeSysctls(netns, new Map([[key, value]]));
}
