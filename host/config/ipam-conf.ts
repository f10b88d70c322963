/**
 * The `ipam` object of a network configuration whose IPAM plugin is Berth.
 * Called by selection for the pools that a configuration names.
 * Effects: none.
 */

export interface IpamConf {
  readonly type: "berth";
  /** Pool names or patterns in the order written, never empty. */
  readonly default_ipv4_ippool?: readonly string[] | undefined;
  readonly default_ipv6_ippool?: readonly string[] | undefined;
}

/** Throws ConfigError. */
export function decodeIpamConf(_value: unknown, _source: string): IpamConf {
  throw new Error("decodeIpamConf is under construction");
}
