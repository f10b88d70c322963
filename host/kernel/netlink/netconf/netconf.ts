import { decodeInt32, readValue } from "../attribute.ts";
import type { NetconfMessage } from "../families.ts";
import { NETCONFA_FORWARDING, NETCONFA_IFINDEX, NETCONFA_RP_FILTER } from "./constants.ts";

export interface Netconf {
  /** Index of a link, or NETCONFA_IFINDEX_*. */
  readonly index: number | undefined;
  readonly forwarding: number | undefined;
  /** IPv4 only. */
  readonly rpFilter: number | undefined;
}

/** Throws NetlinkError for a value of the wrong length. */
export function netconfOf({ attributes }: NetconfMessage): Netconf {
  return {
    index: readValue(attributes, NETCONFA_IFINDEX, decodeInt32),
    forwarding: readValue(attributes, NETCONFA_FORWARDING, decodeInt32),
    rpFilter: readValue(attributes, NETCONFA_RP_FILTER, decodeInt32),
  };
}
