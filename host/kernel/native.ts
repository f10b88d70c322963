/**
 * The system calls that Node.js lacks, from the addon (native/addon), which only this file imports.
 * Effects: loads a shared object; the functions are system calls of the calling thread.
 */
import { createRequire } from "node:module";
import { join } from "node:path";

declare const watchBrand: unique symbol;

/** The handle that watch returns. */
export interface Watch {
  readonly [watchBrand]: true;
}

/** Each function returns a number ≥ 0, or -errno. It throws a TypeError for arguments of a wrong type or number. */
export interface Native {
  socket(domain: number, type: number, protocol: number): number;
  bind(fd: number, address: Uint8Array): number;
  connect(fd: number, address: Uint8Array): number;
  /** Returns the number of bytes sent. */
  send(fd: number, bytes: Uint8Array, flags: number): number;
  /** Returns the number of bytes received. Blocks the thread unless `flags` or the socket say otherwise. */
  recv(fd: number, into: Uint8Array, flags: number): number;
  /**
   * Sends the request to the kernel over a netlink socket and receives, without waiting, all queued datagrams: one
   * behind the other into `into`, each from a multiple of 4, as long as there is room for one of 32,768 bytes. Returns
   * the number of bytes received; -errno if sending failed, -4096 - errno if receiving did.
   */
  exchange(fd: number, request: Uint8Array, into: Uint8Array): number;
  /** Sends to an address (struct sockaddr_*). */
  sendto(fd: number, bytes: Uint8Array, flags: number, to: Uint8Array): number;
  /** Like recv; also writes as much of the sender's address as fits into `from`. */
  recvfrom(fd: number, into: Uint8Array, flags: number, from: Uint8Array): number;
  setsockopt(fd: number, level: number, name: number, value: number | Uint8Array): number;
  /** Returns the number of bytes written; at most as many as `into` holds. */
  getsockopt(fd: number, level: number, name: number, into: Uint8Array): number;
  /** Attaches a classic BPF program: struct sock_filter, eight bytes each. */
  attachFilter(fd: number, program: Uint8Array): number;
  /**
   * Calls `ready` with 0 each time the event loop finds `fd` readable, or with -errno if an error is pending, which
   * must be read then, or `ready` is called again at once. Makes `fd` non-blocking and keeps the loop alive. An
   * exception of `ready` is uncaught. Ends with unwatch, which must come before close.
   */
  watch(fd: number, ready: (result: number) => void): Watch | number;
  /** Returns -EINVAL for a watch that has ended. */
  unwatch(watch: Watch): number;
  close(fd: number): number;
  open(path: string, flags: number, mode: number): number;
  /** Returns the number of bytes read. */
  read(fd: number, into: Uint8Array): number;
  /** Returns the descriptor of a new inotify instance (IN_NONBLOCK, IN_CLOEXEC). */
  inotifyInit(flags: number): number;
  /** Returns the number of the watch, the same as before if the instance already watches the path. */
  inotifyAddWatch(fd: number, path: string, mask: number): number;
  /** Locks the open file (LOCK_*). Blocks the thread unless LOCK_NB is in `operation`. */
  flock(fd: number, operation: number): number;
  /** Moves the calling thread into the namespace, which must be of `kind` (CLONE_NEW*, 0 for any). */
  setns(fd: number, kind: number): number;
  /** Returns the namespace's kind (CLONE_NEW*) with `into` = [device, inode]; -ENOTTY when `fd` is no namespace. */
  identify(fd: number, into: BigUint64Array): number;
}

/** Returns the path of the addon: `native/berth.node` beside a bundle in `dist`, or in `dist` for a source file. */
function addonPath(): string {
  const own = import.meta.dirname;
  const dist = own.endsWith(join("host", "kernel")) ? join(own, "..", "..", "dist") : own;
  return join(dist, "native", "berth.node");
}

let loadedAddon: Native | undefined;

/** Returns the addon, which is loaded once. Throws if it is missing. */
export function loadNative(): Native {
  loadedAddon ??= createRequire(import.meta.url)(addonPath()) as Native;
  return loadedAddon;
}
