/** What the node has itself, of what a pool could hand out: its addresses, and the next hops of its routes. */
import type { NodeMirror } from "../../kernel/node-mirror.ts";
import type { OccupiedIp } from "../../resources/occupied-ips.ts";

type Read = ReturnType<NodeMirror["read"]>;

export class NodeAddresses {
  readonly #mirror: Pick<NodeMirror, "read">;
  #from: Pick<Read, "addresses" | "gateways"> | undefined;
  #occupied: readonly OccupiedIp[] = [];

  constructor(mirror: Pick<NodeMirror, "read">) {
    this.#mirror = mirror;
  }

  /** Returns the same list while nothing has changed, which costs one look into the queue of notifications. Throws NetlinkError. */
  read(): readonly OccupiedIp[] {
    const { addresses, gateways } = this.#mirror.read();
    if (addresses !== this.#from?.addresses || gateways !== this.#from.gateways) {
      this.#from = { addresses, gateways };
      this.#occupied = [
        ...addresses.map(({ prefix, link }) => ({ ip: prefix.ip, why: `the node has it on "${link}"` })),
        ...gateways.map((ip) => ({ ip, why: "it is a next hop of the node's routes" })),
      ];
    }
    return this.#occupied;
  }
}
