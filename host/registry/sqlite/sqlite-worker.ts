/**
 * The thread that owns the registry's database. It must never stop the event loop on which detection counts
 * milliseconds (allocation rule 13), so every commit happens here.
 * Started by sqlite-registry.ts; speaks in the messages below.
 * Effects: those of sqlite-session.ts.
 */

import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from "node:worker_threads";
import { messageOf } from "../../lib/describe.ts";
import { invariant } from "../../lib/invariant.ts";
import { MAX_GROUP } from "./batch.ts";
import type { CallMessage } from "./operation.ts";
import { openSession, type SessionOptions, type SqliteSession } from "./session.ts";

export type WorkerOptions = SessionOptions;

/** For people: what was lost, and is made good without them. May come at any time. */
export interface NoticeMessage {
  readonly kind: "notice";
  readonly text: string;
}

/** The first messages of the worker; after `opened` it sends a `Reply` for each call. `waiting` comes once, before another agent ends. */
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
      // One message each: Node.js runs what waits for one before it delivers the next.
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
    // Whatever arrives until the loop comes round shares the commit.
    if (waiting.push(message) === 1) setImmediate(flush);
  });
}

function main(port: MessagePort, options: WorkerOptions): void {
  const post = (message: OpenMessage): void => port.postMessage(message);
  try {
    const session = openSession(options, {
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
main(parentPort, workerData as WorkerOptions);
