/**
 * Names and labels of generated pools: a person sees whose they are, and two workloads never want one name.
 */
import { createHash } from "node:crypto";
import type { Family } from "../../net/ip.ts";
import type { Application, Generated } from "../../resources/fields/subnet-pool.ts";

/** Longest name of a generated pool, and longest value of a label: characters (RFC 1123 labels). */
const MAX_LENGTH = 63;

const HASH_LENGTH = 10;

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, HASH_LENGTH);
}

/** The text as a part of a DNS label. */
function plain(text: string): string {
  return text.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, ""); // biome-ignore format: one thought
}

export interface PoolKey {
  readonly application: Pick<Application, "uid" | "namespace" | "name">;
  readonly ifName: string;
  readonly family: Family;
  readonly subnet: string;
}

/** `shop-web-eth0-v4-3f9c0a1b2c`; `attempt` above 0 when another pool has the name of the attempt before. */
export function poolNameOf({ application, ifName, family, subnet }: PoolKey, attempt: number): string {
  const { uid, namespace, name } = application;
  const hash = hashOf([uid, ifName, family, subnet, attempt].join("/"));
  const end = `-${plain(ifName).slice(0, 15)}-v${family}-${hash}`;
  const begin = `${plain(namespace)}-${plain(name)}`.slice(0, MAX_LENGTH - end.length).replace(/-+$/, "");
  return `${begin}${end}`;
}

/** The text where a label may hold it, else its beginning and a hash. */
export function labelValueOf(text: string): string {
  if (text.length <= MAX_LENGTH && /^[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?$/.test(text)) return text;
  const begin = text.replace(/[^A-Za-z0-9_.-]+/g, "-").replace(/^[^A-Za-z0-9]+/, "");
  return `${begin.slice(0, MAX_LENGTH - HASH_LENGTH - 1)}-${hashOf(text)}`.replace(/^-/, "");
}

/** For people: `kubectl get ippools.ipam.vendor.io -l ipam.vendor.io/subnet=blue`. Nothing is decided by them. */
export function poolLabels({ subnet, application, interface: ifName }: Generated): Record<string, string> {
  return {
    "ipam.vendor.io/subnet": labelValueOf(subnet),
    "ipam.vendor.io/application-kind": labelValueOf(application.kind),
    "ipam.vendor.io/application-namespace": labelValueOf(application.namespace),
    "ipam.vendor.io/application-name": labelValueOf(application.name),
    "ipam.vendor.io/interface": labelValueOf(ifName),
  };
}
