/**
 * An API server whose history may have gone back, as after a restore of etcd: compares its versions with the highest
 * that it has answered with. A list and a create are consistent: one whose answer has a version below the one known
 * when it was sent comes from another history. A list that may come from a cache only raises the suspicion, which one
 * consistent read confirms. All versions are of one etcd (events may have their own: none is read here).
 */
import type { KubeApi, KubeCall, KubeObject, KubeWatch } from "../../kubernetes/kube-api.ts";
import { isVersion, versionOf } from "../../kubernetes/mirror.ts";

interface HistoryOptions {
  /** Path of the collection whose lists and creates are consistent. */
  readonly trusted: string;
  /** The highest version as last known. */
  readonly known: { version: bigint };
  /** Called before the answer is passed on. */
  readonly onWentBack: () => void;
}

export class HistoryApi implements KubeApi {
  readonly #api: KubeApi;
  readonly #options: HistoryOptions;
  /** Whether the server may have gone back, and is being asked. */
  confirming: Promise<unknown> | undefined;

  constructor(api: KubeApi, options: HistoryOptions) {
    this.#api = api;
    this.#options = options;
  }

  async call(call: KubeCall): Promise<KubeObject> {
    const { method, path, query } = call;
    const isTrusted = path === this.#options.trusted;
    const isCreate = method === "POST" && isTrusted;
    // Later pages are as old as the first.
    const isList = method === "GET" && (isTrusted || query?.limit !== undefined) && query?.continue === undefined;
    if (!isCreate && !isList) return this.#api.call(call);
    const before = this.#options.known.version;
    const answer = await this.#api.call(call);
    const version = readVersion(answer);
    if (version >= before) this.#note(version);
    else if (isTrusted && version > 0n) this.#goBack(version, before);
    else if (version > 0n) this.#confirm();
    return answer;
  }

  watch(watch: KubeWatch): Promise<void> {
    const onEvent: KubeWatch["onEvent"] = (event) => {
      this.#note(readVersion(event.object));
      watch.onEvent(event);
    };
    return this.#api.watch({ ...watch, onEvent });
  }

  #note(version: bigint): void {
    const { known } = this.#options;
    if (version > known.version) known.version = version;
  }

  /** The first of several answers from the other history tells. */
  #goBack(version: bigint, before: bigint): void {
    const { known, onWentBack } = this.#options;
    if (known.version < before) return;
    known.version = version;
    onWentBack();
  }

  /** Reads a state that cannot be stale. Without an answer the next list asks again. */
  #confirm(): void {
    const path = this.#options.trusted;
    this.confirming ??= this.call({ method: "GET", path, query: { limit: 1 }, lane: "pod" })
      .catch(() => {})
      .finally(() => {
        this.confirming = undefined;
      });
  }
}

/** Returns 0 if the answer has none. */
function readVersion(answer: KubeObject): bigint {
  const version = versionOf(answer) ?? "";
  return isVersion(version) ? BigInt(version) : 0n;
}
