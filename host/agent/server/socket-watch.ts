/**
 * Checks whether the socket's path still leads to this agent, and restores the socket if it does not: /run was
 * cleaned, or something was mounted over it. An agent that runtimes cannot reach would hold its state and serve no
 * pod.
 */
import type { Log } from "../../lib/log.ts";
import { PeriodicWorker } from "../../lib/periodic.ts";
import { SOCKET_ANSWER_MS, SOCKET_RETRY_MS, type SocketLock } from "./socket-lock.ts";
import type { SocketServer } from "./socket-server.ts";

/** Interval at which the agent checks whether its socket and its lock are still in place: milliseconds. */
export const SOCKET_RECHECK_MS = 1_000;

interface SocketWatchOptions {
  readonly path: string;
  readonly lock: Pick<SocketLock, "ensure">;
  readonly server: Pick<SocketServer, "findLoss" | "restore">;
  readonly log: Log;
  /** Called when another agent has had the lock for {@link SOCKET_ANSWER_MS}; this one has to exit. */
  readonly onDeath: (error: Error) => void;
}

export interface SocketWatch {
  /** Number of times that the socket was restored. */
  readonly restored: number;
  close(): Promise<void>;
}

export function watchSocket({ path, lock, server, log, onDeath }: SocketWatchOptions): SocketWatch {
  let restored = 0;
  let takenAtMs: number | undefined;
  const check = async (): Promise<number | undefined> => {
    const holder = lock.ensure();
    if (holder !== undefined) {
      // A starting agent has the lock for as long as it asks whether this one answers.
      takenAtMs ??= performance.now();
      if (performance.now() - takenAtMs < SOCKET_ANSWER_MS) return SOCKET_RETRY_MS / 2;
      onDeath(new Error(`Socket ${path} was taken by another agent (${holder}); this agent exits`));
      return undefined;
    }
    takenAtMs = undefined;
    const loss = server.findLoss();
    if (loss !== undefined) {
      await server.restore();
      restored += 1;
      log.warn({ socket: path, restored }, `Socket ${path} was ${loss}; restored it, calls in between were lost`);
    }
    return SOCKET_RECHECK_MS;
  };
  const worker = new PeriodicWorker({
    failure: `Restoring socket ${path} failed`,
    level: "error",
    work: check,
    firstMs: SOCKET_RECHECK_MS,
    retryMs: () => SOCKET_RECHECK_MS,
    log,
  });
  return {
    get restored() {
      return restored;
    },
    close: () => worker.close(),
  };
}
