/** The API server's objects as records. An object that cannot be decoded is shown as far as it can be read. */

import * as z from "zod";
import { sizeOf, spansOf, withoutSpans } from "../core/spans.ts";
import type { KubeObject } from "../kubernetes/kube-api.ts";
import { messageOf } from "../lib/describe.ts";
import { byName } from "../lib/order.ts";
import { compareIp, formatIp, type Ip, parseIp } from "../net/ip.ts";
import { formatPrefix } from "../net/prefix.ts";
import { type AllocationRecord, formatAddressName } from "../records/allocation-record.ts";
import type { PoolRecord } from "../records/pool-record.ts";
import { checkPools } from "../resources/check-pools.ts";
import { occupiedOf } from "../resources/coordinator.ts";
import { describePoolOwner } from "../resources/fields/subnet-pool.ts";
import { decodeIpAllocation, type IpAllocation } from "../resources/ip-allocation.ts";
import { decodeIpPool, type IpPool } from "../resources/ip-pool.ts";
import { poolShape } from "../resources/ip-pool-shape.ts";
import { decodeIpPoolUsage, type PoolUsage } from "../resources/ip-pool-usage.ts";
import { type AddressPlace, locateAddress } from "../resources/locate-address.ts";
import { OccupiedIps } from "../resources/occupied-ips.ts";
import { decodeReservedIp } from "../resources/reserved-ip.ts";
import type { VersionRecord } from "./source.ts";

export function poolsOf(pools: readonly KubeObject[], usages: readonly KubeObject[]): PoolRecord[] {
  const usageOf = new Map(
    usages.map((object) => [nameOf(object), tryTo(() => decodeIpPoolUsage(object, "IPPoolUsage").usage)]),
  );
  const decoded = pools.map((object): { name: string; pool?: IpPool; refused?: string } => {
    const name = nameOf(object);
    try {
      return { name, pool: decodeIpPool(object, `IPPool "${name}"`) };
    } catch (error) {
      return { name, refused: `is invalid: ${messageOf(error)}` };
    }
  });
  const { refused } = checkPools(decoded.flatMap(({ pool }) => pool ?? []));
  return decoded
    .map(({ name, pool, refused: invalid }) =>
      poolRecordOf(name, pool, usageOf.get(name), invalid ?? refused.get(name)),
    )
    .sort(byName);
}

function poolRecordOf(
  name: string,
  pool: IpPool | undefined,
  usage: PoolUsage | undefined,
  refused: string | undefined,
): PoolRecord {
  const { bound = 0, cooling = 0, kept = 0, quarantined = 0 } = usage ?? {};
  const states = { Bound: bound, Cooling: cooling, Kept: kept, Quarantined: quarantined };
  const problem = refused === undefined ? {} : { refused };
  if (pool === undefined) return { name, states, ...problem };
  const { spec, deleting } = pool;
  return {
    name,
    subnet: formatPrefix(spec.subnet),
    addressSpace: spec.addressSpace,
    ...(spec.gateway === undefined ? {} : { gateway: formatIp(spec.gateway) }),
    ...(usage === undefined ? {} : countsOf(pool, usage)),
    states,
    default: spec.default,
    disabled: spec.disable,
    ...(deleting ? { deleting } : {}),
    ...(spec.generated === undefined
      ? {}
      : { generatedFrom: spec.generated.subnet, generatedFor: describePoolOwner(spec.generated.application) }),
    ...problem,
  };
}

/**
 * Pools and ReservedIPs that cannot be decoded are left out, as agents do. `coordinators`: the one that counts has
 * what machines of the cluster have.
 */
export function placesOf(
  ip: Ip,
  { pools, reserved, coordinators }: Readonly<Record<"pools" | "reserved" | "coordinators", readonly KubeObject[]>>,
): AddressPlace[] {
  const decoded = pools.flatMap((object) => tryTo(() => decodeIpPool(object, "IPPool")) ?? []);
  const taken = reserved.flatMap((object) => tryTo(() => decodeReservedIp(object, "ReservedIP")) ?? []);
  const status = coordinators.find((object) => nameOf(object) === "default")?.status;
  return locateAddress(ip, decoded, taken, new OccupiedIps(occupiedOf(status)));
}

const berthPod = z.object({
  metadata: z.object({ labels: z.record(z.string(), z.string()) }),
  spec: z.object({ containers: z.array(z.object({ image: z.string() })) }),
});

/** Counts the pods of each component by the tag of their first image. */
export function versionsOf(pods: readonly KubeObject[]): VersionRecord[] {
  const decoded = pods.flatMap((object) => berthPod.safeParse(object).data ?? []);
  const running = decoded.map(({ metadata, spec }) => {
    const image = spec.containers[0]?.image ?? "";
    const version = /:([^:/@]+)(?:@[^/]*)?$/.exec(image)?.[1] ?? image;
    return { component: metadata.labels["app.kubernetes.io/component"] ?? "unknown", version };
  });
  const groups = Map.groupBy(running, ({ component, version }) => `${component} ${version}`);
  return [...groups.values()].flatMap((group) => group.slice(0, 1).map((each) => ({ ...each, count: group.length })));
}

function tryTo<T>(decode: () => T): T | undefined {
  try {
    return decode();
  } catch {
    return undefined;
  }
}

/** The controller counts up to 2^53; of larger pools it knows the addresses in use. */
function countsOf(pool: IpPool, usage: PoolUsage): { total: string; used: string; free: string } {
  const inUse = BigInt(usage.bound + usage.cooling + usage.kept + usage.quarantined - usage.outside + usage.others);
  if (usage.total < Number.MAX_SAFE_INTEGER) {
    const [total, free] = [BigInt(usage.total), BigInt(usage.free)];
    return { total: String(total), free: String(free), used: String(total - free) };
  }
  const { ranges, masked } = poolShape(pool, []);
  const total = sizeOf(withoutSpans(spansOf(ranges), spansOf(masked)));
  return { total: String(total), free: String(total - inUse), used: String(inUse) };
}

export function allocationOf(object: KubeObject): AllocationRecord {
  const name = nameOf(object);
  let allocation: IpAllocation;
  try {
    allocation = decodeIpAllocation(object, `IPAllocation "${name}"`);
  } catch {
    return {
      address: name,
      addressSpace: "",
      pool: "",
      state: "Invalid",
      namespace: "",
      pod: "",
      interface: "",
      cursor: name,
    };
  }
  const { ip, addressSpace, prefixLength, pool, state, node, holders, workload, quarantine, since } = allocation.spec;
  const [first = quarantine?.holder, second] = holders;
  const address = formatIp(ip);
  return {
    address,
    prefixLength,
    addressSpace,
    pool,
    state,
    namespace: first?.namespace ?? "",
    pod: first?.pod ?? "",
    owner: first?.podUid ?? "",
    interface: first?.ifName ?? "",
    node,
    ...(second === undefined
      ? {}
      : { second: { namespace: second.namespace, pod: second.pod, interface: second.ifName, node: second.node } }),
    ...(workload === undefined
      ? {}
      : {
          workload: {
            kind: workload.kind,
            namespace: workload.namespace,
            name: workload.name,
            member: workload.member,
          },
        }),
    ...(since === undefined ? {} : { since }),
    cursor: formatAddressName(address, addressSpace),
    ...(quarantine === undefined
      ? {}
      : { quarantine: { reason: quarantine.reason, mac: quarantine.mac, parent: quarantine.parent } }),
  };
}

/** Addresses in their order, IPv4 first; texts that are no addresses last. */
export function compareRecords(a: AllocationRecord, b: AllocationRecord): number {
  const [one, other] = [parseIp(a.address), parseIp(b.address)];
  if (one === undefined || other === undefined) return Number(one === undefined) - Number(other === undefined);
  return one.family - other.family || compareIp(one, other) || (a.addressSpace < b.addressSpace ? -1 : 1);
}

function nameOf({ metadata }: KubeObject): string {
  const name = typeof metadata === "object" && metadata !== null && "name" in metadata ? metadata.name : undefined;
  return typeof name === "string" ? name : "";
}
