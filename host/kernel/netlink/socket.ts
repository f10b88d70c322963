/**
 * The one file that touches a netlink socket; everything else in this folder is bytes and values.
 * The namespace is chosen when the socket is opened; afterwards it is used from outside.
 * Called by whoever observes or changes a namespace; the protocol on it is in conversation.ts.
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

/** Longest answer to a netlink question that is read: bytes. The kernel's dumps come in pieces of at most this. @limit */
export const MAX_DATAGRAM_BYTES = 32_768;

/** What a conversation needs of a socket; tests script it. */
export interface Datagrams extends Disposable {
  send(datagram: Uint8Array): void;
  /** The next datagram, in memory of its own. Never waits: rtnetlink has answered when `send` returns. */
  receive(): Uint8Array;
}

/** struct sockaddr_nl of the kernel: family, padding, port 0, no groups. */
export function kernelAddress(): Uint8Array {
  const address = new Uint8Array(12);
  address[0] = AF_NETLINK;
  return address;
}

export function requireResult(result: number, operation: string): number {
  if (result < 0) throw new NetlinkError({ operation, errno: -result });
  return result;
}

/** Connected to the kernel: datagrams of others, which a privileged pod could send, are refused by the kernel. */
function configure(native: Native, fd: number): void {
  for (const option of [NETLINK_EXT_ACK, NETLINK_CAP_ACK, NETLINK_GET_STRICT_CHK]) {
    requireResult(native.setsockopt(fd, SOL_NETLINK, option, 1), "configure a netlink socket");
  }
  requireResult(native.connect(fd, kernelAddress()), "connect a netlink socket");
}

/** Receives one datagram into `buffer`, over interruptions, and tells its length. MSG_TRUNC makes the kernel tell the true one. */
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

/** As {@link receiveInto}, in memory of its own. */
export function receiveCopy(native: Native, fd: number, buffer: Uint8Array): Uint8Array {
  return buffer.slice(0, receiveInto(native, fd, buffer));
}

/** One piece of memory for some dozens of answers: a piece for each, which V8 has to free, would cost as much as receiving it. */
const ROOM_BYTES = 4 * MAX_DATAGRAM_BYTES;

/** Where the next answer goes, on whatever socket; what was received before stays as it is. */
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

/** Requests go through here: V8 would move a short array out of its own heap for the addon, which costs more than a copy. */
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
