/**
 * The thread that owns the registry's database. All commits happen here, because they must never block the event loop on which detection counts
 * milliseconds (clocks-and-boots).
 */
import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from "node:worker_threads";
import { messageOf } from "../../lib/describe.ts";
import { invariant } from "../../lib/invariant.ts";
import { MAX_GROUP } from "./batch.ts";
import type { CallMessage } from "./operation.ts";
import { type SessionOptions, SqliteSession } from "./session.ts";

/** Reports a loss that is repaired without an administrator. May be sent at any time. */
export interface NoticeMessage {
  readonly kind: "notice";
  readonly text: string;
}

/** The first messages of the worker; after `opened` it sends a `Reply` to each call. `waiting` is sent once if another agent has the database. */
export type OpenMessage =
  | NoticeMessage
  | { readonly kind: "waiting"; readonly holder: string }
  | { readonly kind: "opened"; readonly loss: string | undefined }
  | { readonly kind: "failed"; readonly message: string };

function serve(port: MessagePort, session: SqliteSession): void {
  let waiting: CallMessage[] = [];
  const flush = (): void => {
    for (let next = receiveMessageOnPort(port); next !== undefined; next = receiveMessageOnPort(port)) {
      waiting.push(next.message as CallMessage);
    }
    const calls = waiting;
    waiting = [];
    for (let start = 0; start < calls.length; start += MAX_GROUP) {
      const group = calls.slice(start, start + MAX_GROUP).filter(({ method }) => method !== "close");
      // One message each: Node.js runs the continuations of one message before it delivers the next.
      if (group.length > 0) for (const reply of session.run(group)) port.postMessage(reply);
    }
    const close = calls.find(({ method }) => method === "close");
    if (close !== undefined) {
      session.close();
      port.postMessage({ id: close.id, value: undefined, freed: [] });
      port.close();
    }
  };
  port.on("message", (message: CallMessage) => {
    // All calls that arrive until the next turn of the event loop share a commit.
    if (waiting.push(message) === 1) setImmediate(flush);
  });
}

function main(port: MessagePort, options: SessionOptions): void {
  const post = (message: OpenMessage): void => port.postMessage(message);
  try {
    const session = new SqliteSession(options, {
      onWaiting: (holder) => post({ kind: "waiting", holder }),
      onNotice: (text) => post({ kind: "notice", text }),
    });
    post({ kind: "opened", loss: session.loss });
    serve(port, session);
  } catch (error) {
    post({ kind: "failed", message: messageOf(error) });
    port.close();
  }
}

invariant(parentPort !== null, "sqlite-worker runs as a worker thread only");
main(parentPort, workerData as SessionOptions);
