/** Which EndpointSlices a Service should have, and how those it has are to change. */
import { matchLabels } from "../../config/label-selector.ts";
import { type Family, formatIp, type Ip } from "../../net/ip.ts";
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

type Writable<T> = { readonly [K in keyof T]: T[K] extends readonly (infer E)[] ? E[] : never };

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

/**
 * `slices`: those that name the Service. Endpoints stay in their slice; one with room takes new ones. Without a
 * Service, or with one that is faulty, all go.
 */
export function planSlices(
  service: NetworkService | undefined,
  backends: Backends,
  slices: readonly KnownSlice[],
): SlicePlan {
  const plan: Writable<SlicePlan> = { create: [], change: [], remove: [] };
  const free = new Set(slices.toSorted((a, b) => (a.name < b.name ? -1 : 1)));
  if (service !== undefined)
    for (const family of service.families) planFamily({ service, family, free, slices, plan }, backends);
  plan.remove.push(...free);
  return plan;
}

interface FamilyPlan {
  readonly service: NetworkService;
  readonly family: Family;
  /** Those that are not assigned yet. */
  readonly free: Set<KnownSlice>;
  readonly slices: readonly KnownSlice[];
  readonly plan: Writable<SlicePlan>;
}

function planFamily({ service, family, free, slices, plan }: FamilyPlan, backends: Backends): void {
  const take = (fits: (slice: KnownSlice) => boolean): KnownSlice | undefined => {
    const slice = [...free].find((each) => each.addressType === `IPv${family}` && fits(each));
    if (slice !== undefined) free.delete(slice);
    return slice;
  };
  const groups = [...groupsOf(service, family, backends)].map(([key, { ports, endpoints }]) => {
    const filled: { slice: KnownSlice | undefined; content: Endpoint[] }[] = [];
    for (
      let slice = take((each) => each.ports === key);
      slice !== undefined;
      slice = take((each) => each.ports === key)
    )
      filled.push({ slice, content: takeKnown(endpoints, slice) });
    return { ports, endpoints, filled };
  });
  const names = new Set(slices.map(({ name }) => name));
  const nextName = (): string => {
    let nth = 0;
    while (names.has(sliceName(service.name, family, nth))) nth++;
    const name = sliceName(service.name, family, nth);
    names.add(name);
    return name;
  };
  for (const { ports, endpoints, filled } of groups) {
    for (const { content } of filled) content.push(...takeFirst(endpoints, MAX_SLICE_ENDPOINTS - content.length));
    while (endpoints.size > 0)
      filled.push({ slice: take(() => true), content: takeFirst(endpoints, MAX_SLICE_ENDPOINTS) });
    for (const { slice, content } of filled) {
      const wanted = { service, ports, endpoints: content };
      if (slice === undefined) plan.create.push({ ...wanted, name: nextName(), family });
      else if (content.length === 0) plan.remove.push(slice);
      else if (!isAs(slice, wanted)) plan.change.push({ ...wanted, slice });
    }
  }
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
