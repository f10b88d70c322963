/**
 * The cluster's memory of its ranges and prefixes, in one ConfigMap. The version of the map decides between two
 * controllers.
 */
import { isConfigError } from "../../../host/config/config-error.ts";
import { callIfThere, isConflict, type KubeApi, type KubeObject } from "../../../host/kubernetes/kube-api.ts";
import { CONFIG_MAPS, objectPath } from "../../../host/kubernetes/paths.ts";
import { insteadOf } from "../../../host/lib/try-or.ts";
import { NO_LEASES, type OwnLeases, parseOwnLeases } from "./own-leases.ts";

/**
 * Name of the ConfigMap, in the namespace of `vendor-conf`. The chart makes it: a lost one is not taken for a new one.
 */
export const RANGES_MAP = "berth-address-ranges";

/** Most tries to write while others write about other ranges. */
const MAX_TRIES = 8;

interface Known {
  readonly own: OwnLeases;
  /** The map as it was read. */
  readonly map: KubeObject;
}

/** The leases of a range are under its name, those of a prefix under a key with an underscore, which no name has. */
export class OwnRanges {
  readonly #api: Pick<KubeApi, "call">;
  readonly #path: string;

  constructor(api: Pick<KubeApi, "call">, namespace: string) {
    this.#api = api;
    this.#path = objectPath(CONFIG_MAPS, { namespace, name: RANGES_MAP });
  }

  /** Returns the names of the ranges in which the cluster has blocks, as far as can be read. */
  async held(signal: AbortSignal): Promise<readonly string[]> {
    const map = await callIfThere(this.#api, { method: "GET", path: this.#path, signal });
    return Object.entries((map?.data ?? {}) as Readonly<Record<string, string>>).flatMap(([range, text]) => {
      if (range.includes("_")) return [];
      const isLeased = () => Object.keys(parseOwnLeases(text, RANGES_MAP).leases).length > 0;
      return insteadOf(isConfigError, true, isLeased) ? [range] : [];
    });
  }

  /** Starts the memory of an unknown range. Throws ConfigError for an unreadable one. */
  async read(key: string, signal: AbortSignal): Promise<Known> {
    const map = await this.#api.call({ method: "GET", path: this.#path, signal });
    const text = textOf(map, key);
    if (text !== undefined) return { own: parseOwnLeases(text, `ConfigMap ${RANGES_MAP}, ${key}`), map };
    return this.write(key, { own: NO_LEASES, map }, signal);
  }

  /** Rejects with a conflict if another process has written about the range meanwhile. */
  async write(key: string, { own, map }: Known, signal: AbortSignal, tries = MAX_TRIES): Promise<Known> {
    const { uid, resourceVersion } = metaOf(map);
    const body = { metadata: { uid, resourceVersion }, data: { [key]: JSON.stringify(own) } };
    try {
      return { own, map: await this.#api.call({ method: "PATCH", path: this.#path, body, signal }) };
    } catch (error) {
      if (!isConflict(error) || tries === 1) throw error;
      const now = await this.#api.call({ method: "GET", path: this.#path, signal });
      const isOfOthers = metaOf(now).uid === uid && metaOf(now).resourceVersion !== resourceVersion;
      if (!isOfOthers || textOf(now, key) !== textOf(map, key)) throw error;
      return this.write(key, { own, map: now }, signal, tries - 1);
    }
  }
}

function metaOf({ metadata }: KubeObject): Readonly<Record<string, string>> {
  return metadata as Readonly<Record<string, string>>;
}

function textOf({ data }: KubeObject, key: string): string | undefined {
  return (data as Readonly<Record<string, string>> | undefined)?.[key];
}
