/**
 * The frames that passed a link: a packet socket that is opened before and drained after.
 *
 *   using capture = await openCapture(router, "seg0");
 *   await ask(client, "10.60.0.50", 80);
 *   capture.frames().filter(({ direction, from }) => direction === "in" && from === "10.60.0.50")
 *
 * The kernel queues a frame at the moment it passes, so an answered one is in the queue: no wait is needed.
 * Effects: a packet socket in the namespace.
 */
import { getSystemErrorName } from "node:util";
import { loadNative } from "../../host/kernel/native.ts";
import { withNetns } from "../../host/kernel/netns.ts";
import { decodeFrame, type Frame } from "./frame.ts";
import type { Netns } from "./netns.ts";

const AF_PACKET = 17;
const SOCK_RAW = 3;
const SOCK_NONBLOCK = 0o4000;
const SOCK_CLOEXEC = 0o2000000;
const SOL_SOCKET = 1;
const SO_RCVBUF = 8;
const SO_RCVBUFFORCE = 33;
const ETH_P_ALL = 3;
const PACKET_OUTGOING = 4;
/** All headers of a packet; the rest is cut. */
const RECEIVE_BYTES = 256;
const QUEUE_BYTES = 8 << 20;

export interface Capture extends Disposable {
  /** All frames since it was opened, in their order, both ways. */
  frames(): readonly Frame[];
  /** Forgets them, so that the next call of `frames` begins here. */
  clear(): void;
}

/**
 * struct sockaddr_ll: family, ether type in network byte order, link index; its packet type is at offset 10
 * (linux/if_packet.h).
 */
function linkAddress(link: number): Uint8Array {
  const bytes = new Uint8Array(20);
  const view = new DataView(bytes.buffer);
  view.setUint16(0, AF_PACKET, true);
  view.setUint16(2, ETH_P_ALL);
  view.setInt32(4, link, true);
  return bytes;
}

/** Begins to watch `link` of the namespace. */
export async function openCapture(netns: Netns, link: string): Promise<Capture> {
  const [found] = await netns.ipJson<{ ifindex: number }>(`link show dev ${link}`);
  if (found === undefined) throw new Error(`There is no link "${link}" in ${netns.name}`);
  const native = loadNative();
  const check = (result: number): number => {
    if (result < 0) throw new Error(`Cannot watch "${link}" of ${netns.name}: ${getSystemErrorName(result)}`);
    return result;
  };
  // Without a protocol it receives nothing until it is bound, so nothing of other links gets into the queue.
  const fd = check(withNetns(netns.path, () => native.socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)));
  try {
    const queue = (option: number): number => native.setsockopt(fd, SOL_SOCKET, option, QUEUE_BYTES);
    // A user namespace is limited by net.core.rmem_max.
    if (queue(SO_RCVBUFFORCE) < 0) check(queue(SO_RCVBUF));
    check(native.bind(fd, linkAddress(found.ifindex)));
  } catch (error) {
    native.close(fd);
    throw error;
  }
  const frames: Frame[] = [];
  const drain = (): void => {
    for (;;) {
      const bytes = new Uint8Array(RECEIVE_BYTES);
      const origin = new Uint8Array(20);
      const length = native.recvfrom(fd, bytes, 0, origin);
      if (length < 0) return;
      frames.push(decodeFrame(bytes.subarray(0, length), origin[10] === PACKET_OUTGOING ? "out" : "in"));
    }
  };
  return {
    frames: () => {
      drain();
      return frames;
    },
    clear: () => {
      drain();
      frames.length = 0;
    },
    [Symbol.dispose]: () => void native.close(fd),
  };
}
