/**
 * Packet sockets: frames of one type in and out of one link of a namespace, opened inside and used from outside.
 *
 * Detection opens a socket before it sends anything: one opened later would miss a fast answer. Closing a packet socket
 * blocks its caller in the kernel for 10 to 20 ms, until no CPU uses the socket any more, so a thread of libuv's pool
 * closes it some time after it was disposed of, and after its last frame.
 * Effects: a socket; the calling thread is in the namespace while it is opened; a watch on the event loop while it
 * listens.
 */

import { write } from "node:fs";
import type { Mac } from "../../net/mac.ts";
import { closeAside } from "../close-aside.ts";
import { EAGAIN, EINTR, formatErrno } from "../errno.ts";
import { encodeMac } from "../mac-bytes.ts";
import { loadNative, type Native, type Watch } from "../native.ts";
import { viewOf } from "../netlink/attribute.ts";
import { MSG_DONTWAIT, SOCK_CLOEXEC, SOCK_RAW } from "../netlink/constants.ts";
import { withNetns } from "../netns.ts";

export class PacketError extends Error {
  override readonly name = "PacketError";
  readonly operation: string;
  readonly link: number;
  readonly errno: number;

  constructor(operation: string, link: number, errno: number) {
    super(`Cannot ${operation} on link ${link}: ${formatErrno(errno)}`);
    this.operation = operation;
    this.link = link;
    this.errno = errno;
  }
}

/** Most frames or messages that one socket passes to its listener per turn of the event loop. */
export const MAX_FRAMES_PER_TURN = 64;

/** EBADF of every architecture. */
const EBADF = 9;
const EIO = 5;
const AF_PACKET = 17;
const SOL_PACKET = 263;
const PACKET_ADD_MEMBERSHIP = 1;
const PACKET_IGNORE_OUTGOING = 23;
const PACKET_MR_MULTICAST = 0;
/** ARP and NDP frames are far shorter; longer frames are truncated and then invalid. */
const RECEIVE_BYTES = 2_048;

export interface PacketOptions {
  readonly netnsPath: string;
  readonly link: number;
  /** ETH_P_* */
  readonly etherType: number;
  /** A classic BPF program of bpf.ts. */
  readonly filter: Uint8Array;
  /** Multicast groups that the link must receive: those of solicited nodes. */
  readonly groups?: readonly Mac[] | undefined;
}

interface FrameListener {
  /** Receives a frame, which is not overwritten later. */
  frame(frame: Uint8Array): void;
  /** The link went down (ENETDOWN) or was deleted. Listening continues. */
  failure(error: PacketError): void;
}

/** A packet socket, which keeps its namespace alive. After disposal its methods throw (EBADF). */
export interface SendingSocket extends Disposable {
  /** Sends a whole frame with its header. Never waits: a full queue throws {@link PacketError}, too. */
  send(frame: Uint8Array): void;
  /**
   * As `send`, in the thread pool: rejects with {@link PacketError}. For broadcasts, which the kernel copies to each
   * NIC on the link while it sends.
   */
  sendAside(frame: Uint8Array): Promise<void>;
}

/** After disposal it receives nothing, either. */
export interface PacketSocket extends SendingSocket {
  /** Returns the next frame from outside; undefined if there is none. Throws {@link PacketError}. */
  receive(): Uint8Array | undefined;
  /** Passes every frame to the listener, from the event loop, until the socket is disposed of. Once per socket. */
  listen(listener: FrameListener): void;
}

/** struct sockaddr_ll: family, ether type in network byte order, link index (linux/if_packet.h). */
function linkAddress(link: number, etherType: number): Uint8Array {
  const address = new Uint8Array(20);
  const view = viewOf(address);
  view.setUint16(0, AF_PACKET, true);
  view.setUint16(2, etherType);
  view.setInt32(4, link, true);
  return address;
}

/** struct packet_mreq: link index, type, address length, address. */
function membership(link: number, group: Mac): Uint8Array {
  const request = new Uint8Array(16);
  const view = viewOf(request);
  view.setInt32(0, link, true);
  view.setUint16(4, PACKET_MR_MULTICAST, true);
  view.setUint16(6, 6, true);
  request.set(encodeMac(group), 8);
  return request;
}

/** Binds the socket to the link; with ether type 0 it receives nothing (net/packet/af_packet.c, packet_do_bind). */
function bind(native: Native, fd: number, link: number, etherType: number): void {
  const result = native.bind(fd, linkAddress(link, etherType));
  if (result < 0) throw new PacketError("bind a packet socket", link, -result);
}

/** Configures the socket. It gets its ether type after its filter, so that no unfiltered frame is queued. */
function configure(native: Native, fd: number, { link, etherType, filter, groups = [] }: PacketOptions): void {
  const require = (result: number, operation: string) => {
    if (result < 0) throw new PacketError(operation, link, -result);
  };
  require(native.attachFilter(fd, filter), "filter a packet socket");
  require(native.setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1), "configure a packet socket");
  for (const group of groups) {
    const request = membership(link, group);
    require(native.setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, request), `join ${group}`);
  }
  bind(native, fd, link, etherType);
}

/** Opens the socket in the namespace. Throws {@link PacketError}, or NetnsError. */
export function openPacketSocket(options: PacketOptions, native: Native = loadNative()): PacketSocket {
  return open(options, (fd) => configure(native, fd, options), native);
}

/** Opens a socket that receives nothing. Throws as {@link openPacketSocket}. */
export function openSendingSocket(options: Pick<PacketOptions, "netnsPath" | "link">): SendingSocket {
  const native = loadNative();
  return open(options, (fd) => bind(native, fd, options.link, 0), native);
}

function open(
  { netnsPath, link }: Pick<PacketOptions, "netnsPath" | "link">,
  prepare: (fd: number) => void,
  native: Native,
): PacketSocket {
  const fd = withNetns(netnsPath, () => native.socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0), native);
  if (fd < 0) throw new PacketError("open a packet socket", link, -fd);
  try {
    prepare(fd);
  } catch (error) {
    closeAside(fd);
    throw error;
  }
  return packetSocketOn(native, fd, link);
}

function packetSocketOn(native: Native, fd: number, link: number): PacketSocket {
  const buffer = new Uint8Array(RECEIVE_BYTES);
  let watch: Watch | undefined;
  let isOpen = true;
  let pending = 0;
  const close = (): void => {
    if (!isOpen && pending === 0) closeAside(fd);
  };
  // the descriptor may belong to another file by then
  const requireOpen = (operation: string): void => {
    if (!isOpen) throw new PacketError(operation, link, EBADF);
  };
  const receive = (): Uint8Array | undefined => {
    requireOpen("receive");
    let length: number;
    do length = native.recv(fd, buffer, MSG_DONTWAIT);
    while (length === -EINTR);
    if (length === -EAGAIN) return undefined;
    if (length < 0) throw new PacketError("receive", link, -length);
    return buffer.slice(0, length);
  };
  const drain = (listener: FrameListener): void => {
    // `watch` is undefined once the listener has disposed of the socket: the descriptor may be another file's by then
    for (let count = 0; count < MAX_FRAMES_PER_TURN && watch !== undefined; count++) {
      let frame: Uint8Array | undefined;
      try {
        frame = receive();
      } catch (error) {
        if (!(error instanceof PacketError)) throw error;
        listener.failure(error);
        return;
      }
      if (frame === undefined) return;
      listener.frame(frame);
    }
  };
  return {
    receive,
    send(frame) {
      requireOpen("send");
      const sent = native.send(fd, frame, MSG_DONTWAIT);
      if (sent < 0) throw new PacketError("send", link, -sent);
    },
    async sendAside(frame) {
      requireOpen("send");
      pending++;
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      write(fd, frame, (error) => {
        pending--;
        if (error === null) resolve();
        else reject(new PacketError("send", link, -(error.errno ?? -EIO)));
        close();
      });
      return promise;
    },
    listen(listener) {
      const started = native.watch(fd, () => drain(listener));
      if (typeof started === "number") throw new PacketError("listen", link, -started);
      watch = started;
    },
    [Symbol.dispose]() {
      if (watch !== undefined) native.unwatch(watch);
      watch = undefined;
      if (!isOpen) return;
      isOpen = false;
      close();
    },
  };
}
