/**
 * What the cluster remembers of its ranges, in one ConfigMap. The version of the map decides between two controllers.
 */
import { ConfigError } from "../../../host/config/config-error.ts";
import { callIfThere, isConflict, type KubeApi, type KubeObject } from "../../../host/kubernetes/kube-api.ts";
import { CONFIG_MAPS, objectPath } from "../../../host/kubernetes/paths.ts";
import { newOwnRange, type OwnRange, parseOwnRange } from "./own-range.ts";

/**
 * Name of the ConfigMap, in the namespace of `vendor-conf`. The chart makes it: a lost one is not taken for a new one.
 */
export const RANGES_MAP = "berth-address-ranges";

interface Known<T> {
  readonly own: T;
  /** The map as it was read. */
  readonly map: KubeObject;
}

/** How the keys of prefixes of an IPAM of record begin: no name of an AddressRange has it. */
export const PREFIX_KEY = "prefix_";

/** How what is remembered is written. */
interface Memory<T> {
  /** Before the first write. */
  readonly fresh: T;
  /** Throws ConfigError. */
  readonly parse: (text: string, source: string) => T;
}

const RANGES: Memory<OwnRange> = { fresh: newOwnRange(""), parse: parseOwnRange };

/** Of each range, or of each prefix of a server of record. */
export class OwnRanges<T = OwnRange> {
  readonly #api: Pick<KubeApi, "call">;
  readonly #path: string;
  readonly #memory: Memory<T>;

  constructor(api: Pick<KubeApi, "call">, namespace: string, memory = RANGES as Memory<T>) {
    this.#api = api;
    this.#memory = memory;
    this.#path = objectPath(CONFIG_MAPS, { namespace, name: RANGES_MAP });
  }

  /** Returns the names of the ranges in which the cluster has blocks, as far as can be read. */
  async held(signal: AbortSignal): Promise<readonly string[]> {
    const map = await callIfThere(this.#api, { method: "GET", path: this.#path, signal });
    return Object.entries((map?.data ?? {}) as Readonly<Record<string, string>>).flatMap(([range, text]) => {
      if (range.startsWith(PREFIX_KEY)) return [];
      try {
        const { blocks, disputed } = parseOwnRange(text, RANGES_MAP);
        return Object.keys({ ...blocks, ...disputed }).length === 0 ? [] : [range];
      } catch (error) {
        if (error instanceof ConfigError) return [range];
        throw error;
      }
    });
  }

  /** Begins to remember the range if nothing is known of it. Throws ConfigError for what cannot be read. */
  async read(range: string, signal: AbortSignal): Promise<Known<T>> {
    const map = await this.#api.call({ method: "GET", path: this.#path, signal });
    const text = textOf(map, range);
    if (text !== undefined) return { own: this.#memory.parse(text, `ConfigMap ${RANGES_MAP}, ${range}`), map };
    return this.write(range, { own: this.#memory.fresh, map }, signal);
  }

  /** Rejects with a conflict if another process has written about the range meanwhile. */
  async write(range: string, { own, map }: Known<T>, signal: AbortSignal): Promise<Known<T>> {
    const { uid, resourceVersion } = metaOf(map);
    const body = { metadata: { uid, resourceVersion }, data: { [range]: JSON.stringify(own) } };
    try {
      return { own, map: await this.#api.call({ method: "PATCH", path: this.#path, body, signal }) };
    } catch (error) {
      if (!isConflict(error)) throw error;
      const now = await this.#api.call({ method: "GET", path: this.#path, signal });
      const isOfOthers = metaOf(now).uid === uid && metaOf(now).resourceVersion !== resourceVersion;
      if (!isOfOthers || textOf(now, range) !== textOf(map, range)) throw error;
      return this.write(range, { own, map: now }, signal);
    }
  }
}

function metaOf({ metadata }: KubeObject): Readonly<Record<string, string>> {
  return metadata as Readonly<Record<string, string>>;
}

function textOf({ data }: KubeObject, range: string): string | undefined {
  return (data as Readonly<Record<string, string>> | undefined)?.[range];
}
