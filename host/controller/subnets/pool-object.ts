/** Generated pools and the status of Subnets as API objects. */

import { createHash } from "node:crypto";
import { rangesOf, type Spans, sizeOf } from "../../core/spans.ts";
import { byName } from "../../lib/order.ts";
import { type Family, formatIp } from "../../net/ip.ts";
import { formatPrefix } from "../../net/prefix.ts";
import { formatRange } from "../../net/range.ts";
import { API_VERSION } from "../../resources/fields/metadata.ts";
import { describePoolOwner, type PoolOwner, type SubnetPoolSpec } from "../../resources/fields/subnet-pool.ts";
import { IN_USE_FINALIZER } from "../finalizers/plan-finalizers.ts";
import type { CurrentSubnet, PoolTarget } from "./model.ts";

/** Returns a new pool without addresses: creating it late, or twice, does no harm. */
export function emptyPool({ name, generated, gateway, routes }: PoolTarget, { spec }: CurrentSubnet): object {
  return {
    apiVersion: API_VERSION,
    kind: "IPPool",
    metadata: { name, labels: poolLabels(generated), finalizers: [IN_USE_FINALIZER] },
    spec: {
      subnet: formatPrefix(spec.subnet),
      ips: [],
      addressSpace: spec.addressSpace,
      ...wayOf({ gateway, routes }),
      generated,
    },
  };
}

/** Returns an existing pool's change, always with a new annotation: a write with an older version fails. */
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
      generated,
    },
  };
}

function wayOf({ gateway, routes }: Pick<PoolTarget, "gateway" | "routes">): object {
  return {
    ...(gateway === undefined ? {} : { gateway: formatIp(gateway) }),
    routes: routes.map(({ dst, gw }) => ({ dst: formatPrefix(dst), gw: formatIp(gw) })),
  };
}

function textOf(spans: Spans, family: 4 | 6): string[] {
  return rangesOf(spans, family).map(formatRange);
}

export interface AssignmentEntry {
  readonly name: string;
  readonly spans: Spans;
  readonly application: string;
}

export function entryOf({ name, generated }: PoolTarget, spans: Spans): AssignmentEntry {
  return { name, spans, application: describePoolOwner(generated.application) };
}

/** Returns a whole number for JSON: an IPv6 network has more addresses. */
function countOf(size: bigint): number {
  return size > BigInt(Number.MAX_SAFE_INTEGER) ? Number.MAX_SAFE_INTEGER : Number(size);
}

export function subnetStatus(
  { spec }: CurrentSubnet,
  total: bigint,
  entries: readonly AssignmentEntry[],
  revision: number,
) {
  const sorted = entries.toSorted(byName);
  return {
    total: countOf(total),
    assigned: countOf(sorted.reduce((sum, { spans }) => sum + sizeOf(spans), 0n)),
    revision,
    pools: sorted.map(({ name, spans, application }) => ({ name, ips: textOf(spans, spec.family), application })),
  };
}

/** Longest name of a generated pool, and longest value of a label: characters (RFC 1123 labels). */
const MAX_LENGTH = 63;

const HASH_LENGTH = 10;

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, HASH_LENGTH);
}

function plain(text: string): string {
  return text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "");
}

interface PoolKey {
  readonly application: Pick<PoolOwner, "uid" | "namespace" | "name">;
  readonly ifName: string;
  readonly family: Family;
  readonly subnet: string;
}

/** `shop-web-eth0-v4-3f9c0a1b2c`; `attempt` is above 0 if the previous attempt's name is taken. */
export function poolNameOf({ application, ifName, family, subnet }: PoolKey, attempt: number): string {
  const { uid, namespace, name } = application;
  const hash = hashOf([uid, ifName, family, subnet, attempt].join("/"));
  const end = `-${plain(ifName).slice(0, 15)}-v${family}-${hash}`;
  const begin = `${plain(namespace)}-${plain(name)}`.slice(0, MAX_LENGTH - end.length).replace(/-+$/, "");
  return `${begin}${end}`;
}

/** Returns the text if it is a valid label value, else its beginning and a hash. */
function labelValueOf(text: string): string {
  if (text.length <= MAX_LENGTH && /^[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?$/.test(text)) return text;
  const begin = text.replace(/[^A-Za-z0-9_.-]+/g, "-").replace(/^[^A-Za-z0-9]+/, "");
  return `${begin.slice(0, MAX_LENGTH - HASH_LENGTH - 1)}-${hashOf(text)}`.replace(/^-/, "");
}

/** For `kubectl get ippools.ipam.vendor.io -l ipam.vendor.io/subnet=blue`. Nothing depends on them. */
function poolLabels({ subnet, application, interface: ifName }: SubnetPoolSpec): Record<string, string> {
  return {
    "ipam.vendor.io/subnet": labelValueOf(subnet),
    "ipam.vendor.io/application-kind": labelValueOf(application.kind),
    "ipam.vendor.io/application-namespace": labelValueOf(application.namespace),
    "ipam.vendor.io/application-name": labelValueOf(application.name),
    "ipam.vendor.io/interface": labelValueOf(ifName),
  };
}
