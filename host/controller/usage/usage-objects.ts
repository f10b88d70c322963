/** The usage objects in the API server: reads all, writes one with preconditions, deletes those of deleted pools. */

import { createHash } from "node:crypto";
import { callIfThere, isOutdated, type KubeApi, type KubeObject } from "../../kubernetes/kube-api.ts";
import { listPages } from "../../kubernetes/list.ts";
import { keyOf } from "../../kubernetes/object-key.ts";
import { collectionPath, objectPath } from "../../kubernetes/paths.ts";
import { orElse } from "../../lib/try-or.ts";
import { IP_POOL_USAGES } from "../../resources/collections.ts";
import { decodeIpPoolUsage, encodeIpPoolUsage, type PoolUsage } from "../../resources/ip-pool-usage.ts";
import type { Counts } from "./plan-usage.ts";

/** Usage objects on one page of a list: each may have 90 KB. */
const USAGE_PAGE = 100;

const USAGES = collectionPath(IP_POOL_USAGES);
const pathOf = (name: string): string => objectPath(IP_POOL_USAGES, { name });

interface KnownUsage {
  readonly uid: string;
  readonly resourceVersion: string;
  /** Digest of owner and content; "" if it cannot be decoded. */
  readonly digest: string;
  readonly counts: Counts | undefined;
}

interface PoolName {
  readonly name: string;
  readonly uid: string;
}

export class UsageObjects {
  readonly #api: KubeApi;
  readonly #leading: AbortSignal;
  #known = new Map<string, KnownUsage>();

  constructor(api: KubeApi, leading: AbortSignal) {
    this.#api = api;
    this.#leading = leading;
  }

  get known(): ReadonlyMap<string, KnownUsage> {
    return this.#known;
  }

  async load(): Promise<void> {
    const found = new Map<string, KnownUsage>();
    const call = { path: USAGES, query: { limit: USAGE_PAGE }, signal: this.#leading };
    for await (const { items } of listPages(this.#api, call)) {
      for (const item of items) found.set(keyOf(item), knownOf(item));
    }
    this.#known = found;
  }

  /** Returns whether the object already has this content. */
  isWritten(pool: PoolName, usage: PoolUsage): boolean {
    return this.#known.get(pool.name)?.digest === digestOf(pool.uid, usage);
  }

  /** Returns false if another writer was faster; then the object is read again, and the caller compares again. */
  async write({ name, uid }: PoolName, usage: PoolUsage): Promise<boolean> {
    const known = this.#known.get(name);
    const precondition = known && { uid: known.uid, resourceVersion: known.resourceVersion };
    const body = encodeIpPoolUsage(usage, { name, poolUid: uid, ...precondition });
    const [method, path] = known === undefined ? (["POST", USAGES] as const) : (["PUT", pathOf(name)] as const);
    const call = { method, path, body, signal: this.#leading };
    const written = await this.#api.call(call).catch(orElse(isOutdated, undefined));
    if (written === undefined) await this.#read(name);
    else this.#known.set(name, knownOf(written));
    return written !== undefined;
  }

  async drop(name: string): Promise<void> {
    const known = this.#known.get(name);
    if (known === undefined) return;
    const preconditions = { uid: known.uid, resourceVersion: known.resourceVersion };
    const body = { apiVersion: "v1", kind: "DeleteOptions", preconditions };
    const call = { method: "DELETE", path: pathOf(name), body, signal: this.#leading } as const;
    if ((await this.#api.call(call).catch(orElse(isOutdated, undefined))) === undefined) await this.#read(name);
    else this.#known.delete(name);
  }

  async #read(name: string): Promise<void> {
    const found = await callIfThere(this.#api, { method: "GET", path: pathOf(name), signal: this.#leading });
    if (found === undefined) this.#known.delete(name);
    else this.#known.set(name, knownOf(found));
  }
}

/** An object that cannot be decoded is overwritten. */
function knownOf(object: KubeObject): KnownUsage {
  try {
    const { uid, resourceVersion, poolUid, usage } = decodeIpPoolUsage(object, "API server");
    return { uid, resourceVersion, digest: digestOf(poolUid, usage), counts: countsOf(usage) };
  } catch {
    const { uid = "", resourceVersion = "" }: { uid?: unknown; resourceVersion?: unknown } =
      typeof object.metadata === "object" && object.metadata !== null ? { ...object.metadata } : {};
    return { uid: String(uid), resourceVersion: String(resourceVersion), digest: "", counts: undefined };
  }
}

function countsOf({ total, free }: PoolUsage): Counts {
  return { total, used: total - free };
}

/** Lists the keys in a fixed order. */
function digestOf(poolUid: string, usage: PoolUsage): string {
  const { bitmap, freePerBlock, rangesHash, total, free, bound, cooling, kept, quarantined, outside, others } = usage;
  const counts = [poolUid, rangesHash, total, free, bound, cooling, kept, quarantined, outside, others];
  const hash = createHash("sha256").update(JSON.stringify([...counts, freePerBlock ?? null]));
  return hash
    .update(bitmap === undefined ? "-" : "+")
    .update(bitmap ?? "")
    .digest("hex");
}
