/**
 * Announces addresses on their segments, so that neighbours drop cached MACs of earlier owners. The kernel copies the
 * broadcast of an announcement to the NIC of each pod on the uplink: with hundreds of pods that takes one processor for
 * milliseconds. So announcements are sent one after the other in the thread pool, after the ADD has been answered, and
 * give way to other calls of the runtime for a bounded time.
 * Effects: frames on links; sockets and a timer until everything is announced.
 */
import { encodeArpAnnouncement } from "../kernel/packet/arp.ts";
import { encodeNdpAnnouncement } from "../kernel/packet/ndp.ts";
import { openSendingSocket, type SendingSocket } from "../kernel/packet/socket.ts";
import type { Ip } from "../net/ip.ts";
import type { ProbeLink } from "./probe.ts";

/** Time between the two announcements of an address: milliseconds (RFC 5227: ANNOUNCE_INTERVAL). */
export const ANNOUNCE_INTERVAL_MS = 2_000;

/** Time without a call of the runtime before addresses are announced: milliseconds. */
export const ANNOUNCE_QUIET_MS = 20;

/**
 * Time for which calls of the runtime may delay a due announcement: milliseconds. An address is first announced at most
 * 100 ms after its ADD; a runtime takes longer than that to start a container.
 */
export const ANNOUNCE_HOLD_UP_MS = 80;

export interface Announcement {
  readonly link: ProbeLink;
  readonly addresses: readonly Ip[];
  /** The first error ends the announcement. */
  readonly onError: (error: unknown) => void;
}

interface PendingAnnouncement extends Announcement {
  /** Due time, without the delay by calls, on a monotonic clock: milliseconds. */
  dueMs: number;
  isRepetition: boolean;
  /** Opened with the first frame. */
  socket: SendingSocket | undefined;
}

function framesOf({ link: { mac }, addresses }: Announcement): Uint8Array[] {
  return addresses.map((ip) => (ip.family === 4 ? encodeArpAnnouncement : encodeNdpAnnouncement)(mac, ip));
}

export class Announcer implements Disposable {
  readonly #pending = new Map<string, PendingAnnouncement>();
  #quietFromMs = 0;
  #timer: NodeJS.Timeout | undefined;
  #isSending = false;

  /**
   * Announces each address twice (RFC 5227 §2.3: request, sender = target; RFC 4861 §7.2.6: unsolicited advertisement,
   * override): soon, and ANNOUNCE_INTERVAL_MS later. Replaces a pending announcement of the key. The process may exit
   * between the two.
   */
  announce(key: string, announcement: Announcement): void {
    this.cancel(key);
    if (announcement.addresses.length === 0) return;
    const dueMs = performance.now() + ANNOUNCE_QUIET_MS;
    this.#pending.set(key, { ...announcement, dueMs, isRepetition: false, socket: undefined });
    this.#schedule();
  }

  /** Sends nothing more for the key. */
  cancel(key: string): void {
    this.#pending.get(key)?.socket?.[Symbol.dispose]();
    this.#pending.delete(key);
  }

  /** A call of the runtime begins or has ended. */
  giveWay(): void {
    this.#quietFromMs = performance.now() + ANNOUNCE_QUIET_MS;
  }

  /** Sends the first announcements that are still pending at once, and no second ones. */
  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    for (const [key, pending] of this.#pending) {
      try {
        if (!pending.isRepetition) for (const frame of framesOf(pending)) this.#socketOf(pending).send(frame);
      } catch (error) {
        pending.onError(error);
      }
      this.cancel(key);
    }
  }

  #socketOf(pending: PendingAnnouncement): SendingSocket {
    const { netnsPath, index: link } = pending.link;
    pending.socket ??= openSendingSocket({ netnsPath, link });
    return pending.socket;
  }

  #sendMs({ dueMs }: PendingAnnouncement): number {
    return Math.min(Math.max(dueMs, this.#quietFromMs), dueMs + ANNOUNCE_HOLD_UP_MS);
  }

  #schedule(): void {
    if (this.#isSending || this.#pending.size === 0) return;
    clearTimeout(this.#timer);
    const firstMs = Math.min(...[...this.#pending.values()].map((each) => this.#sendMs(each)));
    // rounded up, for a timer may fire a fraction of a millisecond early
    const waitMs = Math.max(0, Math.ceil(firstMs - performance.now()));
    this.#timer = setTimeout(() => void this.#sendDue(), waitMs).unref();
  }

  async #sendDue(): Promise<void> {
    this.#isSending = true;
    for (;;) {
      const nowMs = performance.now();
      const due = [...this.#pending].find(([, each]) => this.#sendMs(each) <= nowMs);
      if (due === undefined) break;
      await this.#send(...due);
    }
    this.#isSending = false;
    this.#schedule();
  }

  /** Never rejects. */
  async #send(key: string, pending: PendingAnnouncement): Promise<void> {
    const isCancelled = (): boolean => this.#pending.get(key) !== pending;
    try {
      for (const frame of framesOf(pending)) {
        await this.#socketOf(pending).sendAside(frame);
        if (isCancelled()) return;
      }
    } catch (error) {
      if (isCancelled()) return;
      this.cancel(key);
      pending.onError(error);
      return;
    }
    if (pending.isRepetition) this.cancel(key);
    pending.isRepetition = true;
    pending.dueMs = performance.now() + ANNOUNCE_INTERVAL_MS;
  }
}
