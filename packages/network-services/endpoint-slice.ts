/** The EndpointSlices that Berth writes, and the parts of them that it keeps. */
import { hash } from "node:crypto";
import * as z from "zod";
import type { KubeObject } from "../../host/kubernetes/kube-api.ts";
import type { Family } from "../../host/net/ip.ts";

export const MANAGED_BY_LABEL = "endpointslice.kubernetes.io/managed-by";
export const MANAGER = "berth";
const SERVICE_LABEL = "kubernetes.io/service-name";

/** In the words of the API. */
export interface Endpoint {
  readonly address: string;
  readonly ready: boolean;
  readonly serving: boolean;
  readonly terminating: boolean;
  readonly node: string | undefined;
  readonly hostname: string | undefined;
  readonly pod: { readonly name: string; readonly uid: string };
}

export interface EndpointPort {
  readonly name: string;
  readonly protocol: string;
  readonly port: number;
  readonly appProtocol?: string | undefined;
}

/** The kept part of a slice that Berth manages: enough to see whether it is up to date. */
export interface KnownSlice {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  /** Name of its Service; "" if it names none. */
  readonly service: string;
  /** UID of the Service that owns it; "" if none does. */
  readonly owner: string;
  /** `IPv4` */
  readonly addressType: string;
  /** {@link portsKey} of its ports. */
  readonly ports: string;
  /** {@link endpointKey} of each. */
  readonly endpoints: readonly string[];
}

const text = z.string().catch("");
const flag = z.boolean().catch(false);

const endpoint = z.object({
  addresses: z.array(z.string()).catch([]),
  conditions: z
    .object({ ready: flag, serving: flag, terminating: flag })
    .catch({ ...{ ready: false, serving: false, terminating: false } }),
  nodeName: z.string().optional().catch(undefined),
  hostname: z.string().optional().catch(undefined),
  targetRef: z.object({ name: text, uid: text }).catch({ name: "", uid: "" }),
});

const port = z.object({
  name: text,
  protocol: text,
  port: z.number().catch(0),
  appProtocol: z.string().optional().catch(undefined),
});

const slice = z.object({
  metadata: z.object({
    namespace: z.string(),
    name: z.string(),
    uid: z.string(),
    resourceVersion: z.string(),
    labels: z.record(z.string(), z.string()).catch({}),
    ownerReferences: z.array(z.object({ kind: text, uid: text })).catch([]),
  }),
  addressType: text,
  endpoints: z.array(endpoint).catch([]),
  ports: z.array(port).catch([]),
});

export function decodeSlice(object: KubeObject): KnownSlice {
  const { metadata, addressType, endpoints, ports } = slice.parse(object);
  const { labels, ownerReferences, ...identity } = metadata;
  return {
    ...identity,
    service: labels[SERVICE_LABEL] ?? "",
    owner: ownerReferences.find(({ kind }) => kind === "Service")?.uid ?? "",
    addressType,
    ports: portsKey(ports),
    endpoints: endpoints.map(({ addresses, conditions, nodeName: node, hostname, targetRef: pod }) =>
      endpointKey({ address: addresses[0] ?? "", ...conditions, node, hostname, pod }),
    ),
  };
}

/** Returns the kept part of a slice for which there is no room: it is written again. */
export function reduceSlice(slice: KnownSlice): KnownSlice {
  return { ...slice, ports: "", endpoints: [] };
}

/** Returns the address, a blank, and a digest of all else. */
export function endpointKey({ address, ready, serving, terminating, node, hostname, pod }: Endpoint): string {
  const rest = [ready, serving, terminating, node ?? "", hostname ?? "", pod.name, pod.uid];
  return `${address} ${hash("sha256", JSON.stringify(rest), "hex").slice(0, 16)}`;
}

export function portsKey(ports: readonly EndpointPort[]): string {
  return JSON.stringify(ports.map(({ name, protocol, port, appProtocol = "" }) => [name, protocol, port, appProtocol]));
}

/** The wanted content of a slice. */
export interface SliceContent {
  readonly service: { readonly namespace: string; readonly name: string; readonly uid: string };
  readonly ports: readonly EndpointPort[];
  readonly endpoints: readonly Endpoint[];
}

/** In the words of the API, without the slice's name and the type of its addresses, which never change. */
export function encodeSlice({ service: { namespace, name, uid }, ports, endpoints }: SliceContent) {
  return {
    metadata: {
      labels: { [MANAGED_BY_LABEL]: MANAGER, [SERVICE_LABEL]: name },
      ownerReferences: [{ apiVersion: "v1", kind: "Service", name, uid, controller: true }],
    },
    ports,
    endpoints: endpoints.map(({ address, ready, serving, terminating, node, hostname, pod }) => ({
      addresses: [address],
      conditions: { ready, serving, terminating },
      nodeName: node,
      hostname,
      targetRef: { kind: "Pod", namespace, ...pod },
    })),
  };
}

/** Returns the name of the nth slice of a Service and family. No two Services have one of the same name. */
export function sliceName(service: string, family: Family, nth: number): string {
  return `${service}-berth-v${family}-${nth}`;
}
