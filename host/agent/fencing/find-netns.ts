/**
 * The network namespace of an orphan whose path no ADD of this journal has told: the journal was lost, and the address taken in from the API server.
 * Effects: reads the folders in which runtimes keep namespaces, and looks into those.
 */
import { readdirSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { addressOf } from "../../kernel/netlink/address/address.ts";
import { listAddresses } from "../../kernel/netlink/address/requests.ts";
import { createConversation } from "../../kernel/netlink/conversation.ts";
import { openRouteSocket } from "../../kernel/netlink/socket.ts";
import { NetnsError } from "../../kernel/netns.ts";
import { equalIp, type Ip } from "../../net/ip.ts";

/** Where containerd and CRI-O keep them, whatever the journal knows. */
const USUAL_FOLDER = "/run/netns";

/**
 * Path of the first namespace that has the address and is not one of `known`, which are those of the journal's attachments. They also tell in which
 * folders to look. Undefined when there is none.
 */
export function findNetns(ip: Ip, known: readonly string[]): string | undefined {
  const taken = new Set(known.map(resolve));
  const folders = new Set([...known.map(dirname), USUAL_FOLDER].map(resolve));
  for (const folder of folders) {
    if (folder.startsWith("/proc/")) continue;
    const found = list(folder).find((path) => !taken.has(path) && hasAddress(path, ip));
    if (found !== undefined) return found;
  }
  return undefined;
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder).map((name) => join(folder, name));
  } catch {
    return [];
  }
}

function resolve(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

function hasAddress(netns: string, ip: Ip): boolean {
  try {
    using socket = openRouteSocket(netns);
    return listAddresses(createConversation(socket))
      .map(addressOf)
      .some((address) => address !== undefined && equalIp(address.prefix.ip, ip));
  } catch (error) {
    if (error instanceof NetnsError) return false;
    throw error;
  }
}
