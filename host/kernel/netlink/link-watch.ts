/**
 * One link, watched: whether it is there, switched on, and has a carrier.
 *
 * News only says that something changed; what is believed is a fresh look, since news may be older than the last look. A carrier that
 * was away for less than one turn of the event loop is not seen.
 * Effects: two sockets, and a watch on the event loop until it is disposed of; the calling thread is in the namespace while they open.
 */
import { loadNative, type Native } from "../native.ts";
import { createConversation } from "./conversation.ts";
import { IFF_NOARP, RTM_NEWLINK } from "./link/constants.ts";
import { type Link, linkOf } from "./link/link.ts";
import { decodeLink } from "./link/message.ts";
import { findLinkByIndex } from "./link/requests.ts";
import { openMonitor, RTNLGRP_LINK } from "./monitor.ts";
import { openRouteSocket } from "./socket.ts";

/**
 * `absent`: deleted, or moved to another namespace. `noArp`: of a kind that does without neighbours (ipvlan in mode L3, tunnels).
 * `down`: switched off. `noCarrier`: on, but no frame can pass.
 */
export type LinkState = "absent" | "noArp" | "down" | "noCarrier" | "ready";

export interface LinkWatch extends Disposable {
  /** As the kernel says now. Throws NetlinkError. */
  read(): LinkState;
}

export interface LinkListener {
  /** Something about the link changed; `state` is what a look just found, perhaps the same as before. */
  changed(state: LinkState): void;
  /** The kernel refuses to tell. */
  failure(error: unknown): void;
}

function stateOf(link: Link | undefined): LinkState {
  if (link === undefined) return "absent";
  if ((link.flags & IFF_NOARP) !== 0) return "noArp";
  if (!link.up) return "down";
  return link.carrier ? "ready" : "noCarrier";
}

/** Watches the link with that index in the namespace. Throws NetlinkError, or NetnsError. */
export function watchLink(
  netnsPath: string,
  index: number,
  listener: LinkListener,
  native: Native = loadNative(),
): LinkWatch {
  using opened = new DisposableStack();
  const conversation = createConversation(opened.use(openRouteSocket(netnsPath, native)));
  const read = (): LinkState => {
    const message = findLinkByIndex(conversation, index);
    return stateOf(message && linkOf(message));
  };
  const report = (): void => {
    let state: LinkState;
    try {
      state = read();
    } catch (error) {
      listener.failure(error);
      return;
    }
    listener.changed(state);
  };
  opened.use(
    openMonitor(
      netnsPath,
      [RTNLGRP_LINK],
      {
        message: (message) => {
          // a link that went is told in the same form
          if (decodeLink({ ...message, type: RTM_NEWLINK }).index === index) report();
        },
        lost: report,
      },
      native,
    ),
  );
  const held = opened.move();
  return { read, [Symbol.dispose]: () => held.dispose() };
}
