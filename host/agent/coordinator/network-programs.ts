/** Programs that are known to remove the rules, routes and tables of other software, and their settings against it. */

import type { NodeChange } from "../../kernel/node-changes.ts";
import { documentation } from "../../lib/documentation.ts";
import { readText } from "../../lib/regular-file.ts";
import { tryOr } from "../../lib/try-or.ts";

const NETWORKD = "systemd-network";

/** By the name of the process, which the kernel cuts to 15 bytes. */
const SETTINGS: ReadonlyMap<string, string> = new Map([
  [
    NETWORKD,
    `Set ManageForeignRoutes=no and ManageForeignRoutingPolicyRules=no in networkd.conf (${documentation("host.html#systemd-networkd")})`,
  ],
  [
    "NetworkManager",
    `Set unmanaged-devices="interface-name:veth*" in NetworkManager.conf (${documentation("host.html#networkmanager")})`,
  ],
  [
    "nft",
    `Replace "flush ruleset" by the deletion of your own tables in nftables.conf (${documentation("host.html#nftablesservice")})`,
  ],
  ["firewalld", `Let firewalld manage its own table only (${documentation("host.html#firewalld")})`],
]);

/** Returns the setting of a program, as a sentence without its full stop; undefined if none is known. */
export function settingOf(program: string): string | undefined {
  return SETTINGS.get(program);
}

/**
 * Returns the name of the process that made the change; undefined if it is not known or this one: the kernel made it,
 * the process has ended, or runs where this one cannot see it. Of processes found by number only known programs
 * count: the number may be another's by now.
 */
export function nameProgram(change: NodeChange): string | undefined {
  if (change.kind === "ruleset")
    return ["", readName("thread-self")].includes(change.program) ? undefined : change.program;
  if (!("port" in change) || change.port === 0) return undefined;
  const found = readName(`${change.port}`);
  // systemd opens the socket of systemd-networkd, and no other of rtnetlink that removes anything.
  const name = found === "systemd" ? NETWORKD : found;
  return name !== undefined && SETTINGS.has(name) ? name : undefined;
}

function readName(process: string): string | undefined {
  return tryOr(() => readText(`/proc/${process}/comm`).trimEnd(), undefined);
}
