/**
 * The only file that touches a netlink socket; the rest of the folder converts between bytes and values. The namespace is chosen
 * when the socket is opened; afterwards the socket is used from outside.
 * Effects: a socket; the calling thread is in the namespace while it is opened.
 */
import { EINTR, EMSGSIZE } from "../errno.ts";
import { loadNative, type Native } from "../native.ts";
import { withNetns } from "../netns.ts";
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

/** Longest datagram that is received from the kernel: bytes. Its dumps come in pieces of at most this. @limit */
export const MAX_DATAGRAM_BYTES = 32_768;

/** What a conversation needs of a socket. Tests replace it by a script. */
export interface Datagrams extends Disposable {
  send(datagram: Uint8Array): void;
  /** Returns the next datagram, which is not overwritten later. Never waits: rtnetlink has answered when `send` returns. */
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
 * Sets the options and connects the socket to the kernel, which then drops datagrams of other processes; a privileged pod could
 * send them.
 */
function configure(native: Native, fd: number): void {
  for (const option of [NETLINK_EXT_ACK, NETLINK_CAP_ACK, NETLINK_GET_STRICT_CHK]) {
    requireResult(native.setsockopt(fd, SOL_NETLINK, option, 1), "configure a netlink socket");
  }
  requireResult(native.connect(fd, kernelAddress()), "connect a netlink socket");
}

/**
 * Receives one datagram into `buffer` and returns its length. Retries after EINTR. MSG_TRUNC makes the kernel return the true
 * length.
 */
function receiveInto(native: Native, fd: number, buffer: Uint8Array): number {
  let length: number;
  do length = native.recv(fd, buffer, MSG_DONTWAIT | MSG_TRUNC);
  while (length === -EINTR);
  requireResult(length, "receive from the kernel");
  if (length > buffer.length) {
    const message = `datagram of ${length} bytes, room for ${buffer.length}`;
    throw new NetlinkError({ operation: "receive from the kernel", errno: EMSGSIZE, message });
  }
  return length;
}

/** Receives one datagram and returns a copy of it. */
export function receiveCopy(native: Native, fd: number, buffer: Uint8Array): Uint8Array {
  return buffer.slice(0, receiveInto(native, fd, buffer));
}

/** Memory for several answers: allocating and freeing an array for each costs as much as receiving it. */
const ROOM_BYTES = 4 * MAX_DATAGRAM_BYTES;

/** The next answer of any socket is written here. Earlier answers are not overwritten. */
let room = new Uint8Array(0);
let usedBytes = 0;

function receive(native: Native, fd: number): Uint8Array {
  if (room.length - usedBytes < MAX_DATAGRAM_BYTES) {
    room = new Uint8Array(ROOM_BYTES);
    usedBytes = 0;
  }
  const start = usedBytes;
  usedBytes += receiveInto(native, fd, room.subarray(start, start + MAX_DATAGRAM_BYTES));
  return room.subarray(start, usedBytes);
}

/**
 * Buffer for requests: V8 would move a short array out of its heap before passing it to the addon, which costs more than a copy.
 */
const outgoing = new Uint8Array(MAX_DATAGRAM_BYTES);

function send(native: Native, fd: number, datagram: Uint8Array): void {
  const fits = datagram.length <= outgoing.length;
  if (fits) outgoing.set(datagram);
  const bytes = fits ? outgoing.subarray(0, datagram.length) : datagram;
  requireResult(native.send(fd, bytes, 0), "send to the kernel");
}

/** Opens an rtnetlink socket in the namespace at `netnsPath`. Throws {@link NetlinkError}, or NetnsError. */
export function openRouteSocket(netnsPath: string, native: Native = loadNative()): Datagrams {
  return openSocket(netnsPath, NETLINK_ROUTE, native);
}

/** Opens an nfnetlink socket in the namespace at `netnsPath`. Throws {@link NetlinkError}, or NetnsError. */
export function openNetfilterSocket(netnsPath: string, native: Native = loadNative()): Datagrams {
  return openSocket(netnsPath, NETLINK_NETFILTER, native);
}

function openSocket(netnsPath: string, protocol: number, native: Native): Datagrams {
  const open = () => native.socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
  const fd = requireResult(withNetns(netnsPath, open, native), "open a netlink socket");
  try {
    configure(native, fd);
  } catch (error) {
    native.close(fd);
    throw error;
  }
  return {
    send: (datagram) => send(native, fd, datagram),
    receive: () => receive(native, fd),
    [Symbol.dispose]: () => void native.close(fd),
  };
}
