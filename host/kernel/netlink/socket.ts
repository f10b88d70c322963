/**
 * The only file that touches a netlink socket; the rest of the folder converts between bytes and values. The namespace
 * is chosen when the socket is opened; afterwards the socket is used from outside.
 * Effects: a socket; the calling thread is in the namespace while it is opened.
 */
import { write } from "node:fs";
import { closeAside } from "../close-aside.ts";
import { EAGAIN, EINTR, EMSGSIZE } from "../errno.ts";
import { loadNative, type Native } from "../native.ts";
import { type NetnsHandle, withNetns } from "../netns.ts";
import { align } from "./attribute.ts";
import {
  AF_NETLINK,
  MSG_DONTWAIT,
  MSG_TRUNC,
  NETLINK_CAP_ACK,
  NETLINK_EXT_ACK,
  NETLINK_GET_STRICT_CHK,
  NETLINK_NETFILTER,
  NETLINK_ROUTE,
  SOCK_CLOEXEC,
  SOCK_RAW,
  SOL_NETLINK,
} from "./constants.ts";
import { NetlinkError } from "./error.ts";

/** Longest datagram, and piece of a dump, from the kernel: bytes. */
export const MAX_DATAGRAM_BYTES = 32_768;

/** The part of a socket that a conversation needs. Tests replace it by a script. */
export interface Datagrams extends Disposable {
  send(datagram: Uint8Array): void;
  /** As `send`, but a thread of the pool waits until the kernel has executed the request. */
  sendAside(datagram: Uint8Array): Promise<void>;
  /**
   * Returns the next datagrams, one behind the other, which are not overwritten later. Never waits: rtnetlink has
   * answered when `send` returns.
   */
  receive(): Uint8Array;
}

/** Returns the kernel's struct sockaddr_nl: family, padding, port 0, no groups. */
export function kernelAddress(): Uint8Array {
  const address = new Uint8Array(12);
  address[0] = AF_NETLINK;
  return address;
}

export function requireResult(result: number, operation: string): number {
  if (result < 0) throw new NetlinkError({ operation, errno: -result });
  return result;
}

/**
 * Sets the options and connects the socket to the kernel, which then drops datagrams of other processes; a privileged
 * pod could send them.
 */
function configure(native: Native, fd: number): void {
  for (const option of [NETLINK_EXT_ACK, NETLINK_CAP_ACK, NETLINK_GET_STRICT_CHK]) {
    requireResult(native.setsockopt(fd, SOL_NETLINK, option, 1), "configure a netlink socket");
  }
  requireResult(native.connect(fd, kernelAddress()), "connect a netlink socket");
}

function receivingError(errno: number): NetlinkError {
  return new NetlinkError({ operation: "receive from the kernel", errno });
}

/**
 * Receives one datagram into `buffer`. Returns its length; undefined if none has come. Retries after EINTR. MSG_TRUNC
 * makes the kernel return the true length.
 */
function receiveInto(native: Native, fd: number, buffer: Uint8Array): number | undefined {
  let length: number;
  do length = native.recv(fd, buffer, MSG_DONTWAIT | MSG_TRUNC);
  while (length === -EINTR);
  if (length === -EAGAIN) return undefined;
  if (length < 0) throw receivingError(-length);
  if (length > buffer.length) {
    const message = `datagram of ${length} bytes, room for ${buffer.length}`;
    throw new NetlinkError({ operation: "receive from the kernel", errno: EMSGSIZE, message });
  }
  return length;
}

/** Receives one datagram into `buffer` and returns that part of it; undefined if none has come. */
export function receiveView(native: Native, fd: number, buffer: Uint8Array): Uint8Array | undefined {
  const length = receiveInto(native, fd, buffer);
  return length === undefined ? undefined : buffer.subarray(0, length);
}

/** Memory for several answers: allocating and freeing an array for each costs as much as receiving it. */
const ROOM_BYTES = 4 * MAX_DATAGRAM_BYTES;

/** The buffer for the next answer of any socket. Earlier answers are not overwritten. */
let room = new Uint8Array(0);
let usedBytes = 0;

function freeRoom(): Uint8Array {
  if (room.length - usedBytes < MAX_DATAGRAM_BYTES) {
    room = new Uint8Array(ROOM_BYTES);
    usedBytes = 0;
  }
  return room.subarray(usedBytes);
}

/** Returns the first `length` bytes of the free room, which are now taken. */
function takeRoom(length: number): Uint8Array {
  const start = usedBytes;
  usedBytes = align(start + length);
  return room.subarray(start, start + length);
}

/** Buffer for requests: V8 would move a short array out of its heap for the addon, which costs more than a copy. */
const outgoing = new Uint8Array(MAX_DATAGRAM_BYTES);

function outgoingBytes(datagram: Uint8Array): Uint8Array {
  if (datagram.length > outgoing.length) return datagram;
  outgoing.set(datagram);
  return outgoing.subarray(0, datagram.length);
}

/** `exchange` of the addon subtracts it if receiving failed: more than any error number of the kernel. */
const RECEIVING = 4_096;

class Socket implements Datagrams {
  readonly #native: Native;
  readonly #fd: number;
  readonly #close: (fd: number) => void;
  /** The answer received with the last request, or the error of receiving it. */
  #answer: Uint8Array | NetlinkError | undefined;

  constructor(native: Native, fd: number, close: (fd: number) => void) {
    this.#native = native;
    this.#fd = fd;
    this.#close = close;
  }

  /** Sends the request and receives as much of the answer as there is room for. */
  send(datagram: Uint8Array): void {
    const result = this.#native.exchange(this.#fd, outgoingBytes(datagram), freeRoom());
    if (result < -RECEIVING) this.#answer = receivingError(-result - RECEIVING);
    else this.#answer = takeRoom(requireResult(result, "send to the kernel"));
  }

  sendAside(datagram: Uint8Array): Promise<void> {
    this.#answer = undefined;
    return new Promise((resolve, reject) => {
      write(this.#fd, datagram, (error) => {
        if (error === null) resolve();
        else reject(new NetlinkError({ operation: "send to the kernel", errno: -(error.errno ?? 0) }));
      });
    });
  }

  receive(): Uint8Array {
    const answer = this.#answer;
    this.#answer = undefined;
    if (answer instanceof NetlinkError) throw answer;
    if (answer !== undefined && answer.length > 0) return answer;
    const length = receiveInto(this.#native, this.#fd, freeRoom().subarray(0, MAX_DATAGRAM_BYTES));
    if (length === undefined) throw receivingError(EAGAIN);
    return takeRoom(length);
  }

  [Symbol.dispose](): void {
    this.#close(this.#fd);
  }
}

/** Opens an rtnetlink socket in the namespace, by path or handle. Throws {@link NetlinkError}, or NetnsError. */
export function openRouteSocket(netns: string | NetnsHandle, native: Native = loadNative()): Datagrams {
  return openSocket(netns, NETLINK_ROUTE, native);
}

/**
 * Opens an nfnetlink socket in the namespace, by path or handle. With `closesAside` the thread pool closes it: after
 * the deletion of a table, closing waits a dozen milliseconds until the kernel has freed the table. Throws
 * {@link NetlinkError}, or NetnsError.
 */
export function openNetfilterSocket(
  netns: string | NetnsHandle,
  native: Native = loadNative(),
  closesAside = false,
): Datagrams {
  return openSocket(netns, NETLINK_NETFILTER, native, closesAside ? closeAside : undefined);
}

function openSocket(
  netns: string | NetnsHandle,
  protocol: number,
  native: Native,
  close: (fd: number) => void = native.close,
): Datagrams {
  const open = () => native.socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
  const fd = requireResult(withNetns(netns, open, native), "open a netlink socket");
  try {
    configure(native, fd);
  } catch (error) {
    native.close(fd);
    throw error;
  }
  return new Socket(native, fd, close);
}
