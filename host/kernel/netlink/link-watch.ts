/**
 * Watches one link: whether it exists, is up, and has a carrier.
 *
 * A notification tells only that the link changed, and may be older than the last read, so each one causes a new read.
 * A carrier loss shorter than one turn of the event loop is not noticed.
 * Effects: two sockets, and a watch on the event loop until disposed of; the calling thread is in the namespace while
 * they are opened.
 */
import { loadNative, type Native } from "../native.ts";
import { createConversation } from "./conversation.ts";
import { decodeLink } from "./families.ts";
import { IFF_NOARP, RTM_NEWLINK } from "./link/constants.ts";
import type { Link } from "./link/link.ts";
import { readLinkByIndex } from "./link/requests.ts";
import { openMonitor, RTNLGRP_LINK } from "./monitor.ts";
import { openRouteSocket } from "./socket.ts";

/**
 * `absent`: deleted, or moved to another namespace. `noArp`: a kind of link without neighbours (ipvlan in mode L3,
 * tunnels). `down`: switched off. `noCarrier`: up, but no frame can pass.
 */
export type LinkState = "absent" | "noArp" | "down" | "noCarrier" | "ready";

interface LinkListener {
  /** The link changed; `state` was read just now and may be the same as before. */
  changed(state: LinkState): void;
  /** Reading the state failed. */
  failure(error: unknown): void;
}

function stateOf(link: Link | undefined): LinkState {
  if (link === undefined) return "absent";
  if ((link.flags & IFF_NOARP) !== 0) return "noArp";
  if (!link.up) return "down";
  return link.carrier ? "ready" : "noCarrier";
}

/** Watches the namespace's link with that index; `read` reads its state. Throws NetlinkError, or NetnsError. */
export function watchLink(netnsPath: string, index: number, listener: LinkListener, native: Native = loadNative()) {
  using opened = new DisposableStack();
  const conversation = createConversation(opened.use(openRouteSocket(netnsPath, native)));
  const read = () => stateOf(readLinkByIndex(conversation, index));
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
      { groups: [RTNLGRP_LINK] },
      {
        message: (message) => {
          // the deletion of a link has the same form
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
