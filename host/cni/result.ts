/** The result of ADD, which is also prevResult, independent of the protocol version; result-versions.ts converts it. */
import type { Ip } from "../net/ip.ts";
import type { Prefix } from "../net/prefix.ts";

interface ResultInterface {
  readonly name: string;
  readonly mac?: string | undefined;
  /** In bytes. This and the last two fields are of CNI 1.1; some plugins write them in earlier versions. */
  readonly mtu?: number | undefined;
  /** Path of the network namespace; undefined for an interface of the node. */
  readonly sandbox?: string | undefined;
  readonly socketPath?: string | undefined;
  readonly pciId?: string | undefined;
}

export interface ResultIp {
  /** The pod's address, with the prefix length of its subnet. */
  readonly address: Prefix;
  readonly gateway?: Ip | undefined;
  /** Index into `interfaces`. */
  readonly interface?: number | undefined;
}

export interface ResultRoute {
  readonly dst: Prefix;
  readonly gw?: Ip | undefined;
  /** This and the following fields are of CNI 1.1; some plugins write them in earlier versions. */
  readonly mtu?: number | undefined;
  readonly advmss?: number | undefined;
  readonly priority?: number | undefined;
  readonly table?: number | undefined;
  readonly scope?: number | undefined;
}

interface ResultDns {
  readonly nameservers?: readonly string[] | undefined;
  readonly domain?: string | undefined;
  readonly search?: readonly string[] | undefined;
  readonly options?: readonly string[] | undefined;
}

/** An IPAM result has no interfaces, and its addresses no `interface` (CNI 1.1 §"Delegated plugins"). */
export interface CniResult {
  readonly interfaces: readonly ResultInterface[];
  readonly ips: readonly ResultIp[];
  readonly routes: readonly ResultRoute[];
  readonly dns?: ResultDns | undefined;
}
