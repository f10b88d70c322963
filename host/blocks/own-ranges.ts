/**
 * What the cluster remembers of its ranges, in one ConfigMap. The version of the map decides between two controllers.
 */
import type { KubeApi, KubeObject } from "../kubernetes/kube-api.ts";
import { CONFIG_MAPS, objectPath } from "../kubernetes/paths.ts";
import { newOwnRange, type OwnRange, parseOwnRange } from "./own-range.ts";

/**
 * Name of the ConfigMap, in the namespace of `vendor-conf`. The chart makes it: a lost one is not taken for a new one.
 */
export const RANGES_MAP = "berth-address-ranges";

interface Known {
  readonly own: OwnRange;
  /** The map as it was read. */
  readonly map: KubeObject;
}

export class OwnRanges {
  readonly #api: Pick<KubeApi, "call">;
  readonly #path: string;

  constructor(api: Pick<KubeApi, "call">, namespace: string) {
    this.#api = api;
    this.#path = objectPath(CONFIG_MAPS, { namespace, name: RANGES_MAP });
  }

  /** Begins to remember the range if nothing is known of it. Throws ConfigError for what cannot be read. */
  async read(range: string, signal: AbortSignal): Promise<Known> {
    const map = await this.#api.call({ method: "GET", path: this.#path, signal });
    const text = (map.data as Readonly<Record<string, string>> | undefined)?.[range];
    if (text !== undefined) return { own: parseOwnRange(text, `ConfigMap ${RANGES_MAP}, ${range}`), map };
    return this.write(range, { own: newOwnRange(""), map }, signal);
  }

  /** Rejects with a conflict if another process has written meanwhile. */
  async write(range: string, { own, map }: Known, signal: AbortSignal): Promise<Known> {
    const { uid, resourceVersion } = map.metadata as Readonly<Record<string, string>>;
    const body = { metadata: { uid, resourceVersion }, data: { [range]: JSON.stringify(own) } };
    return { own, map: await this.#api.call({ method: "PATCH", path: this.#path, body, signal }) };
  }
}
