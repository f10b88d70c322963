/**
 * Which workload a pod belongs to: its controller, or what controls that, as far as one lookup tells (docs/subnets.md, "Whose pool it is").
 * Effects: one GET for each ReplicaSet and Job, whose answer is remembered.
 */

import { z } from "zod";
import { CniError, ErrorCode } from "../../cni/error.ts";
import type { PodAnnotations } from "../../config/annotations.ts";
import { decodeConfig } from "../../config/config-error.ts";
import type { Belonging } from "../../ipam/model.ts";
import { aboveOf, controllerOf, type MiddleKind, middleKindOf } from "../../ipam/owner.ts";
import { isNotFound, type KubeApi, type KubeObject, METADATA } from "../../kubernetes/kube-api.ts";
import { messageOf } from "../../lib/describe.ts";
import { metadata, type OwnerReference } from "../../resources/fields/metadata.ts";
import { type PoolOwner, poolOwnerKey } from "../../resources/fields/subnet-pool.ts";
import type { Pod } from "../../resources/pod.ts";
import type { Snapshot } from "../../resources/snapshot.ts";
import { POD_READ_PATIENCE_MS } from "../add-deadline.ts";

/** Most ReplicaSets and Jobs of which an agent remembers what they belong to. @limit */
export const MAX_KNOWN_OWNERS = 1_024;

interface PoolOwnersDeps {
  readonly api: KubeApi;
  readonly snapshot: () => Pick<Snapshot, "vendorConf">;
}

/** One lookup, for all who want to know. */
interface Lookup {
  readonly told: Promise<OwnerReference>;
  /** UID of what was found; undefined until then. */
  top: string | undefined;
}

const schema = z.object({ metadata });

export class PoolOwners {
  readonly #tools: PoolOwnersDeps;
  /** By namespace and UID of the pods' controller, the one asked for longest ago first. */
  readonly #lookups = new Map<string, Lookup>();

  constructor(tools: PoolOwnersDeps) {
    this.#tools = tools;
  }

  /** Undefined for a pod that names no Subnets. Rejects with CniError 11 when the API server does not tell in time. */
  async find(pod: Pod, { subnet, subnets }: PodAnnotations, signal: AbortSignal): Promise<Belonging | undefined> {
    if (subnet === undefined && subnets === undefined) return undefined;
    const { namespace, name: podName } = pod;
    if (!this.#tools.snapshot().vendorConf.enableSubnet) return none("enableSubnet was false when it was looked for");
    const owner = controllerOf(pod);
    if (owner === undefined) return none(`pod "${namespace}/${podName}" has no controller`);
    if (owner.kind === "Node") return none(`the controller of pod "${namespace}/${podName}" is Node "${owner.name}"`);
    const middle = middleKindOf(owner);
    const top = middle === undefined ? owner : await this.#topOf(namespace, owner, middle, signal);
    const { apiVersion, kind, name, uid } = top;
    return { kind: "application", application: { apiVersion, kind, namespace, name, uid } };
  }

  /** The application has led nowhere. Who belongs to it is looked up anew: a ReplicaSet may have been adopted since. */
  forget({ uid }: Pick<PoolOwner, "uid">): void {
    for (const [owner, { top }] of this.#lookups) if (top === uid) this.#lookups.delete(owner);
  }

  async #topOf(
    namespace: string,
    owner: OwnerReference,
    middle: MiddleKind,
    signal: AbortSignal,
  ): Promise<OwnerReference> {
    signal.throwIfAborted();
    const { told } =
      this.#lookups.get(poolOwnerKey({ namespace, uid: owner.uid })) ?? this.#lookUp(namespace, owner, middle);
    const given = Promise.withResolvers<never>();
    const giveUp = (): void => given.reject(signal.reason);
    signal.addEventListener("abort", giveUp, { once: true });
    try {
      return await Promise.race([told, given.promise]);
    } finally {
      signal.removeEventListener("abort", giveUp);
    }
  }

  /** What failed is not remembered. */
  #lookUp(namespace: string, owner: OwnerReference, middle: MiddleKind): Lookup {
    const lookup: Lookup = { told: readTop(this.#tools.api, namespace, owner, middle), top: undefined };
    const key = poolOwnerKey({ namespace, uid: owner.uid });
    this.#lookups.set(key, lookup);
    const note = ({ uid }: OwnerReference): void => {
      lookup.top = uid;
    };
    lookup.told.then(note, () => {
      if (this.#lookups.get(key) === lookup) this.#lookups.delete(key);
    });
    for (const oldest of this.#lookups.keys()) {
      if (this.#lookups.size <= MAX_KNOWN_OWNERS) break;
      this.#lookups.delete(oldest);
    }
    return lookup;
  }
}

async function readTop(
  api: KubeApi,
  namespace: string,
  owner: OwnerReference,
  middle: MiddleKind,
): Promise<OwnerReference> {
  const { apiVersion, kind, name, uid } = owner;
  const plural = `${kind.toLowerCase()}s`;
  const place = `/apis/${apiVersion}/namespaces/${encodeURIComponent(namespace)}/${plural}/${encodeURIComponent(name)}`;
  const source = `${kind} "${namespace}/${name}"`;
  let object: KubeObject;
  try {
    const call = { method: "GET", path: place, accept: METADATA, lane: "pod" } as const;
    object = await api.call({ ...call, patienceMs: POD_READ_PATIENCE_MS });
  } catch (error) {
    const why = isNotFound(error) ? "it does not exist any more" : `it cannot be asked for: ${messageOf(error)}`;
    throw unknown(source, why, error);
  }
  const found = decodeConfig(schema, object, source).metadata;
  if (found.uid !== uid) throw unknown(source, `there is another one of its name, with UID ${found.uid}`);
  return aboveOf(middle, found) ?? owner;
}

function unknown(source: string, why: string, cause?: unknown): CniError {
  const text = `To which workload ${source} and its pods belong is unknown: ${why}`;
  return new CniError(ErrorCode.TryAgainLater, text, cause === undefined ? {} : { cause });
}

function none(reason: string): Belonging {
  return { kind: "none", reason };
}
