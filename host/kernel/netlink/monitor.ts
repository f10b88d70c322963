/**
 * Notifications of the kernel about changes in a namespace.
 * Effects: a socket, and a watch on the event loop until disposed of; the calling thread is in the namespace while the
 * socket is opened.
 */

import { EBADMSG, ENOBUFS, EPERM } from "../errno.ts";
import { loadNative, type Native, type Watch } from "../native.ts";
import { type NetnsHandle, withNetns } from "../netns.ts";
import { MAX_FRAMES_PER_TURN } from "../packet/socket.ts";
import { AF_NETLINK, NETLINK_ROUTE, SOCK_CLOEXEC, SOCK_RAW, SOL_NETLINK } from "./constants.ts";
import { NetlinkError } from "./error.ts";
import { decodeMessages, type ReceivedMessage } from "./message.ts";
import { kernelAddress, MAX_DATAGRAM_BYTES, receiveView, requireResult } from "./socket.ts";

/** linux/rtnetlink.h */
export const RTNLGRP_LINK = 1;
export const RTNLGRP_NEIGH = 3;
export const RTNLGRP_IPV4_IFADDR = 5;
export const RTNLGRP_IPV4_ROUTE = 7;
export const RTNLGRP_IPV4_RULE = 8;
export const RTNLGRP_IPV6_IFADDR = 9;
export const RTNLGRP_IPV6_ROUTE = 11;
export const RTNLGRP_IPV6_RULE = 19;
export const RTNLGRP_IPV4_NETCONF = 24;
export const RTNLGRP_NEXTHOP = 32;

/** linux/netlink.h */
const NETLINK_ADD_MEMBERSHIP = 1;

/** asm-generic/socket.h; SO_RCVBUFFORCE exceeds net.core.rmem_max. */
const SOL_SOCKET = 1;
const SO_RCVBUFFORCE = 33;
const SO_RCVBUF = 8;

interface MonitorOptions {
  /** NETLINK_*; default: NETLINK_ROUTE. */
  readonly protocol?: number;
  /** A classic BPF program that selects datagrams before they are queued, by the first message of each. */
  readonly filter?: Uint8Array;
  /** Groups of the protocol (RTNLGRP_*, NFNLGRP_*). */
  readonly groups: readonly number[];
  /** Size of the queue of notifications; the default is the node's. */
  readonly bufferBytes?: number;
  /**
   * Time for which further notifications wait in the queue after one, unless they are drained: milliseconds. A turn of
   * the event loop costs more than reading them. Default: none.
   */
  readonly gatherMs?: number;
}

export interface Monitor extends Disposable {
  /**
   * Passes all notifications that have arrived to the listener, now. The kernel queues the notification of a change
   * before it acknowledges the change, so afterwards the listener knows of every change that was finished before this
   * call, or of a loss. Returns whether the queue is empty: it is not if receiving fails, or there are more
   * notifications than one drain passes.
   */
  drain(): boolean;
}

/** Most notifications that one drain passes: other processes could make new ones without end. */
const MAX_NOTIFICATIONS = 100_000;

interface MonitorListener {
  /** Receives a notification (RTM_NEW*, RTM_DEL*), for the families' decoders. Its payload is overwritten later. */
  message(message: ReceivedMessage): void;
  /** Notifications were lost (ENOBUFS) or could not be decoded: the listener must read the state itself. */
  lost(error: NetlinkError): void;
}

/** Returns undefined when the queue is empty. The payloads are views into the buffer. */
function receiveMessages(native: Native, fd: number, buffer: Uint8Array): ReceivedMessage[] | undefined {
  const datagram = receiveView(native, fd, buffer);
  return datagram && decodeMessages(datagram);
}

/** Calls the listener for every change in the groups (RTNLGRP_*). Throws {@link NetlinkError}, or NetnsError. */
export function openMonitor(
  netns: string | NetnsHandle,
  { protocol = NETLINK_ROUTE, filter, groups, bufferBytes, gatherMs = 0 }: MonitorOptions,
  listener: MonitorListener,
  native: Native = loadNative(),
): Monitor {
  const open = () => native.socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
  const fd = requireResult(withNetns(netns, open, native), "open a netlink monitor");
  const buffer = new Uint8Array(MAX_DATAGRAM_BYTES);
  let isOpen = true;
  let passedOn = 0;
  const drain = (most: number): boolean => {
    for (let count = 0; count < most && isOpen; count++) {
      try {
        const messages = receiveMessages(native, fd, buffer);
        if (messages === undefined) return true;
        passedOn += messages.length;
        for (const message of messages) listener.message(message);
      } catch (error) {
        if (!(error instanceof NetlinkError)) throw error;
        listener.lost(error);
        if (error.errno !== ENOBUFS && error.errno !== EBADMSG) return false;
      }
    }
    return false;
  };
  let watch: Watch | undefined;
  let gathering: NodeJS.Timeout | undefined;
  const stop = (): void => {
    clearTimeout(gathering);
    if (watch !== undefined) native.unwatch(watch);
    watch = undefined;
  };
  const start = (): number => {
    const started = native.watch(fd, () => {
      const isEmpty = drain(MAX_FRAMES_PER_TURN);
      if (gatherMs > 0 && isOpen) gather(isEmpty);
    });
    if (typeof started === "number") return started;
    watch = started;
    return 0;
  };
  /** Watches again after a pause without notifications. */
  const gather = (isEmpty: boolean): void => {
    stop();
    passedOn = 0;
    const look = (): void => {
      const isEmptyNow = drain(MAX_FRAMES_PER_TURN);
      if (!isOpen) return;
      const isQuiet = isEmptyNow && passedOn === 0;
      if (!isQuiet || start() < 0) gather(isEmptyNow);
    };
    gathering = setTimeout(look, isEmpty ? gatherMs : 0);
  };
  try {
    if (bufferBytes !== undefined) {
      const forced = native.setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, bufferBytes);
      // In a user namespace net.core.rmem_max bounds it; lost notifications cause a new list.
      const result = forced === -EPERM ? native.setsockopt(fd, SOL_SOCKET, SO_RCVBUF, bufferBytes) : forced;
      requireResult(result, "enlarge the queue of a netlink monitor");
    }
    if (filter !== undefined) requireResult(native.attachFilter(fd, filter), "filter a netlink monitor");
    requireResult(native.connect(fd, kernelAddress()), "connect a netlink monitor");
    for (const group of groups) {
      requireResult(native.setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, group), `join netlink group ${group}`);
    }
    requireResult(start(), "watch a netlink monitor");
  } catch (error) {
    native.close(fd);
    throw error;
  }
  return {
    drain: () => drain(MAX_NOTIFICATIONS),
    [Symbol.dispose]() {
      isOpen = false;
      stop();
      native.close(fd);
    },
  };
}
