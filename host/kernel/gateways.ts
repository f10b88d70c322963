/**
 * The gateways of the node's routes and next hop objects: other machines have these addresses, so no pod may get one.
 * Notifications report new ones at once. A gateway that is no longer used stays known until the next listing. A listing
 * costs more with more routes, and so runs in the background and in parts; a pod's ADD waits for one only if
 * notifications were lost.
 * Effects: a netlink socket during a listing.
 */
import { setImmediate } from "node:timers/promises";
import type { Ip } from "../net/ip.ts";
import { createConversation } from "./netlink/conversation.ts";
import type { Message } from "./netlink/message.ts";
import { gatewaysIn, streamGateways } from "./netlink/route/gateways.ts";
import type { Datagrams } from "./netlink/socket.ts";

export class Gateways {
  readonly #open: () => Datagrams;
  readonly #onOutdated: () => void;
  /**
   * By value, with IPv4 as numbers: texts would dominate the cost of a listing. `seen`: number of the last listing that
   * found it, or after whose start it was reported.
   */
  readonly #known = new Map<number | bigint, { readonly ip: Ip; seen: number }>();
  /** Number of started listings. */
  #listings = 0;
  /** All present gateways are known. */
  #isComplete = false;
  /** A gateway may have gone since the last listing began. */
  #isOutdated = true;
  #listing: Generator<void> | undefined;
  #all: readonly Ip[] | undefined;

  /** `open` opens a route socket for a listing. `onOutdated` is called when {@link list} should run, soon. */
  constructor(open: () => Datagrams, onOutdated: () => void) {
    this.#open = open;
    this.#onOutdated = onOutdated;
  }

  /** Notes a new route or next hop object from its notification. Throws NetlinkError for false lengths. */
  hear(message: Message): void {
    for (const ip of gatewaysIn(message)) this.#add(ip);
  }

  /** Some gateways may be gone. */
  outdate(): void {
    this.#isOutdated = true;
    this.#onOutdated();
  }

  /** Notifications were lost. */
  forget(): void {
    this.#isComplete = false;
    this.#listing?.return(undefined);
    this.outdate();
  }

  /** Returns each gateway once; the same array while they are the same. Throws NetlinkError. */
  read(): readonly Ip[] {
    if (!this.#isComplete) Array.from(this.#begin());
    this.#all ??= Array.from(this.#known.values(), ({ ip }) => ip);
    return this.#all;
  }

  /** Lists all in parts, between which other work gets its turn. Throws NetlinkError. */
  async list(): Promise<void> {
    const listing = this.#begin();
    while (listing.next().done !== true) await setImmediate();
  }

  /** Returns the listing that runs, or begins one. */
  #begin(): Generator<void> {
    this.#listing ??= this.#run();
    return this.#listing;
  }

  *#run(): Generator<void> {
    try {
      using socket = this.#open();
      this.#isOutdated = false;
      this.#listings++;
      for (const ips of streamGateways(createConversation(socket))) {
        for (const ip of ips) this.#add(ip);
        yield;
      }
      this.#isComplete = true;
    } finally {
      this.#listing = undefined;
    }
  }

  #add(ip: Ip): void {
    const key = ip.family === 4 ? Number(ip.value) : ip.value;
    const known = this.#known.get(key);
    if (known === undefined) {
      this.#known.set(key, { ip, seen: this.#listings });
      this.#all = undefined;
    } else known.seen = this.#listings;
  }

  /**
   * Drops gateways that the last listing did not find. While routes are deleted, a list of IPv6 may lack others: then
   * only two listings in succession prove that a gateway is gone.
   */
  dropGone(): void {
    const needed = this.#isOutdated ? this.#listings - 1 : this.#listings;
    for (const [key, { seen }] of this.#known) {
      if (seen >= needed) continue;
      this.#known.delete(key);
      this.#all = undefined;
    }
  }
}
