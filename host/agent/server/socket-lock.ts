/** One agent per socket (single-agent): a lock beside it, from before its binding until everything is closed. */
import { mkdirSync } from "node:fs";
import { connect } from "node:net";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type FileLock, tryLock } from "../../kernel/file-lock.ts";
import type { Log } from "../../lib/log.ts";

/** Interval at which a starting agent checks whether another one still serves its socket: milliseconds. */
export const SOCKET_RETRY_MS = 100;

/** Longest time that connecting to a socket may take before its process counts as one that serves: milliseconds. */
export const SOCKET_ANSWER_MS = 1_000;

interface SocketLockOptions {
  readonly path: string;
  /** Time to wait for another agent that serves the socket. */
  readonly lockWaitMs: number;
  readonly log: Log;
}

export interface SocketLock {
  /** Takes the lock again when its file was removed. Returns the holder when that is another agent now. */
  ensure(): string | undefined;
  release(): void;
}

/** Resolves with this process's lock and a silent socket. Rejects, naming the holder, after `lockWaitMs`. */
export async function lockSocket({ path, lockWaitMs, log }: SocketLockOptions): Promise<SocketLock> {
  mkdirSync(dirname(path), { recursive: true, mode: 0o755 });
  const startMs = performance.now();
  for (let isLogged = false; ; await sleep(SOCKET_RETRY_MS)) {
    const tried = tryLock(lockPathOf(path), ownText());
    if ("lock" in tried && !(await answers(path))) return heldLock(path, tried.lock);
    if ("lock" in tried) tried.lock.release();
    const holder = nameOf("lock" in tried ? "" : tried.holder);
    if (performance.now() - startMs >= lockWaitMs) {
      throw new Error(
        `Socket ${path} is served by another agent (${holder}), waited ${lockWaitMs} ms; stop that agent, or start this one with another --socket and --state`,
      );
    }
    if (!isLogged) log.warn({ socket: path, holder, waitMs: lockWaitMs }, "Waiting for the other agent to end");
    isLogged = true;
  }
}

function heldLock(path: string, first: FileLock): SocketLock {
  let lock = first;
  return {
    ensure: () => {
      if (lock.isInPlace()) return undefined;
      mkdirSync(dirname(path), { recursive: true, mode: 0o755 });
      const tried = tryLock(lockPathOf(path), ownText());
      if (!("lock" in tried)) return nameOf(tried.holder);
      lock.release();
      lock = tried.lock;
      return undefined;
    },
    release: () => lock.release(),
  };
}

function lockPathOf(path: string): string {
  return `${path}.lock`;
}

function ownText(): string {
  return `process ${process.pid}`;
}

function nameOf(holder: string): string {
  return holder === "" ? "process unknown" : holder;
}

/**
 * Returns whether a process accepts connections there: an agent that holds no lock, for its file was removed or it is
 * of an older version.
 */
function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    const end = (answered: boolean): void => {
      socket.destroy();
      resolve(answered);
    };
    socket.setTimeout(SOCKET_ANSWER_MS, () => end(true));
    socket.once("connect", () => end(true));
    socket.once("error", () => end(false));
  });
}
