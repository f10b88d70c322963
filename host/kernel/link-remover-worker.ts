/**
 * The thread that deletes links, over a socket opened once in the namespace it is given. Started by link-remover.ts.
 * Effects: a netlink socket; deletes links.
 */
import { parentPort, workerData } from "node:worker_threads";
import { messageOf } from "../lib/describe.ts";
import { invariant } from "../lib/invariant.ts";
import { createConversation } from "./netlink/conversation.ts";
import { deleteLink } from "./netlink/link/requests.ts";
import { openRouteSocket } from "./netlink/socket.ts";

export interface RemoverOptions {
  readonly netnsPath: string;
}

export interface RemovalRequest {
  readonly id: number;
  readonly index: number;
}

export type RemovalAnswer =
  | { readonly id: number; readonly removed: boolean }
  | { readonly id: number; readonly message: string };

invariant(parentPort !== null, "link-remover-worker runs as a worker thread only");
const port = parentPort;
const { netnsPath } = workerData as RemoverOptions;
const socket = openRouteSocket(netnsPath);
const conversation = createConversation(socket);

function answerTo({ id, index }: RemovalRequest): RemovalAnswer {
  try {
    return { id, removed: deleteLink(conversation, index) };
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
