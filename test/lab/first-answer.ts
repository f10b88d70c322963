/**
 * Waits for the first answer of a starting agent. Polling takes a tenth of the time that the agent needs on two
 * processors, so it starts only when the socket exists.
 */
import { watch } from "node:fs";
import { connect } from "node:net";
import { basename, dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { tryOr } from "../../host/lib/try-or.ts";

/**
 * Between two questions while the socket's directory reports nothing, as it does not exist or the socket was there
 * before: milliseconds.
 */
const PAUSE_MS = 50;

/** An agent that has the question and says nothing for so long is asked again: milliseconds. */
const PATIENCE_MS = 10_000;

export interface FirstAnswer {
  /**
   * Resolves at the first byte of an answer. `requireRunning` throws when there will be none; it is called before
   * each question.
   */
  wait(requireRunning: () => void): Promise<void>;
  [Symbol.dispose](): void;
}

/** To be called before the agent is started. */
export function expectAnswer(socketPath: string): FirstAnswer {
  let isThere = Promise.withResolvers<void>();
  const watcher = watchOrNot(dirname(socketPath), (name) => {
    if (name === basename(socketPath)) isThere.resolve();
  });
  return {
    wait: async (requireRunning) => {
      for (;;) {
        await Promise.race([isThere.promise, sleep(PAUSE_MS)]);
        isThere = Promise.withResolvers();
        requireRunning();
        if (await isAnswering(socketPath)) return;
      }
    },
    [Symbol.dispose]: () => watcher?.close(),
  };
}

function watchOrNot(directory: string, onEntry: (name: string | null) => void): { close(): void } | undefined {
  return tryOr(() => watch(directory, (_event, name) => onEntry(name)), undefined);
}

function isAnswering(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(socketPath, () => socket.write("GET /v1/health HTTP/1.1\r\nHost: agent\r\n\r\n"));
    socket.setTimeout(PATIENCE_MS, () => socket.destroy());
    socket.once("data", () => {
      resolve(true);
      socket.destroy();
    });
    socket.once("error", () => resolve(false));
    socket.once("close", () => resolve(false));
  });
}
