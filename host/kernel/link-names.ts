/**
 * The names of a namespace's links, read without the kernel's lock on all links, for which a netlink list waits while
 * another link is deleted.
 * Effects: a file below /proc; the calling thread is in the namespace meanwhile.
 */
import { readText } from "../lib/regular-file.ts";
import { type NetnsHandle, withNetns } from "./netns.ts";

/** The namespace that the calling thread is in. */
const DEVICES = "/proc/thread-self/net/dev";

/**
 * Returns the names of the first links, at least two dozen if there are as many: a pod may have thousands. Throws
 * NetnsError if the namespace cannot be entered.
 */
export function readFirstLinkNames(netns: NetnsHandle): string[] {
  const text = withNetns(netns, () => readText(DEVICES));
  return text.split("\n").flatMap((line) => /^ *([^ :]+):/.exec(line)?.[1] ?? []);
}
