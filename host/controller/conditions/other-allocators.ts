/**
 * The ranges that other allocators of the cluster give to Services, as far as their kinds are installed: MetalLB's and
 * Cilium's. They do not know Berth's pools, and Berth does not know their addresses until a Service shows them.
 */
import * as z from "zod";
import { rangesOf, sharedSpans, sizeOf, spansOf, withoutSpans } from "../../core/spans.ts";
import { inAnyVersion } from "../../kubernetes/any-version.ts";
import type { KubeObject } from "../../kubernetes/kube-api.ts";
import { keyOf } from "../../kubernetes/object-key.ts";
import { collectionPath } from "../../kubernetes/paths.ts";
import { formatIp } from "../../net/ip.ts";
import { parsePrefix } from "../../net/prefix.ts";
import { parseRange, type Range, rangeOfPrefix } from "../../net/range.ts";
import type { IpPool } from "../../resources/ip-pool.ts";
import { poolShape } from "../../resources/ip-pool-shape.ts";
import type { ReservedIp } from "../../resources/reserved-ip.ts";
import { followObjects } from "../follow-objects.ts";
import type { ControllerDeps } from "../types.ts";

/** The ranges of one object: `IPAddressPool metallb-system/lan`. */
export interface OtherRanges {
  readonly name: string;
  readonly ranges: readonly Range[];
}

/** Of objects that Berth itself writes for another allocator: their addresses have records. */
export const OWN_LABEL = { key: "app.kubernetes.io/managed-by", value: "berth" };

const text = z.string().catch("");

const ownObject = z.object({
  metadata: z.object({ labels: z.object({ [OWN_LABEL.key]: z.literal(OWN_LABEL.value) }) }),
});

const metallbPool = z.object({ spec: z.object({ addresses: z.array(text).catch([]) }) });

const ciliumPool = z.object({
  spec: z.object({
    disabled: z.boolean().catch(false),
    blocks: z.array(z.object({ cidr: text, start: text, stop: text })).catch([]),
  }),
});

function rangeOf(spec: string): readonly Range[] {
  const prefix = parsePrefix(spec);
  const range = prefix === undefined ? parseRange(spec.replaceAll(" ", "")) : rangeOfPrefix(prefix);
  return range === undefined ? [] : [range];
}

/** Each returns no ranges for an object that it cannot read. */
export const OTHER_KINDS = {
  IPAddressPool: {
    resource: { apiVersion: "metallb.io/v1beta1", plural: "ipaddresspools" },
    read: (object: unknown) => (metallbPool.safeParse(object).data?.spec.addresses ?? []).flatMap(rangeOf),
  },
  CiliumLoadBalancerIPPool: {
    resource: { apiVersion: "cilium.io/v2", plural: "ciliumloadbalancerippools" },
    read: (object: unknown) => {
      const { disabled = true, blocks = [] } = ciliumPool.safeParse(object).data?.spec ?? {};
      return disabled ? [] : blocks.flatMap(({ cidr, start, stop }) => rangeOf(cidr || `${start}-${stop || start}`));
    },
  },
} as const;

/** Returns whether it has {@link OWN_LABEL}. */
export const isOwnObject = (object: unknown): boolean => ownObject.safeParse(object).success;

/** Starts to watch at once; `onChange`: when one of them has changed. */
export function openOtherAllocators(deps: ControllerDeps, onChange: () => void) {
  const all = Object.entries(OTHER_KINDS).map(([kind, { resource, read }]) => {
    const decode = (object: KubeObject): OtherRanges | undefined =>
      isOwnObject(object) ? undefined : { name: `${kind} ${keyOf(object)}`, ranges: read(object) };
    const own = { name: `${kind}s`, path: collectionPath(resource), optional: true, decode };
    return followObjects({ ...deps, api: inAnyVersion(deps.api, resource) }, onChange, own);
  });
  return {
    get ranges(): readonly OtherRanges[] {
      return all.flatMap(({ items }) => [...items.values()]);
    },
    get problems(): readonly string[] {
      return all.flatMap(({ problems }) => problems);
    },
    close: async (): Promise<void> => void (await Promise.all(all.map((each) => each.close()))),
  };
}

/** Returns a phrase about each of `others` that may give an address that the pool gives, too. */
export function describeShared(
  pool: IpPool,
  reserved: readonly ReservedIp[],
  others: readonly OtherRanges[],
): readonly string[] {
  const { family, addressSpace } = pool.spec;
  if (others.length === 0 || addressSpace !== "") return [];
  const { ranges, masked } = poolShape(pool, reserved);
  const own = withoutSpans(spansOf(ranges), spansOf(masked));
  return others.flatMap(({ name, ranges: all }) => {
    const shared = sharedSpans(own, spansOf(all.filter(({ first }) => first.family === family)));
    const [lowest] = rangesOf(shared, family);
    if (lowest === undefined) return [];
    const [count, first] = [sizeOf(shared), formatIp(lowest.first)];
    return [count === 1n ? `${first} is also in ${name}` : `${count} addresses, from ${first} on, are also in ${name}`];
  });
}
