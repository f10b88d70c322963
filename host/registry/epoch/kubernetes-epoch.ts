/**
 * Epochs of a cluster's registry: in a ConfigMap that every agent watches, and this node's mark as an annotation of its
 * Node. Which instance of the registry it is, the UIDs of the definitions say.
 */
import * as z from "zod";
import { callIfThere, isConflict, type KubeApi, METADATA_LIST } from "../../kubernetes/kube-api.ts";
import { listPages } from "../../kubernetes/list.ts";
import { CONFIG_MAPS, collectionPath, NODES, objectPath, type Resource } from "../../kubernetes/paths.ts";
import { orElse } from "../../lib/try-or.ts";
import {
  decodeEpochRecord,
  EPOCH_ANNOTATION,
  EPOCH_MAP,
  type EpochCause,
  type EpochRecord,
  encodeEpoch,
  formatMark,
} from "../../resources/registry-epoch.ts";
import type { EpochPort } from "./registry-epoch.ts";

export const DEFINITIONS: Resource = { apiVersion: "apiextensions.k8s.io/v1", plural: "customresourcedefinitions" };

/** The kinds without whose objects addresses seem to be free. Pools and Subnets stay while something uses them. */
export const REGISTRY_KINDS = ["ipallocations.ipam.vendor.io", "reservedips.ipam.vendor.io"] as const;

/** First claims wait for all calls. A write may take as long as an admission webhook keeps it. */
const WRITE_TERMS = { lane: "pod" } as const;
/** Of reads: the next attempt reads everything anew. */
const TERMS = { ...WRITE_TERMS, patienceMs: 5_000 } as const;

const definition = z.object({
  metadata: z.object({
    uid: z.string(),
    creationTimestamp: z.string().optional(),
    deletionTimestamp: z.string().nullish(),
  }),
});

/** Age below which a kind may have been made anew over running pods, whose records are gone then: milliseconds. */
const YOUNG_MS = 600_000;

function isYoung(object: unknown, now: Date): boolean {
  const created = definition.safeParse(object).data?.metadata.creationTimestamp;
  return created !== undefined && now.getTime() - Date.parse(created) < YOUNG_MS;
}

/** Returns the UID of the definition; "" if there is none, or it is about to go with all of its objects. */
export function readDefinition(object: unknown): string {
  const { data } = definition.safeParse(object);
  return data === undefined || data.metadata.deletionTimestamp != null ? "" : data.metadata.uid;
}

/** Returns an epoch's definition out of the UIDs in the order of {@link REGISTRY_KINDS}; "" if one is absent. */
export function joinDefinitions(uids: readonly string[]): string {
  return uids.includes("") ? "" : uids.join(" ");
}

interface KubernetesEpochOptions {
  readonly api: KubeApi;
  readonly configNamespace: string;
  /** This node's name; undefined for the controller, which marks nothing. */
  readonly node?: string;
  readonly newEpoch: () => string;
}

export class KubernetesEpoch implements EpochPort {
  readonly #options: KubernetesEpochOptions;
  readonly #path: string;

  constructor(options: KubernetesEpochOptions) {
    this.#options = options;
    this.#path = objectPath(CONFIG_MAPS, { namespace: options.configNamespace, name: EPOCH_MAP });
  }

  async begin(known: ReadonlySet<string>, cause: EpochCause): Promise<EpochRecord | undefined> {
    for (;;) {
      const found = await this.read();
      if (found === undefined) return undefined;
      const definition = await this.#readDefinitions();
      const isTaken = found.epoch !== "" && found.definition === definition;
      if (isTaken && !(cause === "history" && known.has(found.epoch))) return found;
      const epoch = this.#options.newEpoch();
      const isEmpty = cause === "first" && found.epoch === "";
      // The map was emptied: the controller makes it again.
      if (isEmpty && (await this.#hasMarks())) return undefined;
      const begun = { ...found, epoch, cause, definition, waitsFor: "", settled: isEmpty ? epoch : found.settled };
      const written = await this.write(begun).catch(orElse(isConflict, undefined));
      if (written !== undefined) return written;
    }
  }

  /** Makes the ConfigMap unless it is there. Returns it. */
  async make(signal: AbortSignal): Promise<EpochRecord> {
    const { api, configNamespace: namespace } = this.#options;
    const body = { apiVersion: "v1", kind: "ConfigMap", metadata: { namespace, name: EPOCH_MAP } };
    const path = collectionPath(CONFIG_MAPS, namespace);
    const found = await this.read();
    return found ?? decodeEpochRecord(await api.call({ method: "POST", path, body, signal }), EPOCH_MAP);
  }

  /**
   * Says that all nodes have written for the epoch, with the definitions as they are, unless one is young or away.
   * Returns whether it has.
   */
  async settle(
    found: EpochRecord,
    epoch: string,
    { now, signal }: { now: Date; signal: AbortSignal },
  ): Promise<boolean> {
    const objects = await this.#readObjects();
    const definition = joinDefinitions(objects.map(readDefinition));
    if (definition === "" || objects.some((object) => isYoung(object, now))) return false;
    await this.write({ ...found, epoch, settled: epoch, definition }, signal);
    return true;
  }

  /** Writes the record over the version that it was read in. Rejects with a conflict if it has changed since. */
  async write(record: EpochRecord, signal?: AbortSignal): Promise<EpochRecord> {
    const metadata = { resourceVersion: record.resourceVersion, uid: record.uid };
    const body = { metadata, data: encodeEpoch(record) };
    const call = { ...WRITE_TERMS, method: "PATCH", path: this.#path, body, ...(signal && { signal }) } as const;
    return decodeEpochRecord(await this.#options.api.call(call), EPOCH_MAP);
  }

  async mark(epoch: string, isSettled: boolean): Promise<void> {
    const { api, node } = this.#options;
    if (node === undefined) return;
    const body = { metadata: { annotations: { [EPOCH_ANNOTATION]: formatMark(epoch, isSettled) } } };
    await api.call({ ...WRITE_TERMS, method: "PATCH", path: objectPath(NODES, { name: node }), body });
  }

  async read(): Promise<EpochRecord | undefined> {
    const found = await callIfThere(this.#options.api, { ...TERMS, method: "GET", path: this.#path });
    return found && decodeEpochRecord(found, EPOCH_MAP);
  }

  async #readDefinitions(): Promise<string> {
    return joinDefinitions((await this.#readObjects()).map(readDefinition));
  }

  /** In the order of {@link REGISTRY_KINDS}; undefined: it is away. */
  #readObjects(): Promise<unknown[]> {
    return Promise.all(REGISTRY_KINDS.map((name) => this.#readObject(name)));
  }

  /** Agents may list it, and read nothing of it by name. */
  async #readObject(name: string): Promise<unknown> {
    const query = { fieldSelector: `metadata.name=${name}` };
    const call = { ...TERMS, path: collectionPath(DEFINITIONS), query, accept: METADATA_LIST };
    for await (const { items } of listPages(this.#options.api, call)) for (const item of items) return item;
    return undefined;
  }

  /** Whether the agent of any node has ever marked an epoch: then a registry without one is not new. */
  async #hasMarks(): Promise<boolean> {
    const call = { ...TERMS, path: collectionPath(NODES), accept: METADATA_LIST };
    for await (const { items } of listPages(this.#options.api, call))
      if (items.some((node) => marked.safeParse(node).success)) return true;
    return false;
  }
}

const marked = z.object({ metadata: z.object({ annotations: z.object({ [EPOCH_ANNOTATION]: z.string() }) }) });
