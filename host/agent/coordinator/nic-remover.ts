/**
 * Deletes a detached pod's pair and, where no plugin needs it, its NIC in place of its main plugin. The kernel needs
 * two dozen milliseconds for that, nearly all of it waiting after the links are gone for everyone; a thread waits,
 * while the plugin's DEL finds no NIC and is done.
 * Effects: deletes links in the pod's namespace; a thread of libuv's pool until the kernel is done.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { readFirstLinkNames } from "../../kernel/link-names.ts";
import { REMOVAL_GROUP } from "../../kernel/link-remover.ts";
import type { Conversation } from "../../kernel/netlink/conversation.ts";
import { NetlinkError } from "../../kernel/netlink/error.ts";
import { kindName } from "../../kernel/netlink/link/kind.ts";
import { linkOf } from "../../kernel/netlink/link/link.ts";
import { deleteGroupAside, findLinks, setLink } from "../../kernel/netlink/link/requests.ts";
import { identityOf, isSameNetns, NetnsError } from "../../kernel/netns.ts";
import { type OpenNamespace, openNamespace } from "../../kernel/open-namespace.ts";
import type { Faults } from "../../lib/fault.ts";
import type { Log } from "../../lib/log.ts";
import type { Veth } from "../../plan/operation.ts";
import type { DetachedPod } from "./clean-pod.ts";

/** Most NICs that are deleted at once or wait for a thread of libuv's pool; plugins delete further ones. */
const MAX_NIC_DELETIONS = 16;

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

  /**
   * Resolves when the pod has neither the NIC nor the pair any more, and nothing answers for them; or when the NIC is
   * left to its plugin, and the pair to its remover. `withNic` false: the same of the pair alone.
   */
  async remove({ path, identity, ifName }: DetachedPod, { pod: end }: Veth, withNic = true): Promise<void> {
    if (this.#underWay.size >= MAX_NIC_DELETIONS) return;
    using opened = new DisposableStack();
    try {
      const pod = opened.use(openNamespace(path));
      const indexes = isSameNetns(identityOf(pod), identity)
        ? findLinksOf(pod.route, withNic ? ifName : undefined, end)
        : [];
      if (indexes.length === 0) return;
      this.#faults("nic.delete");
      for (const index of indexes) setLink(pod.route, index, { group: REMOVAL_GROUP });
      void this.#delete(pod, opened.move());
      const isThere = (name: string): boolean => (withNic && name === ifName) || name === end.name;
      while (this.#underWay.has(pod) && readFirstLinkNames(pod).some(isThere)) await sleep(LOOK_MS);
    } catch (error) {
      if (!(error instanceof NetlinkError || error instanceof NetnsError)) throw error;
      this.#log.warn({ err: error, interface: ifName, netns: path }, "A detached pod's NIC is left to its plugin");
    }
  }

  /** Resolves when the kernel is done with the links. */
  async #delete(pod: OpenNamespace, opened: Disposable): Promise<void> {
    using _ = opened;
    this.#underWay.add(pod);
    try {
      await deleteGroupAside(pod.route, REMOVAL_GROUP);
    } catch (error) {
      this.#log.warn({ err: error, netns: pod.path }, "A detached pod's NIC was not deleted; it is left to its plugin");
    } finally {
      this.#underWay.delete(pod);
    }
  }
}

/**
 * Returns the indexes of the NIC and of the pod's end of the pair, or of the end alone; none if the NIC is of another
 * kind, or the namespace lacks that end: the path may be another pod's by now.
 */
function findLinksOf(route: Conversation, ifName: string | undefined, end: Veth["pod"]): readonly number[] {
  const links = findLinks(route, ifName === undefined ? [end.name] : [end.name, ifName]).map(linkOf);
  const own = links.find(({ name, mac }) => name === end.name && mac === end.mac);
  const nic = links.find(({ name, kind }) => name === ifName && kind !== undefined && KINDS.includes(kindName(kind)));
  if (own === undefined || ifName === undefined) return own === undefined ? [] : [own.index];
  return nic === undefined ? [] : [nic.index, own.index];
}
