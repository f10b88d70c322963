/** A way to the API server that notes what it is asked, and where a test can stand between: in this process, beside one agent or controller. */
import type { KubeApi, KubeCall, KubeObject, KubeWatch } from "../../../host/kubernetes/kube-api.ts";

/** Calls by verb and resource, bytes and events of watches. */
export interface ApiUse {
  /** `POST ipallocations` → how often. A call that was tried again counts once. */
  readonly calls: ReadonlyMap<string, number>;
  readonly watchBytes: number;
  readonly watchEvents: number;
}

export class WatchedApi implements KubeApi {
  /** `POST ipallocations`, `GET ipallocations/10.6.0.1`, in the order in which they were made; without watches. */
  readonly calls: string[] = [];
  readonly #counts = new Map<string, number>();
  readonly use = { calls: this.#counts, watchBytes: 0, watchEvents: 0 };
  /** Called before a call; what it throws is the answer. */
  before: (call: KubeCall) => Promise<void> = async () => {};
  /** Called after a call that was carried out; what it throws is the answer. */
  after: (call: KubeCall) => Promise<void> = async () => {};
  readonly #api: KubeApi;
  #heldPath: string | undefined;
  readonly #held: (() => void)[] = [];

  constructor(api: KubeApi) {
    this.#api = api;
  }

  async call(call: KubeCall): Promise<KubeObject> {
    this.calls.push(`${call.method} ${call.path.replace(/^.*\/v1\//, "")}`);
    const key = `${call.method} ${resourceOf(call)}`;
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
    await this.before(call);
    const answer = await this.#api.call(call);
    await this.after(call);
    return answer;
  }

  watch(watch: KubeWatch): Promise<void> {
    return this.#api.watch({
      ...watch,
      onEvent: (event) => {
        this.use.watchEvents++;
        if (watch.path === this.#heldPath) this.#held.push(() => watch.onEvent(event));
        else watch.onEvent(event);
      },
      onBytes: (bytes) => {
        this.use.watchBytes += bytes;
        watch.onBytes?.(bytes);
      },
    });
  }

  close(): Promise<void> {
    return this.#api.close();
  }

  /** Events of watches of that path are held back: a cache that is behind. */
  holdEvents(path: string): void {
    this.#heldPath = path;
  }

  releaseEvents(): void {
    this.#heldPath = undefined;
    for (const deliver of this.#held.splice(0)) deliver();
  }

  /** Methods of the writes since the last question: `POST`, `PUT`, `DELETE`, `PATCH`. */
  takeWrites(): string[] {
    const methods = this.calls.splice(0).map((call) => call.split(" ")[0] ?? "");
    return methods.filter((method) => method !== "GET");
  }

  /** The next call of the method stops at a gate. */
  holdCall(method: KubeCall["method"], when: "before" | "after") {
    const [gate, reached] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    this[when] = async (call) => {
      if (call.method !== method) return;
      this[when] = async () => {};
      reached.resolve();
      await gate.promise;
    };
    gate.promise.catch(() => {});
    return { reached: reached.promise, open: () => gate.resolve(), fail: (error: Error) => gate.reject(error) };
  }
}

/** `/apis/ipam.vendor.io/v1/ipallocations/10.6.0.21` and `/api/v1/namespaces/shop/pods/web-0`: the collection's name. */
function resourceOf({ method, path }: KubeCall): string {
  const parts = path.split("/").filter((part) => part !== "");
  const inGroup = parts.slice(parts[0] === "apis" ? 3 : 2);
  const names = inGroup[0] === "namespaces" && inGroup.length > 2 ? inGroup.slice(2) : inGroup;
  const resource = names[0] ?? path;
  return method === "GET" && names.length === 1 ? `${resource} (list)` : resource;
}

/** The difference of two moments. */
export function useSince(now: ApiUse, before: ApiUse): ApiUse {
  const calls = new Map([...now.calls].map(([key, count]) => [key, count - (before.calls.get(key) ?? 0)]));
  return {
    calls: new Map([...calls].filter(([, count]) => count > 0)),
    watchBytes: now.watchBytes - before.watchBytes,
    watchEvents: now.watchEvents - before.watchEvents,
  };
}

/** A copy of all of them together. */
export function sumUse(uses: readonly ApiUse[]): ApiUse {
  const calls = new Map<string, number>();
  for (const use of uses) for (const [key, count] of use.calls) calls.set(key, (calls.get(key) ?? 0) + count);
  return {
    calls,
    watchBytes: uses.reduce((sum, use) => sum + use.watchBytes, 0),
    watchEvents: uses.reduce((sum, use) => sum + use.watchEvents, 0),
  };
}
