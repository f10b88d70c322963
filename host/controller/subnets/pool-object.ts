/**
 * Generated pools and the status of Subnets as the API server gets them.
 */
import { formatIp } from "../../net/ip.ts";
import { formatPrefix } from "../../net/prefix.ts";
import { formatRange } from "../../net/range.ts";
import { rangesOf, type Spans, sizeOf } from "../../net/spans.ts";
import { API_VERSION } from "../../resources/fields/metadata.ts";
import { describeApplication, type Generated } from "../../resources/fields/subnet-pool.ts";
import { IN_USE_FINALIZER } from "../finalizers/plan-finalizers.ts";
import type { PoolTarget, SubnetNow } from "./model.ts";
import { poolLabels } from "./pool-names.ts";

/** A new pool. Without addresses: whoever creates it late, or twice, gives nothing away. */
export function emptyPool({ name, generated, gateway, routes }: PoolTarget, { spec }: SubnetNow): object {
  return {
    apiVersion: API_VERSION,
    kind: "IPPool",
    metadata: { name, labels: poolLabels(generated), finalizers: [IN_USE_FINALIZER] },
    spec: {
      subnet: formatPrefix(spec.subnet),
      ips: [],
      addressSpace: spec.addressSpace,
      ...wayOf({ gateway, routes }),
      generated: generatedOf(generated),
    },
  };
}

/** What becomes another in a pool that is there. The annotation makes it another one in any case: a write upon an older version fails then. */
export function poolChange(
  { spans, generated, gateway, routes }: PoolTarget,
  { family, version }: { readonly family: 4 | 6; readonly version: string },
): { readonly metadata: object; readonly spec: object } {
  return {
    metadata: { annotations: { "ipam.vendor.io/written-upon": version } },
    spec: {
      ips: textOf(spans, family),
      gateway: null,
      ...wayOf({ gateway, routes }),
      generated: generatedOf(generated),
    },
  };
}

function wayOf({ gateway, routes }: Pick<PoolTarget, "gateway" | "routes">): object {
  return {
    ...(gateway === undefined ? {} : { gateway: formatIp(gateway) }),
    routes: routes.map(({ dst, gw }) => ({ dst: formatPrefix(dst), gw: formatIp(gw) })),
  };
}

function generatedOf({ application, ...rest }: Generated): object {
  return { ...rest, application: { ...application } };
}

export function textOf(spans: Spans, family: 4 | 6): string[] {
  return rangesOf(spans, family).map(formatRange);
}

/** What a Subnet's status is to say of one pool. */
export interface Entry {
  readonly name: string;
  readonly spans: Spans;
  readonly application: string;
}

export function entryOf({ name, generated }: PoolTarget, spans: Spans): Entry {
  return { name, spans, application: describeApplication(generated.application) };
}

export interface SubnetStatus {
  readonly total: number;
  readonly assigned: number;
  readonly revision: number;
  readonly pools: readonly { readonly name: string; readonly ips: readonly string[]; readonly application: string }[];
}

/** A whole number that JSON can carry: an IPv6 network has more addresses than that. */
function countOf(size: bigint): number {
  return size > BigInt(Number.MAX_SAFE_INTEGER) ? Number.MAX_SAFE_INTEGER : Number(size);
}

export function subnetStatus(
  { spec }: SubnetNow,
  total: bigint,
  entries: readonly Entry[],
  revision: number,
): SubnetStatus {
  const sorted = entries.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  return {
    total: countOf(total),
    assigned: countOf(sorted.reduce((sum, { spans }) => sum + sizeOf(spans), 0n)),
    revision,
    pools: sorted.map(({ name, spans, application }) => ({ name, ips: textOf(spans, spec.family), application })),
  };
}
