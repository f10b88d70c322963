/**
 * Writes to an inherited descriptor, such as stderr, without ever blocking on its reader. O_NONBLOCK belongs to the
 * open file, which other processes may share (a shell, a sidecar, systemd), so it is neither relied on nor set here: a
 * pipe or a terminal is opened a second time with it, a socket has it per call, and a file needs none.
 * Effects: a descriptor of its own; writes.
 */
import { constants, fstatSync, openSync, writeSync } from "node:fs";
import { constants as os } from "node:os";
import { errnoOf } from "../lib/describe.ts";
import { insteadOf } from "../lib/try-or.ts";
import { loadNative, type Native } from "./native.ts";
import { MSG_DONTWAIT } from "./netlink/constants.ts";

/** linux/socket.h */
const MSG_NOSIGNAL = 0x4000;

/** Writes as much as fits and returns the number of bytes. Throws for a pipe without a reader and the like. */
type Send = (bytes: Uint8Array) => number;

export function openSend(fd: number): Send {
  const status = fstatSync(fd);
  if (status.isSocket()) return sendTo(fd, loadNative());
  if (status.isFIFO() || status.isCharacterDevice()) return writeTo(reopen(fd) ?? fd);
  return writeTo(fd);
}

/** Opens the same pipe or terminal with flags of its own. Returns undefined if not permitted; then writes block. */
function reopen(fd: number): number | undefined {
  try {
    return openSync(`/proc/self/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  } catch {
    return undefined;
  }
}

function writeTo(fd: number): Send {
  const isFull = (error: unknown): boolean => errnoOf(error) === "EAGAIN";
  return (bytes) => insteadOf(isFull, 0, () => writeSync(fd, bytes));
}

function sendTo(fd: number, native: Native): Send {
  return (bytes) => {
    const result = native.send(fd, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (result === -os.errno.EAGAIN) return 0;
    if (result < 0) throw new Error(`send on descriptor ${fd} failed with ${result}`);
    return result;
  };
}
