/**
 * Announces addresses on a segment, so that neighbours drop cached MACs of earlier owners. The caller does not wait for it.
 * Effects: frames on the link, twice; a socket and a timer until the second time.
 */
import { encodeArpAnnouncement } from "../kernel/packet/arp.ts";
import { encodeNdpAnnouncement } from "../kernel/packet/ndp.ts";
import { openSendingSocket, type SendingSocket } from "../kernel/packet/socket.ts";
import type { Ip } from "../net/ip.ts";
import type { ProbeLink } from "./probe.ts";

/** Time between the two announcements of an address: milliseconds (RFC 5227: ANNOUNCE_INTERVAL). @limit */
export const ANNOUNCE_INTERVAL_MS = 2_000;

function send(
  socket: SendingSocket,
  { mac }: ProbeLink,
  addresses: readonly Ip[],
  failed: (error: unknown) => void,
): void {
  for (const ip of addresses) {
    const encode = ip.family === 4 ? encodeArpAnnouncement : encodeNdpAnnouncement;
    socket.sendAside(encode(mac, ip), failed);
  }
}

/**
 * Announces each address twice (RFC 5227 §2.3: request, sender = target; RFC 4861 §7.2.6: unsolicited advertisement, override):
 * at once, and ANNOUNCE_INTERVAL_MS later unless disposed of before. The process may exit earlier. Never throws: an error goes to
 * `onError` and ends the announcements.
 */
export function announce(link: ProbeLink, addresses: readonly Ip[], onError: (error: unknown) => void): Disposable {
  if (addresses.length === 0) return { [Symbol.dispose]: () => {} };
  const held = new DisposableStack();
  let isOver = false;
  const fail = (error: unknown): void => {
    held.dispose();
    if (!isOver) onError(error);
    isOver = true;
  };
  try {
    const { netnsPath, index } = link;
    const socket = held.use(openSendingSocket({ netnsPath, link: index }));
    send(socket, link, addresses, fail);
    const timer = setTimeout(() => {
      send(socket, link, addresses, fail);
      held.dispose();
    }, ANNOUNCE_INTERVAL_MS).unref();
    held.defer(() => clearTimeout(timer));
  } catch (error) {
    fail(error);
  }
  return {
    [Symbol.dispose]: () => {
      isOver = true;
      held.dispose();
    },
  };
}
