import * as z from "zod";
import { ConfigError, decodeConfig } from "../config/config-error.ts";
import { parseYaml } from "../config/yaml.ts";
import { findClosest } from "../lib/closest.ts";
import { describeValue } from "../lib/describe.ts";
import type { Mismatch } from "../lib/schema.ts";
import { type Coordinator, decodeCoordinator } from "./coordinator.ts";
import { API_VERSION } from "./fields/metadata.ts";
import { decodeIpPool, type IpPool } from "./ip-pool.ts";
import { decodeNamespace, type Namespace } from "./namespace.ts";
import { decodePod, type Pod } from "./pod.ts";
import { decodeReservedIp, type ReservedIp } from "./reserved-ip.ts";
import { decodeSubnet, type Subnet } from "./subnet.ts";
import { decodeVendorConfMap, type VendorConfMap } from "./vendor-conf-map.ts";

export type Resource = IpPool | Subnet | ReservedIp | Coordinator | VendorConfMap | Namespace | Pod;

type Kind = Resource["kind"];

interface KindDecoder {
  readonly apiVersion: string;
  readonly decode: (value: unknown, source: string) => Resource;
}

const KINDS: { readonly [K in Kind]: KindDecoder } = {
  IPPool: { apiVersion: API_VERSION, decode: decodeIpPool },
  Subnet: { apiVersion: API_VERSION, decode: decodeSubnet },
  ReservedIP: { apiVersion: API_VERSION, decode: decodeReservedIp },
  Coordinator: { apiVersion: API_VERSION, decode: decodeCoordinator },
  ConfigMap: { apiVersion: "v1", decode: decodeVendorConfMap },
  Namespace: { apiVersion: "v1", decode: decodeNamespace },
  Pod: { apiVersion: "v1", decode: decodePod },
};

const head = z.looseObject({ apiVersion: z.string(), kind: z.string() });
const list = z.object({ items: z.array(z.unknown()) });
const named = z.object({ metadata: z.object({ name: z.string() }) });

function isKind(text: string): text is Kind {
  return Object.hasOwn(KINDS, text);
}

/** Returns `IPPool "blue"`, or the kind alone for an object without a name. */
function describeObject(kind: string, value: unknown): string {
  const name = named.safeParse(value).data?.metadata.name;
  return name === undefined ? kind : `${kind} ${describeValue(name)}`;
}

/** Returns whether an object may have this fault: `IPPool "blue" spec.gateway "10.6.0.255"`. */
type Tolerates = (fault: string) => boolean;

/** Returns the faults of addresses that earlier releases accepted, each with the object and the value. */
export function faultsIn(resources: readonly Resource[]): string[] {
  return resources.flatMap((each) => faultsOf(each).map((fault) => keyOf(each, fault)));
}

function faultsOf(resource: Resource): readonly Mismatch[] {
  return (resource.kind === "IPPool" || resource.kind === "Subnet" ? resource.spec.faults : undefined) ?? [];
}

const keyOf = ({ kind, name }: Resource, { path, got }: Mismatch): string => `${kind} "${name}" ${path} ${got}`;

const NONE: Tolerates = () => false;

/**
 * Decodes one object; `source` names its place in errors. Throws ConfigError, also for an unknown kind and for faults
 * that are not tolerated.
 */
export function decodeResource(value: unknown, source: string, tolerates = NONE): Resource {
  const { apiVersion, kind } = decodeConfig(head, value, source);
  if (!isKind(kind)) {
    const closest = findClosest(kind, Object.keys(KINDS));
    const wanted =
      closest === undefined ? `one of the kinds ${Object.keys(KINDS).join(", ")}` : `the kind "${closest}"`;
    throw new ConfigError(source, [{ path: "kind", got: describeValue(kind), wanted }]);
  }
  const within = `${source}, ${describeObject(kind, value)}`;
  const decoder = KINDS[kind];
  if (apiVersion !== decoder.apiVersion) {
    const mismatch = { path: "apiVersion", got: describeValue(apiVersion), wanted: `"${decoder.apiVersion}"` };
    throw new ConfigError(within, [mismatch]);
  }
  const resource = decoder.decode(value, within);
  if (resource.kind === "IPPool" && resource.spec.source !== undefined) {
    const got = describeValue(resource.spec.source);
    throw new ConfigError(within, [{ path: "spec.source", got, wanted: "no such key in embedded mode" }]);
  }
  const [first, ...rest] = faultsOf(resource).filter((fault) => !tolerates(keyOf(resource, fault)));
  if (first !== undefined) throw new ConfigError(within, [first, ...rest]);
  return resource;
}

/** Decodes one object, or the items of a `List` as kubectl prints it. */
function decodeObjects(value: unknown, source: string, tolerates: Tolerates): Resource[] {
  const { kind, apiVersion } = decodeConfig(head, value, source);
  if (kind !== "List" || apiVersion !== "v1") return [decodeResource(value, source, tolerates)];
  const { items } = decodeConfig(list, value, source);
  return items.map((item, index) => decodeResource(item, `${source}, item ${index}`, tolerates));
}

/**
 * Decodes all resources of a text of one or more documents. Throws ConfigError with the line of the first invalid
 * field. `tolerates` accepts faults of addresses that an object had before they were refused; by default none.
 */
export function decodeManifests(text: string, source: string, tolerates = NONE): Resource[] {
  return parseYaml(text, source).flatMap((document) =>
    document.decode(source, (value, within) => decodeObjects(value, within, tolerates)),
  );
}
