/** A Service of the type LoadBalancer whose class is Berth's. */
import * as z from "zod";
import { ANNOTATION_PREFIX } from "../../host/config/annotations.ts";
import type { KubeObject } from "../../host/kubernetes/kube-api.ts";
import { type Family, formatIp, parseIp } from "../../host/net/ip.ts";

/** `spec.loadBalancerClass` of the Services that get addresses. */
export const CLASS = "ipam.vendor.io/address";

/** Names the pools, as on a pod. */
export const POOL_ANNOTATION = `${ANNOTATION_PREFIX}ippool`;

/** Fixed addresses: `10.6.0.50` or `10.6.0.50,fd00::50`. */
export const IPS_ANNOTATION = `${ANNOTATION_PREFIX}ips`;

/** Services of one namespace with the same text share an address if their ports differ. */
const SHARING_ANNOTATION = `${ANNOTATION_PREFIX}sharing-key`;

/** All of the class, after the prefix. */
export const ANNOTATIONS = ["ippool", "ips", "sharing-key"];

export interface BalancedService {
  readonly kind: "Service";
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly annotations: Readonly<Record<string, string>>;
  /** In the order of `spec.ipFamilies`; the first one is always wanted. */
  readonly families: readonly Family[];
  /** `ipFamilyPolicy: RequireDualStack`: all of them, or none. */
  readonly needsAll: boolean;
  /** `TCP 80` */
  readonly ports: readonly string[];
  readonly sharingKey: string | undefined;
  /** The pods to whose nodes traffic goes, as text; "": to any node (`externalTrafficPolicy`). */
  readonly local: string;
  /** By family, as text; undefined if the annotation is malformed, or names none of its families. */
  readonly requested: Readonly<Partial<Record<Family, string>>> | undefined;
  /** Of `status.loadBalancer`, as canonical text. */
  readonly ingress: readonly string[];
  /** As they are, also those of others. */
  readonly conditions: readonly Readonly<Record<string, unknown>>[];
}

const schema = z.object({
  metadata: z.object({
    ...{ namespace: z.string(), name: z.string(), uid: z.string(), resourceVersion: z.string() },
    annotations: z.record(z.string(), z.string()).catch({}),
    deletionTimestamp: z.string().optional(),
  }),
  spec: z.object({
    type: z.literal("LoadBalancer"),
    loadBalancerClass: z.literal(CLASS),
    ipFamilies: z.array(z.enum(["IPv4", "IPv6"])).catch([]),
    ipFamilyPolicy: z.string().catch(""),
    externalTrafficPolicy: z.string().catch(""),
    selector: z.record(z.string(), z.string()).catch({}),
    ports: z.array(z.object({ protocol: z.string().catch("TCP"), port: z.number() })).catch([]),
  }),
  status: z
    .object({
      loadBalancer: z
        .object({ ingress: z.array(z.object({ ip: z.string().optional() })).catch([]) })
        .catch({ ingress: [] }),
      conditions: z.array(z.record(z.string(), z.unknown())).catch([]),
    })
    .catch({ loadBalancer: { ingress: [] }, conditions: [] }),
});

/** Undefined for any other Service, and for one that is being deleted: its record ends with it. */
export function readBalanced(object: KubeObject): BalancedService | undefined {
  const { data } = schema.safeParse(object);
  if (data === undefined || data.metadata.deletionTimestamp !== undefined) return undefined;
  const { metadata, spec, status } = data;
  const { deletionTimestamp: _, ...names } = metadata;
  const families = spec.ipFamilies.map((text) => (text === "IPv6" ? 6 : 4));
  return {
    kind: "Service",
    ...names,
    families,
    needsAll: spec.ipFamilyPolicy === "RequireDualStack",
    ports: spec.ports.map(({ protocol, port }) => `${protocol} ${port}`),
    sharingKey: metadata.annotations[SHARING_ANNOTATION],
    local: spec.externalTrafficPolicy === "Local" ? JSON.stringify(Object.entries(spec.selector).sort()) : "",
    requested: parseRequested(metadata.annotations[IPS_ANNOTATION] ?? "", families),
    ingress: status.loadBalancer.ingress.flatMap(({ ip }) => parseIp(ip ?? "") ?? []).map(formatIp),
    conditions: status.conditions,
  };
}

/** Returns undefined if a part is no address, a family has two, or all are of others than `families`. */
function parseRequested(text: string, families: readonly Family[]): BalancedService["requested"] {
  const parts = text.split(",").filter((part) => part.trim() !== "");
  const found = parts.flatMap((part) => parseIp(part.trim()) ?? []);
  const byFamily = Object.fromEntries(found.map((ip) => [ip.family, formatIp(ip)]));
  const isUsed = parts.length === 0 || families.some((family) => byFamily[family] !== undefined);
  return isUsed && Object.keys(byFamily).length === parts.length ? byFamily : undefined;
}
