/**
 * Removes pairs of detached pods without making their DELs wait: a DEL sets the pair down, which deletes the routes
 * over it, and marks it by its group. Marked pairs are deleted several at a time, or have gone with their pods'
 * namespaces by then. The mark is in the kernel, so the next agent finds and deletes the rest.
 * Effects: changes links of the host's namespace; a timer.
 */
import { parseAlias } from "../../coordinator/plan/alias.ts";
import { RETIRED_GROUP } from "../../coordinator/plan/constants.ts";
import { isRetired } from "../../coordinator/plan/own-objects.ts";
import { ENODEV } from "../../kernel/errno.ts";
import type { LinkRemover } from "../../kernel/link-remover.ts";
import { unlessRefused } from "../../kernel/netlink/error.ts";
import { linkOf } from "../../kernel/netlink/link/link.ts";
import { linkChange, listLinks } from "../../kernel/netlink/link/requests.ts";
import { isSameNetns, type NetnsIdentity } from "../../kernel/netns.ts";
import type { NamespaceSource } from "../../kernel/open-namespace.ts";
import type { Log } from "../../lib/log.ts";
import { SerialQueue } from "../../lib/serial.ts";

/**
 * Time for which the pair of a detached pod stays, down and without routes, before it is deleted: milliseconds.
 * Usually the runtime deletes the pod's namespace first, and the pair goes with it.
 */
export const RETIREMENT_MS = 500;

/**
 * Most pairs that are deleted in one step. The kernel holds its lock on all links for 0.5 ms per pair, and all
 * network set-up of the node waits.
 */
const REMOVAL_BATCH = 16;

/** Most pairs of detached pods that wait to be deleted; with more, a DEL waits until they are gone. */
export const MAX_RETIRED_PAIRS = 256;

/** Shortest time from one step to the next: milliseconds. Pairs that are due meanwhile share the kernel's wait. */
const REMOVAL_PAUSE_MS = 250;

/** Pause after the kernel refused to delete retired pairs: milliseconds. */
const RETRY_MS = 5_000;

interface RetiredPair {
  readonly containerId: string;
  /** Namespace of the other end; unknown if a previous agent retired the pair. */
  readonly netns: NetnsIdentity | "gone" | "unknown";
  /** When it is deleted unless it has gone by then. A clock that does not jump: milliseconds. */
  readonly dueMs: number;
}

interface PairRemoverOptions {
  readonly host: NamespaceSource;
  readonly links: Pick<LinkRemover, "removeLink" | "removeLinks" | "close">;
  readonly log: Log;
}

export class PairRemover {
  readonly #options: PairRemoverOptions;
  /** Keyed by index, the first due first. */
  readonly #retired = new Map<number, RetiredPair>();
  readonly #queue = new SerialQueue();
  #timer: NodeJS.Timeout | undefined;

  /** Takes over the pairs that a previous agent has left. Throws NetlinkError. */
  constructor(options: PairRemoverOptions) {
    this.#options = options;
    for (const { index, alias, group } of listLinks(options.host.route).map(linkOf)) {
      const owner = isRetired(group) ? parseAlias(alias) : undefined;
      if (owner !== undefined) this.#retired.set(index, { containerId: owner.containerId, netns: "unknown", dueMs: 0 });
    }
    this.#schedule(0);
  }

  /** The link of this index has gone. Usually it is a pair that went with its pod's namespace. */
  linkGone(index: number): void {
    this.#retired.delete(index);
  }

  /** Deletes the pair; resolves when both ends are gone. */
  removeLink(index: number): Promise<boolean> {
    return this.#options.links.removeLink(index);
  }

  /**
   * Takes the pair of a pod's only NIC down and leaves its deletion to later. The kernel drops all neighbours and
   * routes over it. Waits only if too many pairs are retired. Returns false if the pair is gone. Throws NetlinkError.
   */
  async retire(index: number, owner: Omit<RetiredPair, "dueMs">): Promise<boolean> {
    // It may be being deleted, and must not leave the group then.
    if (this.#retired.has(index)) return true;
    const takeDown = linkChange(index, { up: false, group: RETIRED_GROUP });
    if (unlessRefused([ENODEV], () => this.#options.host.route.request(takeDown)) === undefined) return false;
    this.#retired.set(index, { ...owner, dueMs: performance.now() + RETIREMENT_MS });
    if (this.#retired.size >= MAX_RETIRED_PAIRS) await this.flush();
    else this.#schedule(RETIREMENT_MS);
    return true;
  }

  /** Resolves when neither the container nor the namespace has a retired pair, whose names a new one is to have. */
  async clear(containerId: string, readNetns: () => NetnsIdentity): Promise<void> {
    if (this.#retired.size === 0) return;
    const identity = readNetns();
    const isSame = (netns: RetiredPair["netns"]): boolean =>
      typeof netns === "string" ? netns === "unknown" : isSameNetns(netns, identity);
    const isInTheWay = (pair: RetiredPair): boolean => pair.containerId === containerId || isSame(pair.netns);
    if ([...this.#retired.values()].some(isInTheWay)) await this.flush();
  }

  /** Resolves when all pairs retired so far are gone. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    return this.#queue.run(() => this.#deleteRetired(Number.POSITIVE_INFINITY));
  }

  /** Deletes the retired pairs. A failure is logged; the next agent deletes the rest. */
  async close(): Promise<void> {
    await this.flush().catch(() => {});
    clearTimeout(this.#timer);
    await this.#options.links.close();
  }

  /** Pairs that are not due are left alone: their pods' namespaces are about to be deleted. */
  #schedule(milliseconds: number): void {
    if (this.#timer !== undefined || this.#retired.size === 0) return;
    const deleteDue = (): void => {
      this.#timer = undefined;
      void this.#queue.run(() => this.#deleteRetired(performance.now())).catch(() => {});
    };
    this.#timer = setTimeout(deleteDue, milliseconds).unref();
  }

  async #deleteRetired(untilMs: number): Promise<void> {
    const due = [...this.#retired].filter(([, { dueMs }]) => dueMs <= untilMs);
    try {
      for (let at = 0; at < due.length; at += REMOVAL_BATCH) await this.#delete(due.slice(at, at + REMOVAL_BATCH));
    } catch (error) {
      const { log } = this.#options;
      log.warn({ err: error, pairs: this.#retired.size }, "Deleting the pairs of detached pods failed; retrying");
      this.#schedule(RETRY_MS);
      throw error;
    }
    const [next] = this.#retired.values();
    if (next !== undefined) this.#schedule(Math.max(REMOVAL_PAUSE_MS, next.dueMs - performance.now()));
  }

  async #delete(batch: readonly (readonly [index: number, pair: RetiredPair])[]): Promise<void> {
    const left = batch.map(([index]) => index).filter((index) => this.#retired.has(index));
    // Those that are gone are left to the thread: each question waits for the kernel's lock on all links.
    if (left.length > 0) await this.#options.links.removeLinks(left);
    for (const index of left) this.#retired.delete(index);
  }
}
