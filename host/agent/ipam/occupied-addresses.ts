/** The addresses that this node and its routers have now. */
import { NetlinkError } from "../../kernel/netlink/error.ts";
import type { NodeMirror } from "../../kernel/node-mirror.ts";
import type { Log } from "../../lib/log.ts";
import { SERVICES_LINK } from "../../plan/state.ts";
import { NONE_OCCUPIED, type OccupiedIp, OccupiedIps } from "../../resources/occupied-ips.ts";

export class OccupiedAddresses {
  readonly #readNode: () => readonly OccupiedIp[];
  readonly #log: Log;
  #node: readonly OccupiedIp[] = [];
  #all = NONE_OCCUPIED;

  /** `readNode`: returns the same list until a change; on a NetlinkError its last result counts. */
  constructor(readNode: () => readonly OccupiedIp[], log: Log) {
    this.#readNode = readNode;
    this.#log = log;
  }

  /** Returns the same value while nothing has changed. Each ADD calls it. */
  read(): OccupiedIps {
    try {
      const node = this.#readNode();
      if (node !== this.#node) this.#all = new OccupiedIps(node);
      this.#node = node;
    } catch (error) {
      if (!(error instanceof NetlinkError)) throw error;
      this.#log.warn({ err: error }, "Reading the node's addresses failed; those known before are passed over");
    }
    return this.#all;
  }
}

/** The node's own addresses and the next hops of its routes. */
export class NodeAddresses {
  readonly #mirror: Pick<NodeMirror, "read">;
  #from: Pick<ReturnType<NodeMirror["read"]>, "addresses" | "gateways"> | undefined;
  #occupied: readonly OccupiedIp[] = [];

  constructor(mirror: Pick<NodeMirror, "read">) {
    this.#mirror = mirror;
  }

  /** Returns the same list until a change, at the cost of a look into the notifications. Throws NetlinkError. */
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
