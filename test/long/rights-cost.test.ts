/**
 * Cost of the policies for an agent's write, in figures. Prints them, beside an administrator's, whom no policy of a
 * create concerns.
 */

import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { KubeApi } from "../../host/kubernetes/kube-api.ts";
import { root } from "../../scripts/setup/paths.mjs";
import { applyFile } from "../lab/apply.ts";
import { applyCrds } from "../lab/cluster/crds.ts";
import { connectClient } from "../lab/cluster/in-process.ts";
import { ALLOCATIONS, boundObject, NAMESPACES, namespaceObject } from "../lab/cluster/objects.ts";
import { applyPolicies, writeAgentKubeconfig } from "../lab/cluster/rights.ts";
import { type ControlPlane, startControlPlane } from "../lab/control-plane.ts";

const ROUNDS = 2;
const EACH = 30;
const AT_ONCE = 8;
/** One after the other, by each of those at once. */
const TURNS = 10;

let plane: ControlPlane;
const apis: KubeApi[] = [];

beforeAll(async () => {
  plane = await startControlPlane();
  await applyCrds(plane.client);
  await plane.client.apply(`${NAMESPACES}/kube-system`, namespaceObject("kube-system"));
  await applyFile(plane.client, join(root, "deploy", "rbac.yaml"));
});
afterAll(async () => {
  for (const api of apis) await api.close();
  await plane?.stop();
});

async function open(kubeconfig: string): Promise<KubeApi> {
  const api = await connectClient(kubeconfig, "x");
  apis.push(api);
  return api;
}

let made = 0;

/** An object is made, released, taken again and deleted: milliseconds of each call. */
async function live(api: KubeApi, times: Record<"create" | "replace" | "delete", number[]>): Promise<void> {
  const address = `10.${20 + (made >> 16)}.${(made >> 8) & 255}.${made++ & 255}`;
  const path = `${ALLOCATIONS}/${address}`;
  const timed = async <T>(kind: keyof typeof times, call: Promise<T>): Promise<T> => {
    const start = performance.now();
    const answer = await call;
    times[kind].push(performance.now() - start);
    return answer;
  };
  const object = boundObject({ address, node: "b" });
  const { metadata } = await timed("create", api.call({ method: "POST", path: ALLOCATIONS, body: object }));
  const cooling = { ...object, metadata, spec: { ...object.spec, state: "Cooling", holders: [] } };
  await timed("replace", api.call({ method: "PUT", path, body: cooling }));
  await timed("delete", api.call({ method: "DELETE", path }));
}

async function measure(accounts: Readonly<Record<string, KubeApi>>, rounds = ROUNDS): Promise<Record<string, string>> {
  const all = Object.entries(accounts).map(([name, api]) => ({
    name,
    api,
    times: { create: [], replace: [], delete: [] } as Record<"create" | "replace" | "delete", number[]>,
    busyMs: 0,
  }));
  for (let round = 0; round < rounds; round++) {
    for (const each of all) {
      for (let turn = 0; turn < EACH; turn++) await live(each.api, each.times);
      const start = performance.now();
      const silent = { create: [], replace: [], delete: [] };
      await Promise.all(
        Array.from({ length: AT_ONCE }, async () => {
          for (let turn = 0; turn < TURNS; turn++) await live(each.api, silent);
        }),
      );
      each.busyMs += performance.now() - start;
    }
  }
  const writes = rounds * AT_ONCE * TURNS * 3;
  return Object.fromEntries(
    all.map(({ name, times, busyMs }) => {
      expect(times.create.length).toBe(rounds * EACH);
      const parts = Object.entries(times).map(([kind, each]) => `${kind} ${median(each).toFixed(2)} ms`);
      return [name, `p50 ${parts.join(", ")}; ${AT_ONCE} at once ${Math.round(writes / (busyMs / 1_000))} writes/s`];
    }),
  );
}

function median(times: readonly number[]): number {
  return [...times].sort((one, other) => one - other)[times.length >> 1] ?? Number.NaN;
}

it("an agent's writes with and without the policies", async () => {
  const accounts = {
    agent: await open(await writeAgentKubeconfig(plane, "b")),
    administrator: await open(plane.kubeconfig),
  };
  // The first calls pay for connections and for code that was never run.
  await measure(accounts, 1);
  const without = await measure(accounts);
  await applyPolicies(plane.client);
  await measure(accounts, 1);
  const under = await measure(accounts);
  for (const name of Object.keys(accounts)) {
    console.log(`${name}, without policies: ${without[name]}\n${name}, with policies:    ${under[name]}`);
  }
});
