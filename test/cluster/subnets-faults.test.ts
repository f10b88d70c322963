/**
 * A fault at every write of the controller that divides Subnets, on a real API server: no address is ever in two pools, by etcd's own history, and in the
 * end all is as without the fault.
 */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { KubeClient as Client } from "../../host/kubernetes/client.ts";
import { applyCrds } from "../lab/cluster/crds.ts";
import { connectClient } from "../lab/cluster/in-process.ts";
import { type ControlPlane, startControlPlane } from "../lab/control-plane.ts";
import { followPools, type PoolHistory } from "../lab/history/follow-pools.ts";
import { inParallel } from "../lab/parallel.ts";
import { FAULTS, type Fault, FaultRun } from "./subnets-faults-run.ts";

/** Runs at once: most of the time each waits for a pause after its fault. */
const AT_ONCE = 4;
/** "all": each kind of fault at every write. Else each write has one of them, another one with another seed. */
const FAULTS_WANTED = process.env.BERTH_FAULTS ?? "";
/** Which fault strikes which write; the same each time. */
const SEED = Number(process.env.BERTH_SEED ?? 20_261_120);
const PATIENCE_MS = 900_000;

let plane: ControlPlane;
let client: Client;
let history: PoolHistory;
let runs = 0;
/** Of a run in which nothing goes wrong. */
let count = 0;

beforeAll(async () => {
  plane = await startControlPlane();
  await applyCrds(plane.client);
  history = await followPools(plane.etcdUrl);
  client = await connectClient(plane.kubeconfig);
  count = (await scenario(undefined)).length;
});

afterAll(async () => {
  history?.close();
  await client?.close();
  await plane?.stop();
});

/** Workloads come, grow, shrink, move to another Subnet, go, and come back. Gives the writes. */
async function scenario(fault: Fault | undefined): Promise<readonly string[]> {
  const run = new FaultRun(plane.client, client, { number: ++runs, fault });
  const { workloads } = run;
  const wanted = { subnets: ["a"], reclaim: true, nics: ["eth0"] };
  const set = (name: string, change: object) => workloads.change(name, (before) => ({ ...before, ...change }));
  await run.open();
  try {
    workloads.come("web", "u-web", { ...wanted, count: 2 });
    workloads.come("api", "u-api", { ...wanted, count: 3 });
    workloads.come("db", "u-db", { ...wanted, count: 2, reclaim: false });
    await run.untilDivided("they come", ["web a 2", "api a 3", "db a 2"]);
    set("web", { count: 5 });
    await run.untilDivided("one grows", ["web a 5", "api a 3", "db a 2"]);
    set("api", { count: 1 });
    await run.untilDivided("one shrinks", ["web a 5", "api a 1", "db a 2"]);
    set("web", { subnets: ["b"], former: { subnets: ["a"], count: 2 } });
    await run.untilDivided("one moves", ["web b 5", "web a 2", "api a 1", "db a 2"]);
    set("web", { former: undefined });
    await run.untilDivided("it has moved", ["web b 5", "api a 1", "db a 2"]);
    workloads.go("api");
    workloads.go("db");
    await run.untilDivided("they go", ["web b 5", "db a 2"]);
    workloads.come("db", "u-db2", { ...wanted, count: 3, reclaim: false });
    await run.untilDivided("one comes back", ["web b 5", "db a 3"]);
  } finally {
    await run.close();
  }
  return run.writes;
}

describe("a fault at every write", () => {
  it("without one there are writes of all kinds", () => {
    expect(count).toBeGreaterThan(20);
  });

  it(`gives no address to two pools, and all is well in the end (seed ${SEED})`, { timeout: PATIENCE_MS }, async () => {
    const all = Array.from({ length: count }, (_, at) => FAULTS.map((kind): Fault => ({ kind, atWrite: at + 1 })));
    const some = all.flatMap((faults, at) => faults[(at + SEED) % faults.length] ?? []);
    await inParallel(FAULTS_WANTED === "all" ? all.flat() : some, AT_ONCE, scenario);
    await history.caughtUp();
    expect(history.checker.breaches).toEqual([]);
  });
});
