/** Two fresh namespaces with a netlink conversation in each, for tests of the route families. */
import { execFileSync } from "node:child_process";
import { expect } from "vitest";
import { type Conversation, createConversation } from "../../host/kernel/netlink/conversation.ts";
import type { Link } from "../../host/kernel/netlink/link/link.ts";
import { readLink } from "../../host/kernel/netlink/link/requests.ts";
import { openRouteSocket } from "../../host/kernel/netlink/socket.ts";

export interface Room extends Disposable {
  readonly near: string;
  readonly far: string;
  /** With `near`. */
  readonly here: Conversation;
  /** With `far`. */
  readonly there: Conversation;
  /** `ip` in one of them, words parted by blanks. */
  show(netns: string, line: string): string;
  /** The same, with details, as JSON. */
  json(netns: string, line: string): ReturnType<typeof JSON.parse>;
}

/** `prefix` keeps the names of test files apart. */
export function makeRoom(prefix: string): Room {
  const near = `${prefix}n${process.pid}`;
  const far = `${prefix}f${process.pid}`;
  for (const netns of [near, far]) execFileSync("ip", ["netns", "add", netns]);
  const nearSocket = openRouteSocket(`/run/netns/${near}`);
  const farSocket = openRouteSocket(`/run/netns/${far}`);
  const show = (netns: string, line: string) => execFileSync("ip", ["-n", netns, ...line.split(" ")]).toString();
  return {
    near,
    far,
    here: createConversation(nearSocket),
    there: createConversation(farSocket),
    show,
    json: (netns, line) => JSON.parse(show(netns, `-d -j ${line}`)),
    [Symbol.dispose]() {
      for (const socket of [nearSocket, farSocket]) socket[Symbol.dispose]();
      for (const netns of [near, far]) execFileSync("ip", ["netns", "del", netns]);
    },
  };
}

/** The link, which must be there. */
export function linkIn(conversation: Conversation, name: string): Link {
  return readLink(conversation, name) ?? expect.unreachable(name);
}
