/** Pools, snapshots, demands and claims, with irrelevant fields filled in. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { DEFAULT_VENDOR_CONF } from "../../host/config/vendor-conf.ts";
import { PoolSpace } from "../../host/core/pool-space.ts";
import type { NicDemand, Subject } from "../../host/ipam/model.ts";
import type { Proposal } from "../../host/ipam/pick.ts";
import { maskPrefix } from "../../host/net/prefix.ts";
import { rangeOfPrefix } from "../../host/net/range.ts";
import { numberOf } from "../../host/registry/claims.ts";
import type { Journal } from "../../host/registry/journal.ts";
import type { Claim, ClaimOutcome, Registry } from "../../host/registry/registry.ts";
import { allocationName, type IpAllocation, type IpAllocationSpec } from "../../host/resources/ip-allocation.ts";
import type { IpPool, IpPoolSpec, PoolName } from "../../host/resources/ip-pool.ts";
import { decodeManifests } from "../../host/resources/manifest.ts";
import { type PoolTable, tableOfPools } from "../../host/resources/pools-by-name.ts";
import { assembleSnapshot, type Snapshot } from "../../host/resources/snapshot.ts";
import { root } from "../unit/house/sources.ts";
import { ip, prefix, range } from "./values.ts";

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

export function poolsByName(...pools: readonly IpPool[]): PoolTable {
  return tableOfPools(pools);
}

export const HOLDER = { namespace: "shop", pod: "web-0", podUid: "u1", ifName: "eth0", node: "n1" };

/** The object of an address that {@link HOLDER} has, of pool "blue". */
export function ipAllocation(address: string, spec: Partial<IpAllocationSpec> = {}): IpAllocation {
  const given = { ip: ip(address), addressSpace: "", prefixLength: 24, pool: "blue", state: "Bound", node: "n1" };
  const whole = { ...given, holders: [HOLDER], ...spec } as IpAllocationSpec;
  const name = allocationName(whole.ip, whole.addressSpace);
  return { kind: "IPAllocation", name, uid: "o1", resourceVersion: "1", deleting: false, spec: whole };
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

export function ipPool(name: string, subnet: string, spec: object = {}): object {
  return { apiVersion: "ipam.vendor.io/v1", kind: "IPPool", metadata: { name }, spec: { subnet, ...spec } };
}

export function vendorConf(text: string): object {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "vendor-conf" }, data: { "conf.yml": text } };
}

export type Resources = Parameters<typeof assembleSnapshot>[0][number]["resources"];

export function snapshotOf(...resources: Resources): Snapshot {
  return assembleSnapshot([{ source: "test", resources }]);
}

export const EMPTY_SNAPSHOT = snapshotOf();

/** Returns the snapshot of manifests, as a file has them. */
export function decodedSnapshot(...manifests: readonly object[]): Snapshot {
  return snapshotOf(...manifests.flatMap((manifest) => decodeManifests(JSON.stringify(manifest), "test")));
}

/** Wishes of a pod for a NIC: candidate pools by family, by name. */
export interface NicRequest {
  readonly ifName: string;
  readonly pools: readonly (readonly string[])[];
}

/** Like selection: a pool that is gone or disabled is a refusal, and each family is one list of candidates. */
export function demandOf({ ifName, pools }: NicRequest, known: ReadonlyMap<string, IpPool>): NicDemand {
  const families = pools.map((names) => {
    const candidates = names.map((name) => {
      const found = known.get(name);
      return found === undefined ? { name, refusal: "does not exist" } : { name, pool: found };
    });
    const family = candidates.find((each) => each.pool !== undefined)?.pool?.spec.family ?? 4;
    const fitting = candidates.filter((each) => each.pool === undefined || each.pool.spec.family === family);
    return { family, candidates: fitting };
  });
  const distinct = families.filter(
    ({ family }, index) => families.findIndex((each) => each.family === family) === index,
  );
  return { ifName, rule: "the test", cleanGateway: false, families: distinct };
}

export function proposal(address: string, options: Partial<Proposal> = {}): Proposal {
  return { space: "", ip: ip(address), prefixLength: 24, pool: "blue", ifName: "eth0", ...options };
}

export function claim(owner: string, proposals: readonly Proposal[], options: Partial<Claim> = {}): Claim {
  const claimant = { owner, namespace: "shop", pod: owner, ifName: "eth0", containerId: `c-${owner}`, network: "net" };
  return { ...claimant, proposals, ...options };
}

/** Claims, and retains addresses that may be new to their owner, as the search of an ADD does before its answer. */
export async function claimAndRetain(
  registry: Pick<Registry, "claim"> & Partial<Pick<Journal, "retain">>,
  wanted: Claim,
): Promise<ClaimOutcome> {
  const outcome = await registry.claim(wanted);
  const { workload } = wanted;
  if (outcome.kind !== "bound" || workload === undefined) return outcome;
  const retained = (outcome.open ?? outcome.created).map((row) => {
    const { claim } = row;
    return { ...row, workload, ...(claim === undefined ? {} : { claim: { ...claim, number: numberOf(row) || 1 } }) };
  });
  await registry.retain?.(retained);
  return outcome;
}
