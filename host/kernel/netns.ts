/**
 * Network namespaces: their identity, and working inside one.
 *
 * A namespace is a property of a thread, so only synchronous code runs inside: a Promise or a callback continues
 * outside, and work of the thread pool never runs inside.
 * Effects: moves the calling thread to another namespace and back; importing this file starts the threads of libuv's
 * pool.
 */
import { access, constants, writeSync } from "node:fs";
import { invariant } from "../lib/invariant.ts";
import { ENOENT, ENOTTY, formatErrno } from "./errno.ts";
import { loadNative, type Native } from "./native.ts";
import { AF_UNIX, SOCK_CLOEXEC, SOCK_DGRAM } from "./netlink/constants.ts";

const { O_RDONLY, O_NONBLOCK } = constants;
/** fcntl.h; Node.js does not name it. */
const O_CLOEXEC = 0o2000000;
/** linux/sched.h */
const CLONE_NEWNET = 0x40000000;
const SOL_SOCKET = 1;
/** asm-generic/socket.h, since Linux 5.14 */
const SO_NETNS_COOKIE = 71;

/** The calling thread's namespace, the node's unless it has entered another; /proc/self is the main thread's. */
export const OWN_NETNS = "/proc/thread-self/ns/net";

/** libuv starts its pool with the first task. A thread started while inside a namespace would stay there for ever. */
access("/", () => {});

/** The identity of a namespace: paths and inode numbers are reused at once, a cookie never while the kernel runs. */
export interface NetnsIdentity {
  readonly device: bigint;
  readonly inode: bigint;
  /** SO_NETNS_COOKIE; undefined where the kernel is older than 5.14. */
  readonly cookie: bigint | undefined;
}

/** Without cookies, equal numbers prove something only while one of the two namespaces is held open. */
export function isSameNetns(one: NetnsIdentity, other: NetnsIdentity): boolean {
  if (one.cookie !== undefined && other.cookie !== undefined) return one.cookie === other.cookie;
  return one.device === other.device && one.inode === other.inode;
}

type NetnsOperation = "open" | "enter";

/** A path that is not a network namespace, or cannot be entered. `errno` is the kernel's. */
export class NetnsError extends Error {
  override readonly name = "NetnsError";
  readonly operation: NetnsOperation;
  readonly path: string;
  readonly errno: number;

  constructor(operation: NetnsOperation, path: string, errno: number) {
    const reason = errno === ENOTTY ? "it is not a network namespace, or no longer one" : formatErrno(errno);
    super(`Cannot ${operation} network namespace "${path}": ${reason}`);
    this.operation = operation;
    this.path = path;
    this.errno = errno;
  }
}

export const isNetnsError = (error: unknown): error is NetnsError => error instanceof NetnsError;

/** A namespace that is open: `path` is for errors. */
export interface NetnsHandle {
  /** The value for IFLA_NET_NS_FD. */
  readonly fd: number;
  readonly path: string;
}

export interface OpenNetns extends NetnsHandle, Pick<NetnsIdentity, "device" | "inode">, Disposable {}

/** Throws {@link NetnsError} when `path` is no network namespace. */
export function openNetns(path: string, native: Native = loadNative()): OpenNetns {
  // O_NONBLOCK: opening a FIFO must not block
  const fd = native.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
  if (fd < 0) throw new NetnsError("open", path, -fd);
  const words = new BigUint64Array(2);
  const kind = native.identify(fd, words);
  if (kind !== CLONE_NEWNET) {
    native.close(fd);
    throw new NetnsError("open", path, kind < 0 ? -kind : ENOTTY);
  }
  const [device = 0n, inode = 0n] = words;
  return { fd, path, device, inode, [Symbol.dispose]: () => void native.close(fd) };
}

/** Returns the namespace's cookie, which a short visit reads; undefined where the kernel knows none. */
export function cookieOf(netns: NetnsHandle): bigint | undefined {
  const native = loadNative();
  const fd = withNetns(netns, () => native.socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (fd < 0) return undefined;
  const cookie = new BigUint64Array(1);
  const length = native.getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, new Uint8Array(cookie.buffer));
  native.close(fd);
  return length === cookie.byteLength ? cookie[0] : undefined;
}

/** Returns the numbers and the cookie of an open namespace. */
export function identityOf(netns: OpenNetns): NetnsIdentity {
  return { device: netns.device, inode: netns.inode, cookie: cookieOf(netns) };
}

/** Throws {@link NetnsError} when `path` is no network namespace. */
export function readNetnsIdentity(path: string): NetnsIdentity {
  using netns = openNetns(path);
  return identityOf(netns);
}

/**
 * Returns whether there is no network namespace at `path` any more. One that cannot be opened for another reason, such
 * as too many open files, still exists.
 */
export function isNetnsGone(path: string): boolean {
  try {
    readNetnsIdentity(path);
    return false;
  } catch (error) {
    if (error instanceof NetnsError) return error.errno === ENOENT || error.errno === ENOTTY;
    throw error;
  }
}

/**
 * Descriptor of the namespace that the thread is in: that of the visit under way, else its own, opened at the first
 * use.
 */
let here: number | undefined;

/** Returns whether an open namespace is that of the calling thread, which CNI_NETNS must not be. */
export function isOwnNetns({ device, inode }: Pick<NetnsIdentity, "device" | "inode">): boolean {
  here ??= openNetns(OWN_NETNS).fd;
  const own = new BigUint64Array(2);
  loadNative().identify(here, own);
  // Both are there, so that the numbers of two namespaces differ.
  return own[0] === device && own[1] === inode;
}

/** A thread that stayed in a pod's namespace would serve all other pods there. */
function abortInside(path: string, errno: number): never {
  writeSync(2, `Cannot leave network namespace "${path}": ${formatErrno(errno)}; aborting\n`);
  process.abort();
}

/**
 * Calls `work` with the calling thread inside the namespace, which is open or is opened by its path, and returns its
 * result. Calls may be nested. Throws {@link NetnsError} if the namespace cannot be entered, and whatever `work`
 * throws. Aborts the process if it cannot be left.
 */
export function withNetns<T>(place: string | NetnsHandle, work: () => T, native: Native = loadNative()): T {
  if (typeof place === "string") {
    using target = openNetns(place, native);
    return withNetns(target, work, native);
  }
  const { fd, path } = place;
  if (fd === here) return work();
  here ??= openNetns(OWN_NETNS, native).fd;
  const home = here;
  const entered = native.setns(fd, CLONE_NEWNET);
  if (entered < 0) throw new NetnsError("enter", path, -entered);
  here = fd;
  let result: T;
  try {
    result = work();
  } finally {
    const left = native.setns(home, CLONE_NEWNET);
    if (left !== 0) abortInside(path, -left);
    here = home;
  }
  if (result instanceof Object && "then" in result) refusePromise(result);
  return result;
}

/** Its work would continue outside the namespace. A rejection of it is ignored. */
function refusePromise(result: object): void {
  if (result instanceof Promise) result.catch(() => {});
  invariant(false, "Work in a network namespace returned a Promise; it must be synchronous");
}
