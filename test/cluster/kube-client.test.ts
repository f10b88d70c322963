import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { KubeClient } from "../../host/kubernetes/client.ts";
import { MAX_CONNECTIONS } from "../../host/kubernetes/http/retry.ts";
import type { ApiError, WatchEvent } from "../../host/kubernetes/kube-api.ts";
import { listPages } from "../../host/kubernetes/list.ts";
import { connectClient } from "../lab/cluster/in-process.ts";
import type { ControlPlane } from "../lab/control-plane.ts";
import { until } from "../world/recorded-log.ts";
import { borrowPlane } from "./borrow-plane.ts";
import { startRelay } from "./kube-wire.ts";

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
  // The next call may come a moment before the library knows that the last one is over.
  it("one after the other, 50 creates take two at most", async () => {
    const client = await open();
    const connections = await countConnections(async () => {
      for (let index = 0; index < 50; index++)
        await client.call({ method: "POST", path: PATH, body: mapOf(`a-${index}`) });
    });
    expect(connections).toBeLessThanOrEqual(2);
  });

  it("so do 20 deletes with preconditions in their bodies", async () => {
    const client = await open();
    const connections = await countConnections(async () => {
      for (let index = 0; index < 20; index++) {
        await client.call({ method: "POST", path: PATH, body: mapOf(`d-${index}`) });
        const body = { apiVersion: "v1", kind: "DeleteOptions", preconditions: {} };
        await client.call({ method: "DELETE", path: `${PATH}/d-${index}`, body });
      }
    });
    expect(connections).toBeLessThanOrEqual(2);
  });

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
    expect(client.stats).toMatchObject({ calls: 120, attempts: 120, connections, calling: 0, waiting: 0 });
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

describe("answers", () => {
  it("that the name is taken, that the object is wrong, that it is not there", async () => {
    const client = await open();
    const create = (name: string) => client.call({ method: "POST", path: PATH, body: mapOf(name) });
    await create("once");
    await expect(create("once")).rejects.toMatchObject({ name: "ApiError", status: 409, reason: "AlreadyExists" });
    await expect(create("Wrong")).rejects.toMatchObject({
      status: 422,
      reason: "Invalid",
      causes: [{ field: "metadata.name", message: expect.stringContaining("lowercase") }],
    });
    await expect(client.call({ method: "GET", path: `${PATH}/never` })).rejects.toMatchObject({
      status: 404,
      reason: "NotFound",
      operation: `GET ${PATH}/never`,
    });
  });

  it("to a merge patch", async () => {
    const client = await open();
    await client.call({ method: "POST", path: PATH, body: mapOf("patched") });
    const patched = await client.call({ method: "PATCH", path: `${PATH}/patched`, body: { data: { a: "1" } } });
    expect(patched).toMatchObject({ data: { a: "1" } });
  });

  it("in pages are one list of one moment", async () => {
    const client = await open();
    const seen: unknown[] = [];
    const versions = new Set<string>();
    for await (const page of listPages(client, { path: PATH, query: { limit: 70 } })) {
      expect(page.items.length).toBeLessThanOrEqual(70);
      versions.add(page.resourceVersion);
      for (const item of page.items) seen.push(item);
    }
    expect(versions.size).toBe(1);
    expect(seen.length).toBeGreaterThan(140);
    expect(seen[0]).toMatchObject({ kind: "ConfigMap", apiVersion: "v1" });
  });

  it("only names, when a table is asked for", async () => {
    const client = await open();
    const accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
    const table = await client.call({ method: "GET", path: PATH, query: { includeObject: "None", limit: 3 }, accept });
    expect(table).toMatchObject({ kind: "Table", rows: [{ object: null }, {}, {}] });
  });
});

describe("trouble", () => {
  it("connections that are reset under way cost nothing but another attempt", async () => {
    const relay = await startRelay(plane.kubeconfig);
    try {
      const client = await open(relay.kubeconfig);
      const outcomes: string[] = [];
      let next = 0;
      const createAll = async () => {
        for (let index = next++; index < 120; index = next++) {
          const made = client.call({ method: "POST", path: PATH, body: mapOf(`r-${index}`) });
          // The create that was answered into a cut connection meets itself.
          outcomes.push(
            await made.then(
              () => "made",
              (error: ApiError) => error.reason,
            ),
          );
          // While the other seven are under way.
          if (outcomes.length % 10 === 0) relay.cut();
        }
      };
      await Promise.all(Array.from({ length: 8 }, createAll));
      expect(client.stats.attempts).toBeGreaterThan(120);
      expect(outcomes.filter((one) => one !== "made" && one !== "AlreadyExists")).toEqual([]);
      const { items } = await plane.client.get(PATH);
      const names: string[] = items.map(({ metadata }: { metadata: { name: string } }) => metadata.name);
      expect(names.filter((name) => name.startsWith("r-"))).toHaveLength(120);
    } finally {
      await relay.close();
    }
  });
});

describe("a token that rotates", () => {
  it("is read again when it is refused, and used without a restart", async () => {
    const directory = await mkdtemp(join(tmpdir(), "berth-token-"));
    try {
      const config = JSON.parse(await readFile(plane.kubeconfig, "utf8"));
      const { token } = config.users[0].user;
      const tokenFile = join(directory, "token");
      config.users[0].user = { tokenFile };
      await writeFile(join(directory, "kubeconfig"), JSON.stringify(config));
      await writeFile(tokenFile, "not-this-one");
      const client = await open(join(directory, "kubeconfig"));
      const call = () => client.call({ method: "GET", path: PATH, query: { limit: 1 } });
      await expect(call()).rejects.toMatchObject({ name: "ApiError", status: 401, reason: "Unauthorized" });
      await writeFile(tokenFile, token);
      expect(await countConnections(call)).toBe(0);
    } finally {
      await rm(directory, { recursive: true });
    }
  });
});
