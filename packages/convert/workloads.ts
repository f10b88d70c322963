/** Workloads, namespaces and pods: their annotations as patches, and the addresses that pods have. */
import * as z from "zod";
import {
  ANNOTATION_PREFIX,
  DEFAULT_NETWORK_ANNOTATION,
  decodeNamespaceAnnotations,
  decodePodAnnotations,
  NETWORKS_ANNOTATION,
} from "../../host/config/annotations.ts";
import { ConfigError } from "../../host/config/config-error.ts";
import { isDnsLabel, isDnsSubdomain } from "../../host/config/fields/names.ts";
import { JsonError, parseJson } from "../../host/lib/json.ts";
import { textMap } from "../../host/lib/schema.ts";
import { insteadOf } from "../../host/lib/try-or.ts";
import { parseIp } from "../../host/net/ip.ts";
import type { PlanBuilder } from "./conversion-plan.ts";
import type { PlacedField } from "./findings.ts";
import type { PlacedObject } from "./input.ts";
import { isJson, newNetworkName } from "./networks.ts";

type Annotations = Readonly<Record<string, string>>;

/** Annotations to be read, and their place. */
export interface AnnotationsToConvert extends PlacedField {
  readonly annotations: Annotations;
}

/** Return Berth's annotations for those of the peer; findings for the others. */
export interface AnnotationConverter {
  readonly ofPod: (found: AnnotationsToConvert) => Record<string, string>;
  readonly ofNamespace: (found: AnnotationsToConvert) => Record<string, string>;
}

const ALLOW_SINGLE = { enableIPv4: true, enableIPv6: true, enableSubnet: true };

/** Phases of pods that have no addresses any longer. */
const FINAL_PHASES = ["Succeeded", "Failed"];

/**
 * Adds a patch for each object whose annotations change. `renamed`: definitions of the peer, `namespace/name`, that
 * have a replacement.
 */
export function convertWorkloads(
  objects: readonly PlacedObject[],
  builder: PlanBuilder,
  { converter, renamed }: { readonly converter: AnnotationConverter; readonly renamed: ReadonlySet<string> },
): void {
  for (const object of objects) {
    const path = annotationPath(object);
    if (path === undefined) continue;
    const annotations = annotationsAt(object.value, path);
    const found = { annotations, place: object.place, field: path.join(".") };
    const isNamespace = object.kind === "Namespace";
    const own = checked(isNamespace ? converter.ofNamespace(found) : converter.ofPod(found), found, isNamespace);
    const networks = isNamespace ? {} : renameNetworks(object, found, { renamed, suffix: builder.suffix });
    reportSingleFamily(own, found);
    if (object.kind === "VirtualMachine") reportMachine(object, { renamed, suffix: builder.suffix });
    const set = Object.entries({ ...own, ...networks }).filter(([key, text]) => annotations[key] !== text);
    if (set.length === 0) continue;
    addPatch(object, { builder, path, set });
  }
}

interface AnnotationPatch {
  readonly builder: PlanBuilder;
  readonly path: readonly string[];
  readonly set: readonly (readonly [key: string, text: string])[];
}

/** Adds the patch, or says why there is none. */
function addPatch(object: PlacedObject, { builder, path, set }: AnnotationPatch): void {
  const { apiVersion, kind, namespace, name, place, owners } = object;
  if (kind === "Pod" || kind === "Job") {
    const keys = set.map(([key, text]) => `${key}: ${text}`).join(", ");
    const text = `cannot be changed while it exists; create it again with ${keys}`;
    place.changed(path.join("."), kind, text);
    return;
  }
  if (!isDnsSubdomain(name) || !(namespace === "" || isDnsLabel(namespace))) {
    place.problem("metadata", `${namespace}/${name}`, "no patch: want names that Kubernetes accepts");
    return;
  }
  const [owner] = owners;
  if (owner !== undefined)
    place.changed("metadata.ownerReferences", owner, "the owner may undo the patch; change the owner");
  const annotations = annotationsAt(object.value, path);
  const before = set.map(([key]) => [key, annotations[key] ?? null] as const);
  const patch = nest(path, Object.fromEntries(set));
  builder.addPatch({ apiVersion, kind, namespace, name, patch, rollback: nest(path, Object.fromEntries(before)) });
}

/** Records the addresses that pods report. */
export function usePodAddresses(objects: readonly PlacedObject[], builder: PlanBuilder): void {
  for (const object of objects) {
    if (object.kind !== "Pod" || object.apiVersion !== "v1") continue;
    const pod = podSchema.safeParse(object.value).data;
    if (pod === undefined || pod.spec.hostNetwork || FINAL_PHASES.includes(pod.status.phase)) continue;
    const reported = [...pod.status.podIPs.map(({ ip }) => ip), ...networkStatusIps(object.annotations)];
    for (const ip of reported.map(parseIp))
      if (ip !== undefined) builder.usePodAddress(ip, `${object.namespace}/${object.name}`, object.place);
  }
}

const podSchema = z.object({
  spec: z.object({ hostNetwork: z.boolean().default(false) }).prefault({}),
  status: z
    .object({ phase: z.string().default(""), podIPs: z.array(z.object({ ip: z.string() })).default([]) })
    .prefault({}),
});

const networkStatus = z.array(z.object({ ips: z.array(z.string()).default([]) }));

/** Returns the addresses of all NICs, which Multus writes into an annotation. */
function networkStatusIps(annotations: Annotations): string[] {
  const value = parseQuietly(annotations["k8s.v1.cni.cncf.io/network-status"] ?? "[]");
  return networkStatus.safeParse(value).data?.flatMap(({ ips }) => ips) ?? [];
}

/** Returns the value; undefined if the text is no JSON. */
export function parseQuietly(text: string): unknown {
  return insteadOf(
    (error) => error instanceof JsonError,
    undefined,
    () => parseJson(text),
  );
}

/** Returns where the annotations for pods are; undefined for an object that makes no pods, or whose owner makes it. */
function annotationPath({ apiVersion, kind, owners, value }: PlacedObject): string[] | undefined {
  if (apiVersion === "v1" && kind === "Namespace") return ["metadata", "annotations"];
  const isMade = owners.length > 0 && ["Pod", "ReplicaSet", "Job"].includes(kind);
  if (isMade) return undefined;
  if (apiVersion === "v1" && kind === "Pod") return ["metadata", "annotations"];
  if (kind === "CronJob") return ["spec", "jobTemplate", "spec", "template", "metadata", "annotations"];
  const { spec } = value;
  return isJson(spec) && isJson(spec.template) ? ["spec", "template", "metadata", "annotations"] : undefined;
}

function annotationsAt(value: unknown, path: readonly string[]): Annotations {
  const found = path.reduce<unknown>((inner, key) => (isJson(inner) ? inner[key] : undefined), value);
  return textMap().safeParse(found).data ?? {};
}

function nest(path: readonly string[], value: object): object {
  return path.reduceRight<object>((inner, key) => ({ [key]: inner }), value);
}

/** Returns the annotations that Berth can read; the others are problems. */
function checked(
  own: Record<string, string>,
  { place, field }: AnnotationsToConvert,
  isNamespace: boolean,
): Record<string, string> {
  const decode = isNamespace ? decodeNamespaceAnnotations : decodePodAnnotations;
  return Object.fromEntries(
    Object.entries(own).filter(([key, text]) => {
      try {
        decode({ [key]: text }, ALLOW_SINGLE);
        return true;
      } catch (error) {
        if (!(error instanceof ConfigError)) throw error;
        place.addPhrase(
          "problem",
          `${field}["${key}"]`,
          error.got,
          `left out: Berth wants ${error.wanted} at "${error.path}"`,
        );
        return false;
      }
    }),
  );
}

const familyEntries = z.array(z.looseObject({ ipv4: z.unknown().optional(), ipv6: z.unknown().optional() }));

/** Berth refuses a pod whose annotation omits an enabled family. */
function reportSingleFamily(own: Record<string, string>, { place }: AnnotationsToConvert): void {
  for (const key of ["subnet", "subnets", "ippool", "ippools"].map((name) => ANNOTATION_PREFIX + name)) {
    const text = own[key];
    const entries = text === undefined ? [] : familyEntries.parse([parseQuietly(text)].flat());
    const isSingle = entries.some(({ ipv4, ipv6 }) => (ipv4 === undefined) !== (ipv6 === undefined));
    if (!isSingle) continue;
    const remedy = "unless vendor-conf has allowSingleFamily: true or disables the other family, the pod is refused";
    place.changed(key, text, `names one family: ${remedy}`);
  }
}

interface Renaming {
  readonly renamed: ReadonlySet<string>;
  readonly suffix: string;
}

/** Returns the annotations that select networks, with the names of the new definitions. */
function renameNetworks(
  object: PlacedObject,
  { annotations }: AnnotationsToConvert,
  { renamed, suffix }: Renaming,
): Record<string, string> {
  const home = { [NETWORKS_ANNOTATION]: object.namespace || "default", [DEFAULT_NETWORK_ANNOTATION]: "kube-system" };
  const changed = Object.entries(home).flatMap(([key, namespace]) => {
    const text = annotations[key];
    if (text === undefined) return [];
    const rename = (name: string, inNamespace: string | undefined) =>
      renamed.has(`${inNamespace ?? namespace}/${name}`) ? newNetworkName(name, suffix) : name;
    return [[key, /[[{"]/.test(text) ? renameInJson(text, rename) : renameInList(text, rename)] as const];
  });
  return Object.fromEntries(changed);
}

const machine = z.object({
  spec: z.object({ template: z.object({ spec: z.object({ networks: z.array(z.unknown()).default([]) }) }) }),
});
const secondNetwork = z.object({ multus: z.object({ networkName: z.string() }) });

/** A virtual machine names networks in its specification: KubeVirt writes the annotations of its pods. */
function reportMachine({ value, namespace, place }: PlacedObject, { renamed, suffix }: Renaming): void {
  for (const [at, network] of (machine.safeParse(value).data?.spec.template.spec.networks ?? []).entries()) {
    const name = secondNetwork.safeParse(network).data?.multus.networkName ?? "";
    const field = `spec.template.spec.networks[${at}].multus.networkName`;
    if (renamed.has(name.includes("/") ? name : `${namespace || "default"}/${name}`))
      place.changed(field, name, `no patch changes it: write ${newNetworkName(name, suffix)}`);
  }
}

type Rename = (name: string, namespace: string | undefined) => string;

/** `[namespace/]name[@interface]`, separated by commas. */
function renameInList(text: string, rename: Rename): string {
  return text.replace(
    /(?:([^/@,\s]+)\/)?([^/@,\s]+)(@[^/@,\s]+)?/g,
    (_, namespace: string | undefined, name: string, nic = "") => {
      const prefix = namespace === undefined ? "" : `${namespace}/`;
      return `${prefix}${rename(name, namespace)}${nic}`;
    },
  );
}

function renameInJson(text: string, rename: Rename): string {
  const list = parseQuietly(text);
  if (!Array.isArray(list)) return text;
  const renamed = list.map((entry: unknown) =>
    isJson(entry) && typeof entry.name === "string"
      ? { ...entry, name: rename(entry.name, typeof entry.namespace === "string" ? entry.namespace : undefined) }
      : entry,
  );
  return JSON.stringify(renamed) === JSON.stringify(list) ? text : JSON.stringify(renamed);
}
