/**
 * Allocations as the controller caches all of them: strings that many objects share (pools, nodes, namespaces) are held once, and every object
 * has the same keys in the same order, so that V8 stores it with a shared shape.
 */
import type { KubeObject } from "../kubernetes/kube-api.ts";
import {
  decodeIpAllocation,
  type Holder,
  type IpAllocation,
  type IpAllocationSpec,
} from "../resources/ip-allocation.ts";

/** Most names of pools, nodes and namespaces that are shared between all allocations. @limit */
export const MAX_SHARED_TEXTS = 65_536;

/** Returns a decoder with its own table of shared strings, which throws ConfigError. */
export function openLeanDecoder(): (object: KubeObject) => IpAllocation {
  const texts = new Map<string, string>();
  const share = (text: string): string => {
    const known = texts.get(text);
    if (known !== undefined) return known;
    // Names in use come back with the next object that has them.
    if (texts.size >= MAX_SHARED_TEXTS) texts.clear();
    texts.set(text, text);
    return text;
  };
  return (object) => {
    const { kind, name, uid, resourceVersion, deleting, spec } = decodeIpAllocation(object, "API server");
    return { kind, name, uid, resourceVersion, deleting, spec: leanSpec(spec, share) };
  };
}

function leanSpec(spec: IpAllocationSpec, share: (text: string) => string): IpAllocationSpec {
  const { ip, addressSpace, prefixLength, pool, state, node, holders, workload, quarantine, since } = spec;
  return {
    ip,
    addressSpace: share(addressSpace),
    prefixLength,
    pool: share(pool),
    state,
    node: share(node),
    holders: holders.map((holder) => leanHolder(holder, share)),
    workload,
    quarantine,
    since,
  };
}

function leanHolder({ namespace, pod, podUid, ifName, node }: Holder, share: (text: string) => string): Holder {
  return { namespace: share(namespace), pod, podUid, ifName: share(ifName), node: share(node) };
}
