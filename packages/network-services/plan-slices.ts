/** Plans the EndpointSlices of a Service, and the changes of those that exist. */
import { matchLabels } from "../../host/config/label-selector.ts";
import { byName } from "../../host/lib/order.ts";
import { type Family, formatIp, type Ip } from "../../host/net/ip.ts";
import type { BackendPod } from "./backend-pod.ts";
import {
  type Endpoint,
  type EndpointPort,
  endpointKey,
  type KnownSlice,
  portsKey,
  type SliceContent,
  sliceName,
} from "./endpoint-slice.ts";
import type { NetworkService } from "./network-service.ts";

/** Most endpoints in one EndpointSlice, as Kubernetes' own controller has it. */
export const MAX_SLICE_ENDPOINTS = 100;

export interface SlicePlan {
  readonly create: readonly (SliceContent & { readonly name: string; readonly family: Family })[];
  readonly change: readonly (SliceContent & { readonly slice: KnownSlice })[];
  readonly remove: readonly KnownSlice[];
}

/** The pods of a namespace; `addressesOf` returns those that the records of a pod have for a NIC. */
interface Backends {
  readonly pods: Iterable<BackendPod>;
  readonly addressesOf: (pod: BackendPod, ifName: string) => readonly Ip[];
  readonly firstNic: string;
}

/** The endpoints with the same ports, by address. */
interface Group {
  readonly ports: readonly EndpointPort[];
  readonly endpoints: Map<string, Endpoint>;
}

interface FilledSlice extends SliceContent {
  readonly family: Family;
  /** Undefined: a new one. */
  readonly slice: KnownSlice | undefined;
}

/**
 * `slices`: those that name the Service. Endpoints stay in their slice; one with room takes new ones. Without a
 * Service, or with one that is faulty, all go.
 */
export function planSlices(
  service: NetworkService | undefined,
  backends: Backends,
  slices: readonly KnownSlice[],
): SlicePlan {
  if (service === undefined) return { create: [], change: [], remove: slices };
  const inOrder = slices.toSorted(byName);
  const filled = service.families.flatMap((family) => fillSlices(service, family, inOrder, backends));
  const kept = new Set(filled.map(({ slice }) => slice));
  const names = new Set(slices.map(({ name }) => name));
  return {
    create: filled.flatMap(({ slice, ...wanted }) =>
      slice === undefined ? [{ ...wanted, name: nextName(service, wanted.family, names) }] : [],
    ),
    change: filled.flatMap(({ slice, family: _, ...wanted }) =>
      slice === undefined || isAs(slice, wanted) ? [] : [{ ...wanted, slice }],
    ),
    remove: slices.filter((slice) => !kept.has(slice)),
  };
}

function nextName(service: NetworkService, family: Family, names: Set<string>): string {
  let nth = 0;
  while (names.has(sliceName(service.name, family, nth))) nth++;
  const name = sliceName(service.name, family, nth);
  names.add(name);
  return name;
}

/** First all slices keep their endpoints, then those with room take more, then the rest takes the free slices. */
function fillSlices(
  service: NetworkService,
  family: Family,
  slices: readonly KnownSlice[],
  backends: Backends,
): FilledSlice[] {
  const usable = slices.filter(({ addressType }) => addressType === `IPv${family}`);
  const groups = groupsOf(service, family, backends);
  const filled = [...groups].flatMap(([key, { ports, endpoints: left }]): FilledSlice[] => {
    const own = usable.filter((slice) => slice.ports === key);
    const known = own.map((slice) => ({ service, family, ports, slice, endpoints: takeKnown(left, slice) }));
    for (const { endpoints } of known) endpoints.push(...takeFirst(left, MAX_SLICE_ENDPOINTS - endpoints.length));
    const more: FilledSlice[] = [];
    while (left.size > 0)
      more.push({ service, family, ports, slice: undefined, endpoints: takeFirst(left, MAX_SLICE_ENDPOINTS) });
    return [...known, ...more];
  });
  const kept = new Set(filled.map(({ slice }) => slice));
  const unused = usable.filter((slice) => !kept.has(slice)).values();
  return filled
    .filter(({ endpoints }) => endpoints.length > 0)
    .map((each) => ({ ...each, slice: each.slice ?? unused.next().value }));
}

function groupsOf(service: NetworkService, family: Family, { pods, addressesOf, firstNic }: Backends) {
  const groups = new Map<string, Group>();
  const taken = new Map<string, Group>();
  for (const pod of pods) {
    if (!matchLabels(service.selector, pod.labels)) continue;
    const ports = portsOf(service, pod);
    const nics = pod.nics.filter(({ network }) => network === service.network);
    for (const ip of nics.flatMap(({ ifName = firstNic }) => addressesOf(pod, ifName))) {
      if (ip.family !== family) continue;
      const address = formatIp(ip);
      const endpoint = endpointOf(service, pod, address);
      // Two pods have one address while a virtual machine migrates.
      const other = taken.get(address);
      if (other !== undefined && (!endpoint.ready || other.endpoints.get(address)?.ready === true)) continue;
      other?.endpoints.delete(address);
      const key = portsKey(ports);
      const group = groups.getOrInsertComputed(key, () => ({ ports, endpoints: new Map<string, Endpoint>() }));
      taken.set(address, group);
      group.endpoints.set(address, endpoint);
    }
  }
  return groups;
}

/** A port whose name the pod does not have is left out. */
function portsOf({ ports }: NetworkService, pod: BackendPod): EndpointPort[] {
  return ports.flatMap(({ name, protocol, target, appProtocol }) => {
    const port =
      typeof target === "number"
        ? target
        : pod.ports.find((each) => each.name === target && each.protocol === protocol)?.number;
    return port === undefined ? [] : [{ name, protocol, port, appProtocol }];
  });
}

function endpointOf({ name, isForAll }: NetworkService, pod: BackendPod, address: string): Endpoint {
  const { isReady: serving, isEnding: terminating } = pod;
  return {
    ...{ address, serving, terminating, ready: isForAll || (serving && !terminating) },
    node: pod.node,
    hostname: pod.subdomain === name ? pod.hostname : undefined,
    pod: { name: pod.name, uid: pod.uid },
  };
}

/** Takes the endpoints whose addresses the slice has, in its order. */
function takeKnown(endpoints: Map<string, Endpoint>, slice: KnownSlice): Endpoint[] {
  return slice.endpoints.flatMap((key) => {
    const address = key.slice(0, key.indexOf(" "));
    const endpoint = endpoints.get(address);
    endpoints.delete(address);
    return endpoint === undefined ? [] : [endpoint];
  });
}

function takeFirst(endpoints: Map<string, Endpoint>, most: number): Endpoint[] {
  const first = [...endpoints].slice(0, most);
  for (const [address] of first) endpoints.delete(address);
  return first.map(([, endpoint]) => endpoint);
}

function isAs(slice: KnownSlice, { service, ports, endpoints }: SliceContent): boolean {
  return (
    slice.owner === service.uid &&
    slice.ports === portsKey(ports) &&
    endpoints.map(endpointKey).join() === slice.endpoints.join()
  );
}
