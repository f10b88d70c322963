/** Workloads as the API server gives them, their pods on Subnets, and the controller's part of them. */
import { POOL_OWNER_KINDS, readPod } from "../../../../host/controller/owners/pool-owner-kinds.ts";
import type { TrackedObject } from "../../../../host/controller/owners/tracked-object.ts";
import type { DemandSettings } from "../../../../host/controller/types.ts";
import type { KubeObject } from "../../../../host/kubernetes/kube-api.ts";

export const SETTINGS: DemandSettings = {
  ...{ enableIPv4: true, enableIPv6: false, allowSingleFamily: false, firstNic: "eth0" },
};

export interface Owner {
  readonly kind: string;
  readonly apiVersion?: string;
  readonly name?: string;
  readonly uid?: string;
  readonly controller?: boolean;
}

export interface Wanted {
  readonly name?: string;
  readonly uid?: string;
  /** A key without a slash gets Berth's prefix; a value that is no text becomes JSON. Default: the Subnet "blue". */
  readonly annotations?: Readonly<Record<string, unknown>>;
  /** Annotations of the object itself, as they are. */
  readonly own?: Readonly<Record<string, string>>;
  readonly owner?: Owner;
  readonly generation?: number;
  readonly created?: string;
  readonly metadata?: object;
  readonly spec?: object;
  readonly podSpec?: object;
  readonly status?: object;
}

export const BLUE = { subnet: { ipv4: ["blue"] } };

export function annotationsOf(annotations: Readonly<Record<string, unknown>>): Record<string, string> {
  const texts = Object.entries(annotations).map(([key, value]) => [
    key.includes("/") ? key : `ipam.vendor.io/${key}`,
    typeof value === "string" ? value : JSON.stringify(value),
  ]);
  return Object.fromEntries(texts);
}

function metadataOf(wanted: Wanted): object {
  const { name = "web", uid = `uid-${name}`, owner, generation = 1, created = "2026-01-01T00:00:00Z" } = wanted;
  const given = owner && { ...{ apiVersion: "apps/v1", name: "top", uid: "uid-top", controller: true }, ...owner };
  return {
    ...{ namespace: "shop", name, uid, generation, creationTimestamp: created, resourceVersion: "7" },
    ...{ annotations: wanted.own ?? {}, ownerReferences: given === undefined ? [] : [given], ...wanted.metadata },
  };
}

/** With a pod template. */
export function workload(kind: string, wanted: Wanted = {}): KubeObject {
  const { annotations = BLUE, spec = {}, podSpec = {}, status } = wanted;
  const template = { metadata: { annotations: annotationsOf(annotations) }, spec: podSpec };
  const inner = kind === "CronJob" ? { jobTemplate: { spec: { template, ...jobSpecOf(spec) } } } : { template };
  return { kind, metadata: metadataOf(wanted), spec: { ...spec, ...inner }, status };
}

/** In the specs of these tests a CronJob's parallelism stands where a Job's does. */
function jobSpecOf(spec: object): object {
  const { suspend: _, ...job } = spec as { readonly suspend?: boolean };
  return job;
}

export function pod(wanted: Wanted): KubeObject {
  const { annotations = BLUE } = wanted;
  return { metadata: metadataOf({ own: annotationsOf(annotations), ...wanted }) };
}

/** As the watch would keep it. Throws when the kind is not followed. */
export function track(kind: string, wanted: Wanted = {}, before?: TrackedObject): TrackedObject | undefined {
  if (kind === "Pod") return readPod(pod(wanted), "pod");
  const found = POOL_OWNER_KINDS.find((each) => each.kind === kind);
  if (found === undefined) throw new Error(`${kind} is not followed`);
  return found.read(workload(kind, wanted), kind, before);
}

export function requireTracked(kind: string, wanted: Wanted = {}, before?: TrackedObject): TrackedObject {
  const tracked = track(kind, wanted, before);
  if (tracked === undefined) throw new Error(`This ${kind} is passed over`);
  return tracked;
}
