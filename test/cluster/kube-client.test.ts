import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { KubeClient } from "../../host/kubernetes/client.ts";
import { MAX_CONNECTIONS } from "../../host/kubernetes/http/retry.ts";
import type { WatchEvent } from "../../host/kubernetes/kube-api.ts";
import { listPages } from "../../host/kubernetes/list.ts";
import { connectClient } from "../lab/cluster/in-process.ts";
import type { ControlPlane } from "../lab/control-plane.ts";
import { until } from "../world/recorded-log.ts";
import { borrowPlane } from "./borrow-plane.ts";

const PATH = "/api/v1/namespaces/default/configmaps";
const mapOf = (name: string) => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name } });

let plane: ControlPlane;
const opened: KubeClient[] = [];
beforeAll(async () => {
  plane = await borrowPlane();
});
afterAll(() => plane.stop());
afterEach(async () => {
  for (const client of opened.splice(0)) await client.close();
});

async function open(kubeconfig = plane.kubeconfig): Promise<KubeClient> {
  const client = await connectClient(kubeconfig);
  opened.push(client);
  return client;
}

/** Connections that any client of this process makes while `work` runs. */
async function countConnections(work: () => Promise<unknown>): Promise<number> {
  let count = 0;
  const onConnect = () => {
    count++;
  };
  subscribe("undici:client:connected", onConnect);
  await work().finally(() => unsubscribe("undici:client:connected", onConnect));
  return count;
}

/** Opens a watch of the ConfigMaps and resolves when the server has accepted it. */
async function openWatch(client: KubeClient, resourceVersion: string) {
  const controller = new AbortController();
  const events: WatchEvent[] = [];
  const isOpen = Promise.withResolvers<void>();
  const ended = client.watch({
    path: PATH,
    query: { resourceVersion, allowWatchBookmarks: true },
    onOpen: isOpen.resolve,
    onEvent: (event) => events.push(event),
    signal: controller.signal,
  });
  ended.catch(isOpen.reject);
  await isOpen.promise;
  return { events, ended, abort: () => controller.abort(new Error("enough")) };
}

async function currentVersion(client: KubeClient): Promise<string> {
  let version = "";
  for await (const page of listPages(client, { path: PATH })) version = page.resourceVersion;
  return version;
}

describe("connections", () => {
  it("40 at once, 120 creates take no more than the limit", async () => {
    const client = await open();
    let next = 0;
    const createAll = async () => {
      for (let index = next++; index < 120; index = next++)
        await client.call({ method: "POST", path: PATH, body: mapOf(`b-${index}`), lane: "pod" });
    };
    const connections = await countConnections(() => Promise.all(Array.from({ length: 40 }, createAll)));
    expect(connections).toBeGreaterThan(1);
    expect(connections).toBeLessThanOrEqual(MAX_CONNECTIONS);
    expect(client.stats).toMatchObject({ connections, calling: 0, waiting: 0 });
  });

  it("20 watches share one, and no call waits for them", async () => {
    const client = await open();
    const version = await currentVersion(client);
    const watches: Awaited<ReturnType<typeof openWatch>>[] = [];
    const connections = await countConnections(async () => {
      for (let index = 0; index < 20; index++) watches.push(await openWatch(client, version));
    });
    expect(connections).toBe(1);
    await client.call({ method: "POST", path: PATH, body: mapOf("seen-by-all"), patienceMs: 10_000 });
    await until(() => watches.every(({ events }) => events.length === 1), "all watches receive it");
    const [first, ...others] = watches;
    first?.abort();
    await expect(first?.ended).rejects.toThrow("enough");
    await client.call({ method: "DELETE", path: `${PATH}/seen-by-all` });
    await until(() => others.every(({ events }) => events.length === 2), "the other watches go on");
    expect(first?.events).toHaveLength(1);
    for (const { abort } of others) abort();
    await Promise.allSettled(others.map(({ ended }) => ended));
    expect(client.stats.watching).toBe(0);
  });
});
