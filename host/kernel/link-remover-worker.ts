/**
 * The thread that deletes links, over a socket opened once in the given namespace.
 * Effects: a netlink socket; deletes links.
 */
import { parentPort, workerData } from "node:worker_threads";
import { messageOf } from "../lib/describe.ts";
import { invariant } from "../lib/invariant.ts";
import { ENODEV, EOPNOTSUPP } from "./errno.ts";
import { createConversation } from "./netlink/conversation.ts";
import { NetlinkError, unlessRefused } from "./netlink/error.ts";
import { deleteLink, deleteLinkGroup, linkChange } from "./netlink/link/requests.ts";
import { openRouteSocket } from "./netlink/socket.ts";

export interface RemoverOptions {
  readonly netnsPath: string;
  readonly group: number;
}

export interface RemovalRequest {
  readonly id: number;
  readonly indexes: readonly number[];
}

export type RemovalAnswer =
  | { readonly id: number; readonly removed: boolean }
  | { readonly id: number; readonly message: string };

invariant(parentPort !== null, "link-remover-worker runs as a worker thread only");
const port = parentPort;
const { netnsPath, group } = workerData as RemoverOptions;
const socket = openRouteSocket(netnsPath);
const conversation = createConversation(socket);

/** Returns whether the link existed. */
function moveToGroup(index: number): boolean {
  return unlessRefused([ENODEV], () => conversation.request(linkChange(index, { group }))) !== undefined;
}

/** Returns whether one of the links existed. */
function removeTogether(indexes: readonly number[]): boolean {
  const moved = indexes.filter(moveToGroup);
  if (moved.length === 0) return false;
  try {
    return deleteLinkGroup(conversation, group);
  } catch (error) {
    if (!(error instanceof NetlinkError) || error.errno !== EOPNOTSUPP) throw error;
    // A link in the group, perhaps not one of these, cannot be deleted.
    return moved.filter((index) => deleteLink(conversation, index)).length > 0;
  }
}

/** One link is deleted in one request. */
function remove([first, ...others]: readonly number[]): boolean {
  if (first === undefined) return false;
  return others.length === 0 ? deleteLink(conversation, first) : removeTogether([first, ...others]);
}

function answerTo({ id, indexes }: RemovalRequest): RemovalAnswer {
  try {
    return { id, removed: remove(indexes) };
  } catch (error) {
    return { id, message: messageOf(error) };
  }
}

port.on("message", (request: RemovalRequest | "close") => {
  if (request !== "close") {
    port.postMessage(answerTo(request));
    return;
  }
  socket[Symbol.dispose]();
  port.close();
});
