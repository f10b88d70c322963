/**
 * Operations that wait to be sent together. Those of one request each, all to one namespace, travel in one datagram and
 * are acknowledged together: the kernel executes each by itself, in order, also those behind a refused one. Effects:
 * those of the open namespaces.
 */
import type { Operation } from "../plan/operation.ts";
import type { Place } from "../plan/state.ts";
import { type Namespaces, requestOf } from "./apply-operation.ts";
import { ENODEV } from "./errno.ts";
import { type Outcome, Refusal, type Request } from "./netlink/conversation.ts";
import type { LinkMessage } from "./netlink/families.ts";
import { linkOf } from "./netlink/link/link.ts";
import { linkNamed, linkRequest } from "./netlink/link/requests.ts";
import type { Message } from "./netlink/message.ts";
import { readSysctlsByNetlink } from "./netlink/netconf/read-sysctls.ts";

/** Most operations in one datagram: the kernel's answers must fit into the socket's buffer. */
const MAX_PIPELINED_OPERATIONS = 64;

export interface Failure {
  readonly operation: Operation;
  readonly error: unknown;
  /** Whether it may have had effects: a part, or all if no answer came. */
  readonly effect: "none" | "part" | "unknown";
}

const DISABLE_IPV6 = /^ipv6\/conf\/([^/]+)\/disable_ipv6$/;

export class Pipeline {
  readonly #namespaces: Namespaces;
  /** Indexes of links by name, valid until other requests may have run. */
  readonly #indexes: Record<Place, Map<string, number>> = { pod: new Map(), host: new Map() };
  /** The kernel's messages about links that were looked up, by name; valid as long. */
  readonly #messages: Record<Place, Map<string, LinkMessage>> = { pod: new Map(), host: new Map() };
  #place: Place = "host";
  #waiting: { readonly operation: Operation; readonly request: Request }[] = [];
  /** In the order of addition. */
  readonly applied: Operation[] = [];
  /** In the same order; any number, since the kernel continues after a refused request. */
  readonly failures: Failure[] = [];

  constructor(namespaces: Namespaces) {
    this.#namespaces = namespaces;
  }

  /** Adds the operation if it is one request, and returns whether it is. Throws NetlinkError without its link. */
  add(operation: Operation): boolean {
    if (this.#isInherited(operation)) return true;
    const single = requestOf(operation, this.#namespaces, (place, link) => this.#find(place, link));
    if (single === undefined) return false;
    if (single.place !== this.#place || this.#waiting.length >= MAX_PIPELINED_OPERATIONS) this.flush();
    this.#place = single.place;
    this.#waiting.push({ operation, request: single.request });
    if (operation.kind === "add-veth") this.#findPair(operation.veth.host.name, operation.veth.pod.name);
    return true;
  }

  /** Sends the waiting operations. Afterwards each is in `applied` or in `failures`. */
  flush(): void {
    if (this.#waiting.length > 0) this.#exchange([]);
  }

  /** Forgets all links: other requests may have run. */
  forget(): void {
    for (const known of [this.#indexes, this.#messages]) {
      known.pod.clear();
      known.host.clear();
    }
  }

  /** Looks a link up once: until {@link forget}, only the operations of this pipeline change links. */
  #find(place: Place, name: string): number | undefined {
    const known = this.#indexes[place].get(name);
    if (known !== undefined) return known;
    return this.#look(place, name)?.index;
  }

  /** Requests the link unless its message is known. */
  #look(place: Place, name: string): LinkMessage | undefined {
    const known = this.#messages[place].get(name);
    if (known !== undefined) return known;
    const message = linkNamed(name, this.#ask(place, linkRequest(name)));
    if (message !== undefined) {
      this.#messages[place].set(name, message);
      this.#indexes[place].set(name, message.index);
    }
    return message;
  }

  /**
   * Returns whether a new link has the setting already, from `default` (net/ipv6/addrconf.c, ipv6_add_dev). Setting it
   * again would wait for the lock on all links, and reading `default` first takes longer with more namespaces
   * (fs/proc/proc_sysctl.c, proc_sys_compare).
   */
  #isInherited(operation: Operation): boolean {
    if (operation.kind !== "set-sysctl" || operation.from !== undefined) return false;
    const { place, key, to } = operation;
    const [, link] = DISABLE_IPV6.exec(key) ?? [];
    if (link === undefined) return false;
    const message = this.#look(place, link);
    return (
      message !== undefined && readSysctlsByNetlink(this.#namespaces[place].route, [key], () => message).get(key) === to
    );
  }

  /** Looks up both ends of a pair: the message of one contains the index of the other. */
  #findPair(name: string, otherName: string): void {
    const message = this.#look("host", name);
    const link = message && linkOf(message);
    if (link?.kind?.kind !== "veth" || link.parent === undefined) return;
    this.#indexes.pod.set(otherName, link.parent);
  }

  /** Sends the request behind the waiting operations. Returns no messages if the object does not exist. */
  #ask(place: Place, request: Request): readonly Message[] {
    if (place !== this.#place) this.flush();
    this.#place = place;
    const [answer = []] = this.#exchange([request]);
    if (!(answer instanceof Refusal)) return answer;
    if (answer.errno !== ENODEV) throw answer.toError();
    return [];
  }

  /** Sends the waiting operations and, behind them, questions. Returns their answers. */
  #exchange(questions: readonly Request[]): Outcome[] {
    const waiting = this.#waiting;
    this.#waiting = [];
    const requests = [...waiting.map(({ request }) => request), ...questions];
    let outcomes: Outcome[];
    try {
      outcomes = this.#namespaces[this.#place].route.pipeline(requests);
    } catch (error) {
      for (const { operation } of waiting) this.failures.push({ operation, error, effect: "unknown" });
      if (questions.length > 0) throw error;
      return [];
    }
    for (const [at, { operation }] of waiting.entries()) {
      const outcome = outcomes[at];
      if (outcome instanceof Refusal) {
        this.failures.push({ operation, error: outcome.toError(), effect: "part" });
      } else this.applied.push(operation);
    }
    return outcomes.slice(waiting.length);
  }
}
