/**
 * Finds the workload that owns the generated pools of a pod: its controller, or the controller of that, as far as one
 * lookup shows (docs/develop/subnets.md, "Which workload owns a pool"). Lookups of ReplicaSets and Jobs are cached.
 */
import * as z from "zod";
import { CniError, ErrorCode } from "../../cni/error.ts";
import { decodeConfig } from "../../config/config-error.ts";
import type { Belonging } from "../../ipam/model.ts";
import { aboveOf, type MiddleKind, middleKindOf } from "../../ipam/owner.ts";
import { isNotFound, type KubeApi, type KubeObject, METADATA } from "../../kubernetes/kube-api.ts";
import { untilAborted } from "../../lib/abort.ts";
import { BoundedMap } from "../../lib/bounded-map.ts";
import { messageOf } from "../../lib/describe.ts";
import { metadata, type OwnerReference } from "../../resources/fields/metadata.ts";
import { poolOwnerKey } from "../../resources/fields/subnet-pool.ts";
import type { Pod } from "../../resources/pod.ts";
import type { Snapshot } from "../../resources/snapshot.ts";
import { POD_READ_PATIENCE_MS } from "../request/add-deadline.ts";

/** Most ReplicaSets and Jobs whose controllers an agent caches. */
export const MAX_KNOWN_OWNERS = 1_024;

interface PoolOwnersDeps {
  readonly api: KubeApi;
  readonly resources: { readonly snapshot: Pick<Snapshot, "vendorConf"> };
}

const schema = z.object({ metadata });

export class PoolOwners {
  readonly #deps: PoolOwnersDeps;
  /** By namespace and UID of the pods' controller, whose pods share the lookup. */
  readonly #lookups = new BoundedMap<string, Promise<OwnerReference>>(MAX_KNOWN_OWNERS);

  constructor(deps: PoolOwnersDeps) {
    this.#deps = deps;
  }

  /** Of a pod that names Subnets. Rejects with CniError 11 when the API server does not answer in time. */
  async find(pod: Pod, signal: AbortSignal): Promise<Belonging> {
    const { namespace, name: podName, controller: owner } = pod;
    if (!this.#deps.resources.snapshot.vendorConf.enableSubnet)
      return none("enableSubnet was false when the owner was looked up");
    if (owner === undefined) return none(`pod "${namespace}/${podName}" has no controller`);
    if (owner.kind === "Node") return none(`the controller of pod "${namespace}/${podName}" is Node "${owner.name}"`);
    const middle = middleKindOf(owner);
    const top = middle === undefined ? owner : await this.#topOf(namespace, owner, middle, signal);
    const { apiVersion, kind, name, uid } = top;
    return { kind: "application", application: { apiVersion, kind, namespace, name, uid } };
  }

  /** Looks all up anew: a workload got no pool, and its ReplicaSet may have been adopted by another one since. */
  forget(): void {
    this.#lookups.clear();
  }

  async #topOf(
    namespace: string,
    owner: OwnerReference,
    middle: MiddleKind,
    signal: AbortSignal,
  ): Promise<OwnerReference> {
    signal.throwIfAborted();
    const known = this.#lookups.get(poolOwnerKey({ namespace, uid: owner.uid }));
    return untilAborted(known ?? this.#lookUp(namespace, owner, middle), signal);
  }

  /** A failed lookup is not cached. */
  #lookUp(namespace: string, owner: OwnerReference, middle: MiddleKind): Promise<OwnerReference> {
    const found = readTop(this.#deps.api, namespace, owner, middle);
    const key = poolOwnerKey({ namespace, uid: owner.uid });
    this.#lookups.set(key, found);
    found.catch(() => this.#lookups.delete(key));
    return found;
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
    const why = isNotFound(error) ? "it does not exist any more" : `it cannot be read: ${messageOf(error)}`;
    throw unknown(source, why, error);
  }
  const found = decodeConfig(schema, object, source).metadata;
  if (found.uid !== uid) throw unknown(source, `another one of its name exists, with UID ${found.uid}`);
  return aboveOf(middle, found) ?? owner;
}

function unknown(source: string, why: string, cause?: unknown): CniError {
  const text = `The workload that owns ${source} and its pods is unknown: ${why}`;
  return new CniError(ErrorCode.TryAgainLater, text, cause === undefined ? {} : { cause });
}

function none(reason: string): Belonging {
  return { kind: "none", reason };
}
