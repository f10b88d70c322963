/**
 * The laboratory of the cluster mode by itself: servers that end and come back, data that go back, faults as a plain
 * client sees them.
 */
import { readFile } from "node:fs/promises";
import { Agent, request } from "node:https";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Fault, FaultRule } from "../../lab/cluster/api-faults.ts";
import { type ApiProxy, startApiProxy } from "../../lab/cluster/api-proxy.ts";
import { DEFINITIONS_CRD, definitionsCrd } from "../../lab/cluster/objects.ts";
import { PlaneReset } from "../../lab/cluster/plane.ts";
import { type ControlPlane, startControlPlane } from "../../lab/control-plane.ts";
import { createKubeClient, type KubeClient } from "../../lab/kube-client.ts";
import { until as untilTrue } from "../../lab/waiting.ts";

const NAMESPACES = "/api/v1/namespaces";
const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const MAPS = `${NAMESPACES}/default/configmaps`;
/** The error of a client whose connection broke, or was refused. */
const BROKEN = /ECONNREFUSED|ECONNRESET|socket hang up|socket disconnected/;

let plane: ControlPlane;
let proxy: ApiProxy;
/** Through the proxy. */
let client: KubeClient;

const token = async (): Promise<string> => {
  return JSON.parse(await readFile(proxy.kubeconfig, "utf8")).users[0].user.token;
};

beforeAll(async () => {
  plane = await startControlPlane({ accounts: [{ name: "system:node:n1", groups: ["system:nodes"] }] });
  await until(() =>
    plane.client.get(`${NAMESPACES}/default`).then(
      () => true,
      () => false,
    ),
  );
  proxy = await startApiProxy(plane, { seed: 3 });
  client = createKubeClient({
    address: "127.0.0.1",
    port: Number(new URL(proxy.url).port),
    token: await token(),
    ca: (await plane.pair()).cert,
  });
});

afterAll(async () => {
  client?.close();
  await proxy?.stop();
  await plane?.stop();
});

beforeEach(() => {
  proxy.rules.clear();
  proxy.resetTally();
});

let maps = 0;
const make = (through: KubeClient = client) => through.create(MAPS, { metadata: { name: `map-${++maps}` } });
const isThere = (number: number) =>
  plane.client.get(`${MAPS}/map-${number}`).then(
    () => true,
    () => false,
  );

/** A watch as a plain client has it: the lines so far, and how it ended. */
async function openWatch(url: string, query: string) {
  const lines: string[] = [];
  let end: string | undefined;
  let status = 0;
  const { ca, key } = { ca: (await plane.pair()).cert, key: await token() };
  const headers = { authorization: `Bearer ${key}` };
  const path = `${url}${MAPS}?watch=true${query}`;
  const agent = new Agent();
  const call = request(path, { ca, headers, agent }, (answer) => {
    status = answer.statusCode ?? 0;
    answer.setEncoding("utf8").on("data", (text: string) => lines.push(...text.split("\n").filter(Boolean)));
    answer.on("error", ({ message }) => {
      end = message;
    });
    answer.on("end", () => {
      end ??= "end";
    });
  });
  call.on("error", ({ message }) => {
    end = message;
  });
  call.end();
  return { lines, status: () => status, ended: () => end, close: () => agent.destroy() };
}

const until = (isTrue: () => boolean | Promise<boolean>): Promise<number> => untilTrue(`${isTrue}`, isTrue);

describe("the proxy", () => {
  const order = (fault: Fault, rest: Partial<FaultRule> = {}) => proxy.rules.add({ verbs: ["post"], fault, ...rest });

  it("passes calls on and counts them, their bytes and the handshakes", async () => {
    const before = proxy.handshakes;
    await make();
    expect(await isThere(maps)).toBe(true);
    await expect(client.get(`${MAPS}/no-such-map`)).rejects.toMatchObject({ status: 404, reason: "NotFound" });
    expect(proxy.count()).toBe(2);
    expect(proxy.count({ verb: "post", resource: "configmaps" })).toBe(1);
    const row = proxy.tally().find(({ verb }) => verb === "post");
    expect(row).toMatchObject({ requests: 1, statuses: { 201: 1 } });
    expect(row?.responseBytes).toBeGreaterThan(100);
    expect(row?.requestBytes).toBeGreaterThan(10);
    expect(proxy.handshakes - before).toBeLessThanOrEqual(1);
  });

  it("reset before: broken, and nothing was done", async () => {
    order({ kind: "reset-before" });
    await expect(make()).rejects.toThrow(BROKEN);
    expect(await isThere(maps)).toBe(false);
  });

  it("reset after: broken, and done", async () => {
    order({ kind: "reset-after" });
    await expect(make()).rejects.toThrow(BROKEN);
    expect(await isThere(maps)).toBe(true);
  });

  it.each(["hang-before", "hang-after"] as const)("%s: silent until broken", async (kind) => {
    order({ kind });
    let outcome = "none";
    const name = maps + 1;
    const call = make().catch(({ message }) => {
      outcome = message;
    });
    if (kind === "hang-after") await until(() => isThere(name));
    await until(() => proxy.count() === 1);
    expect(outcome).toBe("none");
    await until(() => proxy.breakHanging() === 1);
    await call;
    expect(outcome).toMatch(BROKEN);
    expect(await isThere(name)).toBe(kind === "hang-after");
  });

  it("a delay", async () => {
    order({ kind: "delay", minMs: 150, maxMs: 150 });
    const start = performance.now();
    await make();
    expect(performance.now() - start).toBeGreaterThan(149);
  });

  it("an answer of its own, with Retry-After", async () => {
    order({ kind: "answer", status: 429, reason: "TooManyRequests", retryAfterS: 1 }, { times: 1 });
    await expect(make()).rejects.toMatchObject({ status: 429, reason: "TooManyRequests" });
    expect(await isThere(maps)).toBe(false);
    await make();
    expect(proxy.tally()[0]).toMatchObject({ requests: 2, statuses: { 429: 1, 201: 1 } });
  });

  it("refuses connections, and takes them again at the same port", async () => {
    proxy.refuse();
    await expect(make()).rejects.toThrow(BROKEN);
    await expect(make()).rejects.toThrow(BROKEN);
    expect(proxy.count()).toBe(0);
    await proxy.accept();
    await make();
  });

  it("watches are cut, or held back while calls pass", async () => {
    const watch = await openWatch(proxy.url, "");
    await until(() => watch.status() === 200 && proxy.watches === 1);
    // What was there when it began comes first.
    const { items } = await plane.client.get(MAPS);
    await until(() => watch.lines.length >= items.length);
    proxy.holdWatches();
    const before = watch.lines.length;
    const { metadata } = await make();
    const direct = await openWatch(plane.url, `&resourceVersion=${metadata.resourceVersion - 1}`);
    await until(() => direct.lines.some((line) => line.includes(`"map-${maps}"`)));
    direct.close();
    expect(watch.lines.length).toBe(before);
    proxy.releaseWatches();
    await until(() => watch.lines.some((line) => line.includes(`"map-${maps}"`)));
    expect(proxy.cutWatches()).toBe(1);
    await until(() => watch.ended() !== undefined);
    expect(proxy.watches).toBe(0);
  });

  it("a watch that ends with an event of type ERROR", async () => {
    proxy.rules.add({ verbs: ["watch"], fault: { kind: "watch-error", status: 410, reason: "Expired" } });
    const watch = await openWatch(proxy.url, "");
    await until(() => watch.ended() === "end");
    expect(watch.status()).toBe(200);
    expect(JSON.parse(watch.lines[0] ?? "")).toMatchObject({ type: "ERROR", object: { code: 410, reason: "Expired" } });
  });
});

describe("the control plane", () => {
  it("a reset deletes newer objects of all kinds past their finalizers, and names older ones that were changed", async () => {
    await make(plane.client);
    const older = maps;
    const reset = await PlaneReset.open(plane);
    await plane.client.apply(`${CRDS}/${DEFINITIONS_CRD}`, definitionsCrd());
    await plane.client.create(NAMESPACES, { metadata: { name: "shop", finalizers: ["example.com/stays"] } });
    await plane.client.create(MAPS, { metadata: { name: "newer", finalizers: ["example.com/stays"] } });
    expect(await reset.run()).toEqual([]);
    for (const path of [`${CRDS}/${DEFINITIONS_CRD}`, `${NAMESPACES}/shop`, `${MAPS}/newer`])
      await expect(plane.client.get(path)).rejects.toMatchObject({ status: 404 });
    expect(await isThere(older)).toBe(true);
    await plane.client.patch(`${MAPS}/map-${older}`, { data: { changed: "true" } });
    expect(await reset.run()).toEqual([`/registry/configmaps/default/map-${older}`]);
  });
});
