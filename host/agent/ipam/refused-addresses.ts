/**
 * Addresses that the coordinator refused for a pod (code 106), which its next ADD is not to get again. In memory:
 * after a restart of the agent each is offered once more (decision 0045).
 */
import type { RefusedIp } from "../../ipam/model.ts";
import { BoundedMap } from "../../lib/bounded-map.ts";

/** Most owners whose refused addresses are remembered. */
export const MAX_REFUSED_OWNERS = 1_024;

/** Most refused addresses that are remembered for one owner; the oldest is forgotten first. */
export const MAX_REFUSED_OF_OWNER = 64;

/** By owner, with the oldest first. */
export class RefusedAddresses extends BoundedMap<string, readonly RefusedIp[]> {
  constructor() {
    super(MAX_REFUSED_OWNERS);
  }

  add(owner: string, refused: RefusedIp): void {
    this.set(owner, [...(this.get(owner) ?? []), refused].slice(-MAX_REFUSED_OF_OWNER));
  }
}
