/**
 * Deletes the NIC of a detached pod in place of its main plugin. The kernel needs two dozen milliseconds for that,
 * nearly all of it waiting after the link is gone for everyone; a thread waits, while the plugin's DEL finds no NIC
 * and is done.
 * Effects: deletes a link in the pod's namespace; a thread of libuv's pool until the kernel is done.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { readFirstLinkNames } from "../../kernel/link-names.ts";
import type { Conversation } from "../../kernel/netlink/conversation.ts";
import { NetlinkError } from "../../kernel/netlink/error.ts";
import { kindName } from "../../kernel/netlink/link/kind.ts";
import { linkOf } from "../../kernel/netlink/link/link.ts";
import { deleteLinkAside, findLinks } from "../../kernel/netlink/link/requests.ts";
import { isSameNetns, NetnsError } from "../../kernel/netns.ts";
import { type OpenNamespace, openNamespace } from "../../kernel/open-namespace.ts";
import type { Faults } from "../../lib/fault.ts";
import type { Log } from "../../lib/log.ts";
import type { Veth } from "../../plan/operation.ts";
import type { DetachedPod } from "./clean-pod.ts";

/**
 * Most NICs that are deleted at once or wait for a thread of libuv's pool, which has eight. Further ones are left to
 * their plugins.
 */
export const MAX_NIC_DELETIONS = 16;

/** They have no other end, and no existence outside of the namespace. */
const KINDS = ["macvlan", "ipvlan"];

/** Interval at which to look whether the NIC is gone: milliseconds. */
const LOOK_MS = 1;

export class NicRemover {
  readonly #log: Log;
  readonly #faults: Faults;
  /** Their pods. */
  readonly #underWay = new Set<OpenNamespace>();

  constructor(log: Log, faults: Faults) {
    this.#log = log;
    this.#faults = faults;
  }

  /** Resolves when the pod has no such NIC any more, and nothing answers for it; or when it is left to its plugin. */
  async remove({ path, identity, ifName }: DetachedPod, { pod: end }: Veth): Promise<void> {
    if (this.#underWay.size >= MAX_NIC_DELETIONS) return;
    using opened = new DisposableStack();
    try {
      const pod = opened.use(openNamespace(path));
      const index = isSameNetns(pod.identity, identity) ? findNic(pod.route, ifName, end) : undefined;
      if (index === undefined) return;
      this.#faults("nic.delete");
      void this.#delete(pod, index, opened.move());
      while (this.#underWay.has(pod) && readFirstLinkNames(pod).includes(ifName)) await sleep(LOOK_MS);
    } catch (error) {
      if (!(error instanceof NetlinkError || error instanceof NetnsError)) throw error;
      this.#log.warn({ err: error, interface: ifName, netns: path }, "A detached pod's NIC is left to its plugin");
    }
  }

  /** Resolves when the kernel is done with the link. */
  async #delete(pod: OpenNamespace, index: number, opened: Disposable): Promise<void> {
    using _ = opened;
    this.#underWay.add(pod);
    try {
      await deleteLinkAside(pod.route, index);
    } catch (error) {
      this.#log.warn({ err: error, netns: pod.path }, "A detached pod's NIC was not deleted; it is left to its plugin");
    } finally {
      this.#underWay.delete(pod);
    }
  }
}

/**
 * Returns the index of the NIC; undefined if it is of another kind, or the namespace lacks the end of the pod's pair:
 * the path may be another pod's by now.
 */
function findNic(route: Conversation, ifName: string, end: Veth["pod"]): number | undefined {
  const links = findLinks(route, [end.name, ifName]).map(linkOf);
  const isOwn = links.some(({ name, mac }) => name === end.name && mac === end.mac);
  const nic = links.find(({ name, kind }) => name === ifName && kind !== undefined && KINDS.includes(kindName(kind)));
  return isOwn ? nic?.index : undefined;
}
