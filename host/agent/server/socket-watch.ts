/**
 * Looks whether the socket's path still leads to this agent, and brings the socket back when it does not: /run was cleaned, or something
 * was mounted over it. An agent that others cannot reach would hold its state and serve no pod.
 * Effects: a timer with two stats; those of the lock and the server.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { messageOf } from "../../lib/describe.ts";
import type { Log } from "../../lib/log.ts";
import type { SocketLock } from "./socket-lock.ts";
import type { SocketServer } from "./socket-server.ts";

/** How often the agent looks whether its socket and its lock are still under their names: milliseconds. @limit */
export const SOCKET_RECHECK_MS = 1_000;

export interface SocketWatchOptions {
  readonly path: string;
  readonly lock: Pick<SocketLock, "ensure">;
  readonly server: Pick<SocketServer, "findLoss" | "restore">;
  readonly log: Log;
  /** Another agent serves the socket: this one has to end. */
  readonly onDeath: (error: Error) => void;
}

export interface SocketWatch {
  /** How often the socket was brought back. */
  readonly restored: number;
  close(): Promise<void>;
}

export function watchSocket(options: SocketWatchOptions): SocketWatch {
  const { path, lock, server, log } = options;
  const stopping = new AbortController();
  let [restored, told] = [0, ""];
  const look = async (): Promise<void> => {
    const holder = lock.ensure();
    if (holder !== undefined) {
      stopping.abort();
      options.onDeath(new Error(`Socket ${path} was taken by another agent (${holder}): this one ends`));
      return;
    }
    const loss = server.findLoss();
    if (loss === undefined) return;
    await server.restore();
    restored += 1;
    log.warn({ socket: path, restored }, `Socket ${path} was ${loss}: it is restored; calls in between did not arrive`);
  };
  const tryLook = async (): Promise<void> => {
    try {
      await look();
      told = "";
    } catch (error) {
      // Trouble lasts: it is told once, not every second.
      const text = messageOf(error);
      if (text !== told) log.error({ err: error }, `Socket ${path} cannot be restored; it is tried again`);
      told = text;
    }
  };
  const looking = (async () => {
    const pause = { signal: stopping.signal, ref: false };
    while (!stopping.signal.aborted) {
      await sleep(SOCKET_RECHECK_MS, undefined, pause).then(tryLook, () => {});
    }
  })();
  return {
    get restored() {
      return restored;
    },
    close: () => {
      stopping.abort();
      return looking;
    },
  };
}
