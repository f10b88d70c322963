/**
 * The thread that owns the registry's database. All commits happen here, because they must never block the event loop
 * on which detection counts milliseconds (clocks-and-boots).
 */
import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from "node:worker_threads";
import { messageOf } from "../../lib/describe.ts";
import { invariant } from "../../lib/invariant.ts";
import { MAX_GROUP } from "./batch.ts";
import { type CallMessage, onlyReads } from "./operation.ts";
import { type SessionOptions, SqliteSession } from "./session.ts";

/** Reports a loss that is repaired without an administrator; `lost`: of rows of a journal in use. */
export interface NoticeMessage {
  readonly kind: "notice" | "lost";
  readonly text: string;
}

/**
 * The first messages of the worker; after `opened` it sends a `Reply` to each call. `waiting` is sent once if another
 * agent has the database.
 */
export type OpenMessage =
  | NoticeMessage
  | { readonly kind: "waiting"; readonly holder: string }
  | { readonly kind: "opened"; readonly loss: string | undefined }
  | { readonly kind: "failed"; readonly message: string };

/**
 * Runs calls until the one that closes. The thread waits for the bell in place of its event loop, a turn of which
 * costs as much as a commit. Writes that arrive while others are run share the next commit; then come the reads, each
 * of which is answered before the next one: a reply may be a page of rows, and two of them are never held at once.
 */
function serve(port: MessagePort, bell: Int32Array, session: SqliteSession): void {
  for (;;) {
    const calls = receive(port, bell) as CallMessage[];
    for (let start = 0; start < calls.length; start += MAX_GROUP) {
      const some = calls.slice(start, start + MAX_GROUP).filter(({ method }) => method !== "close");
      const [reads, writes] = [some.filter(isRead), some.filter((call) => !isRead(call))];
      // One message each: Node.js runs the continuations of one message before it delivers the next.
      if (writes.length > 0) for (const reply of session.run(writes)) port.postMessage(reply);
      for (const read of reads) for (const reply of session.run([read])) port.postMessage(reply);
    }
    const closing = calls.filter(({ method }) => method === "close");
    if (closing.length === 0) continue;
    session.close();
    for (const { id } of closing) port.postMessage({ id, value: undefined, freed: [] });
    port.close();
    return;
  }
}

const isRead = ({ method }: CallMessage): boolean => onlyReads(method);

/** Waits until there are messages, and returns them. */
function receive(port: MessagePort, bell: Int32Array): unknown[] {
  for (;;) {
    const rung = Atomics.load(bell, 0);
    const messages: unknown[] = [];
    for (let next = receiveMessageOnPort(port); next !== undefined; next = receiveMessageOnPort(port)) {
      messages.push(next.message);
    }
    if (messages.length > 0) return messages;
    Atomics.wait(bell, 0, rung);
  }
}

/** Opens the registry of the first message; later ones wait for the answer. Returns undefined if that fails. */
function open(port: MessagePort, bell: Int32Array): SqliteSession | undefined {
  const post = (message: OpenMessage): void => port.postMessage(message);
  const [options] = receive(port, bell);
  try {
    const session = new SqliteSession(options as SessionOptions, {
      onWaiting: (holder) => post({ kind: "waiting", holder }),
      onNotice: (text) => post({ kind: "notice", text }),
      onRowsLost: (text) => post({ kind: "lost", text }),
    });
    post({ kind: "opened", loss: session.loss });
    return session;
  } catch (error) {
    post({ kind: "failed", message: messageOf(error) });
    port.close();
    return undefined;
  }
}

function main(port: MessagePort, bell: Int32Array): void {
  const session = open(port, bell);
  if (session !== undefined) serve(port, bell, session);
}

invariant(parentPort !== null, "sqlite-worker runs as a worker thread only");
main(parentPort, workerData as Int32Array);
