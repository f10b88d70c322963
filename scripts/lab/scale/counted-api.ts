/** An agent's way to the API server with a counter at its side: calls by verb and resource, bytes and events of its watches. */
import type { KubeApi, KubeCall } from "../../../host/kubernetes/kube-api.ts";

export interface ApiUse {
  /** `POST ipallocations` → how often. A call that was tried again counts once. */
  readonly calls: ReadonlyMap<string, number>;
  readonly watchBytes: number;
  readonly watchEvents: number;
}

export interface CountedApi extends KubeApi {
  readonly use: ApiUse;
}

export function countCalls(api: KubeApi): CountedApi {
  const calls = new Map<string, number>();
  const use = { calls, watchBytes: 0, watchEvents: 0 };
  return {
    use,
    call: (call) => {
      const key = `${call.method} ${resourceOf(call)}`;
      calls.set(key, (calls.get(key) ?? 0) + 1);
      return api.call(call);
    },
    watch: (watch) =>
      api.watch({
        ...watch,
        onEvent: (event) => {
          use.watchEvents++;
          watch.onEvent(event);
        },
        onBytes: (bytes) => {
          use.watchBytes += bytes;
          watch.onBytes?.(bytes);
        },
      }),
    close: () => api.close(),
  };
}

/** `/apis/ipam.vendor.io/v1/ipallocations/10.6.0.21` and `/api/v1/namespaces/shop/pods/web-0`: the collection's name. */
function resourceOf({ method, path }: KubeCall): string {
  const parts = path.split("/").filter((part) => part !== "");
  const inGroup = parts.slice(parts[0] === "apis" ? 3 : 2);
  const names = inGroup[0] === "namespaces" && inGroup.length > 2 ? inGroup.slice(2) : inGroup;
  const resource = names[0] ?? path;
  return method === "GET" && names.length === 1 ? `${resource} (list)` : resource;
}

/** What was used between two looks. */
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
