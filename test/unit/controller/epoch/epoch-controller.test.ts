/** When the controller settles an epoch of the registry, and begins one: on real caches of a server in memory. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { type OpenCaches, openCaches } from "../../../../host/controller/caches.ts";
import { startEpoch } from "../../../../host/controller/epoch/epoch-controller.ts";
import type { Controller, ControllerDeps } from "../../../../host/controller/types.ts";
import { ApiError, type KubeApi } from "../../../../host/kubernetes/kube-api.ts";
import { REGISTRY_KINDS } from "../../../../host/registry/epoch/kubernetes-epoch.ts";
import { EPOCH_ANNOTATION, EPOCH_MAP } from "../../../../host/resources/registry-epoch.ts";
import { type Gate, MemoryApiServer } from "../../../fakes/memory-api-server.ts";
import { CUSTOM_KINDS, NODES, SERVES } from "../../../simulation/collections.ts";
import { recordLog } from "../../../world/recorded-log.ts";

const CONFIG_MAPS = "/api/v1/namespaces/kube-system/configmaps";
const OPEN = { epoch: "e2", settled: "e1", cause: "history", definition: "kinds", waitsFor: "" };

let server: MemoryApiServer;
let caches: OpenCaches;
let part: Controller;
/** Stands before the controller's own calls. */
let gate: Gate;
let breaking: AbortController;
const recorded = recordLog();

/** Its watches end with {@link breaking}. */
const breakable = (api: KubeApi): KubeApi => ({
  ...api,
  watch: (watch) => api.watch({ ...watch, signal: AbortSignal.any([watch.signal, breaking.signal]) }),
});

beforeEach(async () => {
  server = new MemoryApiServer({ serves: SERVES, isOpen: true });
  breaking = new AbortController();
  gate = async (_call, commit) => commit();
  put({});
  const { log } = recorded;
  caches = openCaches({ api: breakable(server.client()), configNamespace: "kube-system", log, random: () => 0 });
  await caches.synced();
  const leading = new AbortController().signal;
  const clock = { nowMs: () => performance.now(), now: () => new Date() };
  const api = server.client((call, commit) => gate(call, commit));
  part = startEpoch({ api, caches, log, clock, leading, random: () => 0 } as unknown as ControllerDeps);
});

afterEach(async () => {
  await part.close();
  await caches.close();
});

function put(data: object): void {
  server.put(CONFIG_MAPS, EPOCH_MAP, { metadata: { namespace: "kube-system" }, data });
}

function mark(node: string, epoch: string): void {
  const status = { conditions: [{ type: "Ready", status: "True" }] };
  server.put(NODES, node, { metadata: { annotations: { [EPOCH_ANNOTATION]: epoch } }, spec: {}, status });
}

const record = (): Partial<typeof OPEN & Record<"beats" | "settings", string>> =>
  Object(server.collection(CONFIG_MAPS).get(EPOCH_MAP)).data;
const beats = (): readonly string[] => record().beats?.split(" ") ?? [];

it("an epoch waits for nodes, says which and how many, and is settled when they have marked it", async () => {
  mark("n1", "e1");
  mark("n2", "e1");
  put(OPEN);
  await expect.poll(record).toMatchObject({ ...OPEN, waitsFor: "n1, n2" });
  await expect.poll(() => part.measurements).toEqual({ epoch: { waitingNodes: 2 } });
  const problem = "The registry has just appeared or went back in time; it waits for node n1, n2";
  await expect.poll(() => part.problems).toEqual([problem]);
  mark("n1", "e2");
  await expect.poll(() => part.measurements).toEqual({ epoch: { waitingNodes: 1 } });
  mark("n2", "e2");
  await expect.poll(record).toMatchObject({ ...OPEN, settled: "e2" });
});

it("a node that the cache lacks is read before an epoch is settled", async () => {
  gate = async ({ path }, commit) => {
    // It is marked as the controller is about to read the nodes.
    if (path === NODES) mark("n9", "e1");
    return commit();
  };
  put(OPEN);
  await expect.poll(record).toMatchObject({ ...OPEN, waitsFor: "n9" });
});

it("a record that has changed meanwhile is read again", async () => {
  let isFirst = true;
  gate = async (call, commit) => {
    if (call.method !== "PATCH" || !isFirst) return commit();
    isFirst = false;
    put({ ...OPEN, epoch: "e3" });
    throw new ApiError({ status: 409, reason: "Conflict", operation: "PATCH", message: "changed" });
  };
  put(OPEN);
  await expect.poll(record).toMatchObject({ ...OPEN, epoch: "e3", settled: "e3" });
});

it("an epoch begins once when some of its additions are lost", async () => {
  put({ ...OPEN, settled: "e2" });
  mark("n1", "e2");
  await expect.poll(() => beats().length).toBe(1);
  const copy = server.snapshot();
  put({ ...record(), beats: [...beats(), "later"].join(" ") });
  await expect.poll(() => [...caches.epoch.items.values()][0]?.beats.length).toBe(2);
  await new Promise((resolve) => setTimeout(resolve, 300));
  server.restore(copy, [CONFIG_MAPS]);
  breaking.abort(new Error("the API server is another one"));
  breaking = new AbortController();
  await expect.poll(() => record().epoch, { timeout: 5_000 }).not.toBe("e2");
  const { epoch } = record();
  expect(record()).toMatchObject({ cause: "history", settled: "e2" });
  await expect.poll(() => record().waitsFor, { timeout: 5_000 }).toBe("n1");
  expect(record().epoch).toBe(epoch);
});

const HOUR_MS = 3_600_000;

it.each<[string, string, number, object]>([
  ["as all nodes have marked it", "e1", HOUR_MS, { epoch: "e1", settled: "e1" }],
  ["with another epoch where a node had not written", "e1.written", HOUR_MS, { cause: "history" }],
  ["with another epoch where a kind is new, too", "e1", 1_000, { cause: "history", settled: "" }],
])("a record that was emptied is made again %s, and the settings are kept", async (_, marked, ageMs, expected) => {
  const creationTimestamp = new Date(Date.now() - ageMs).toISOString();
  for (const kind of REGISTRY_KINDS) server.put(CUSTOM_KINDS, kind, { metadata: { uid: kind, creationTimestamp } });
  const settings = "enableIPv6: false";
  server.put(CONFIG_MAPS, "vendor-conf", { metadata: { namespace: "kube-system" }, data: { "conf.yml": settings } });
  mark("n1", "e1");
  mark("n2", marked);
  await expect.poll(() => part.problems).toEqual(["The ConfigMap berth-registry is missing or empty"]);
  await expect.poll(record, { timeout: 8_000 }).toMatchObject(expected);
  await expect.poll(() => record().settings).toBe(settings);
});
