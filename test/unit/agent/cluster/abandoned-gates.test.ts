import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { watchAbandonedGates } from "../../../../host/agent/cluster/abandoned-gates.ts";
import { ApiError, type KubeApi, type KubeCall, type KubeObject } from "../../../../host/kubernetes/kube-api.ts";
import { recordLog } from "../../../world/recorded-log.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const GATE = { name: "ipam.vendor.io/address" };
const OTHER = { name: "example.com/other" };
const refusal = (status: number) => new ApiError({ status, reason: "", operation: "", message: "refused" });

function podOf(name: string, schedulingGates: readonly object[]): KubeObject {
  const metadata = { namespace: "shop", name, uid: `${name}-uid`, resourceVersion: "5" };
  return { metadata, spec: { schedulingGates } };
}

/** `lease`: what a read of the Lease gives. */
function start(lease: () => KubeObject) {
  const writes: KubeCall[] = [];
  const items = [podOf("a", [OTHER, GATE]), podOf("b", [OTHER]), podOf("c", [GATE]), podOf("d", [GATE])];
  const call = async (each: KubeCall): Promise<KubeObject> => {
    if (each.path.includes("/leases/")) return lease();
    if (each.method === "GET") return { metadata: { resourceVersion: "9" }, items };
    writes.push(each);
    // Another agent was faster.
    if (each.path.endsWith("/c")) throw refusal(409);
    return {};
  };
  const api: KubeApi = { call, watch: async () => {}, close: async () => {} };
  const { log, lines } = recordLog();
  const nowMs = (): number => Date.now();
  const name = { namespace: "kube-system", name: "berth-controller" };
  const worker = watchAbandonedGates({ api, lease: name, nowMs, random: () => 0, log });
  return { worker, writes, lines };
}

const absent = (): never => {
  throw refusal(404);
};
const leaseOf = (renewTime: string): KubeObject => ({ metadata: {}, spec: { holderIdentity: "one", renewTime } });

it.each<[string, () => KubeObject]>([
  ["is not renewed", () => leaseOf("2026-11-20T04:00:00.000000Z")],
  ["does not exist", absent],
])("gates are removed, and others stay, when the Lease %s for a minute", async (_, lease) => {
  const { worker, writes } = start(lease);
  await vi.advanceTimersByTimeAsync(79_000);
  expect(writes).toEqual([]);
  await vi.advanceTimersByTimeAsync(2_000);
  const wanted = ["a", "c", "d"].map((name) => ({
    path: `/api/v1/namespaces/shop/pods/${name}`,
    body: {
      metadata: { uid: `${name}-uid`, resourceVersion: "5" },
      spec: { schedulingGates: name === "a" ? [OTHER] : [] },
    },
  }));
  expect(writes.map(({ path, body }) => ({ path, body }))).toEqual(wanted);
  await worker.close();
});

it("they stay while the Lease is renewed, and while nothing is known of it", async () => {
  let second = 0;
  const { worker, writes } = start(() => {
    second++;
    if (second > 3 && second < 9) throw refusal(503);
    return leaseOf(`${second}`);
  });
  await vi.advanceTimersByTimeAsync(600_000);
  expect([writes, second > 12]).toEqual([[], true]);
  await worker.close();
});
