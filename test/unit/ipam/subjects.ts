/** Pools and subjects for the tests of this folder, with what a test does not care about filled in. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { DEFAULT_VENDOR_CONF } from "../../../host/config/vendor-conf.ts";
import { PoolSpace } from "../../../host/core/pool-space.ts";
import type { Subject } from "../../../host/ipam/model.ts";
import { type Ip, parseIp } from "../../../host/net/ip.ts";
import { maskPrefix, type Prefix, parsePrefix } from "../../../host/net/prefix.ts";
import { parseRange, type Range, rangeOfPrefix } from "../../../host/net/range.ts";
import type { IpPool, IpPoolSpec, PoolName } from "../../../host/resources/ip-pool.ts";
import { root } from "../house/sources.ts";

function found<T>(value: T | undefined, text: string): T {
  if (value === undefined) throw new Error(`"${text}" cannot be parsed`);
  return value;
}

export const ip = (text: string): Ip => found(parseIp(text), text);
export const prefix = (text: string): Prefix => found(parsePrefix(text), text);
export const range = (text: string): Range => found(parseRange(text), text);

export interface PoolOptions extends Partial<Omit<IpPoolSpec, "ranges" | "excluded" | "gateway">> {
  readonly ips?: readonly string[];
  readonly excludeIPs?: readonly string[];
  readonly gatewayIp?: string;
  readonly deleting?: boolean;
}

/** A pool of `cidr` that serves every pod unless the options restrict it. */
export function pool(name: string, cidr: string, options: PoolOptions = {}): IpPool {
  const { ips, excludeIPs = [], gatewayIp, deleting = false, ...spec } = options;
  const subnet = maskPrefix(prefix(cidr));
  return {
    kind: "IPPool",
    name: name as PoolName,
    labels: {},
    deleting,
    spec: {
      family: subnet.ip.family,
      subnet,
      ranges: ips?.map(range) ?? [rangeOfPrefix(subnet)],
      excluded: excludeIPs.map(range),
      ...(gatewayIp === undefined ? {} : { gateway: ip(gatewayIp) }),
      routes: [],
      namespaceName: [],
      nodeName: [],
      multusName: [],
      default: false,
      disable: false,
      addressSpace: "",
      selection: "hash",
      ...spec,
    },
  };
}

export function poolsByName(...pools: readonly IpPool[]): Map<string, IpPool> {
  return new Map(pools.map((each) => [each.name, each]));
}

/** A NIC eth0 of pod shop/web-0 on node n1, IPv4 only. */
export function subject(options: Partial<Subject> = {}): Subject {
  return {
    pod: { namespace: "shop", name: "web-0", labels: { app: "web" }, annotations: {} },
    namespace: undefined,
    node: { name: "n1", labels: { zone: "a" } },
    ifName: "eth0",
    network: "lab",
    firstNic: "eth0",
    ipamConf: { type: "berth" },
    vendorConf: { ...DEFAULT_VENDOR_CONF, enableIPv6: false },
    ...options,
  };
}

export function openCore(): PoolSpace {
  return PoolSpace.open(readFileSync(join(root, "dist/core/berth-core.wasm")));
}
