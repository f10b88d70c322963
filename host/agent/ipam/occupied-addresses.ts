/**
 * The addresses that machines other than pods have now, of all that can tell: the node itself, and in a cluster what
 * the controller publishes.
 */
import { NetlinkError } from "../../kernel/netlink/error.ts";
import type { NodeMirror } from "../../kernel/node-mirror.ts";
import type { Log } from "../../lib/log.ts";
import { SERVICES_LINK } from "../../plan/state.ts";
import { NONE_OCCUPIED, type OccupiedIp, OccupiedIps } from "../../resources/occupied-ips.ts";
import type { Snapshot } from "../../resources/snapshot.ts";

/** Whether no controller has said yet what machines have: that is not none (rule known-stays). */
export const isUnsaid = ({ coordinator }: Pick<Snapshot, "coordinator">): boolean =>
  coordinator !== undefined && coordinator.occupied === undefined;

/** Returns the same list while nothing has changed. */
type ReadList = () => readonly OccupiedIp[];

interface OccupiedSources {
  /** May throw NetlinkError: then what it returned before counts. */
  readonly node: ReadList;
  readonly cluster: ReadList;
  readonly log: Log;
}

export class OccupiedAddresses {
  readonly #sources: OccupiedSources;
  #node: readonly OccupiedIp[] = [];
  #cluster: readonly OccupiedIp[] = [];
  #all = NONE_OCCUPIED;

  constructor(sources: OccupiedSources) {
    this.#sources = sources;
  }

  /** Returns the same value while nothing has changed. Each ADD calls it. */
  read(): OccupiedIps {
    const [node, cluster] = [this.#readNode(), this.#sources.cluster()];
    if (node !== this.#node || cluster !== this.#cluster) {
      this.#node = node;
      this.#cluster = cluster;
      this.#all = new OccupiedIps([...node, ...cluster]);
    }
    return this.#all;
  }

  #readNode(): readonly OccupiedIp[] {
    try {
      return this.#sources.node();
    } catch (error) {
      if (!(error instanceof NetlinkError)) throw error;
      this.#sources.log.warn({ err: error }, "Reading the node's addresses failed; those known before are passed over");
      return this.#node;
    }
  }
}

type Read = ReturnType<NodeMirror["read"]>;

/** The node's own addresses and the next hops of its routes. */
export class NodeAddresses {
  readonly #mirror: Pick<NodeMirror, "read">;
  #from: Pick<Read, "addresses" | "gateways"> | undefined;
  #occupied: readonly OccupiedIp[] = [];

  constructor(mirror: Pick<NodeMirror, "read">) {
    this.#mirror = mirror;
  }

  /**
   * Returns the same list while nothing has changed, which costs one look into the queue of notifications. Throws
   * NetlinkError.
   */
  read(): readonly OccupiedIp[] {
    const { addresses, gateways } = this.#mirror.read();
    if (addresses !== this.#from?.addresses || gateways !== this.#from.gateways) {
      this.#from = { addresses, gateways };
      this.#occupied = [
        ...addresses
          .filter(({ link }) => link !== SERVICES_LINK)
          .map(({ prefix, link }) => ({ ip: prefix.ip, why: `the node has it on "${link}"` })),
        ...gateways.map((ip) => ({ ip, why: "it is a next hop of the node's routes" })),
      ];
    }
    return this.#occupied;
  }
}
