/** The follower of histories on a real API server and a real etcd: the checker gets what was written, in its order. */
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { parseIp } from "../../host/net/ip.ts";
import { allocationName, encodeIpAllocation, type IpAllocationSpec } from "../../host/resources/ip-allocation.ts";
import { type ControlPlane, startControlPlane } from "../lab/control-plane.ts";
import { followHistory, type History } from "../lab/history/follow.ts";

const GROUP = "/apis/ipam.vendor.io/v1/ipallocations";
/** The kind with no rules of its own: here only the order of writes matters. */
const definition = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "ipallocations.ipam.vendor.io" },
  spec: {
    group: "ipam.vendor.io",
    scope: "Cluster",
    names: { kind: "IPAllocation", plural: "ipallocations" },
    versions: [
      {
        ...{ name: "v1", served: true, storage: true },
        schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
      },
    ],
  },
};

let plane: ControlPlane;
let history: History;

beforeAll(async () => {
  plane = await startControlPlane();
  await plane.client.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition);
  // The new kind is served a moment after it is there.
  await vi.waitFor(() => plane.client.get(GROUP), { timeout: 30_000, interval: 50 });
  await create("10.6.0.9", "before");
  history = await followHistory(plane.etcdUrl, { minReuseMs: 2_000 });
});

afterAll(async () => {
  history?.close();
  await plane?.stop();
});

function objectOf(address: string, podUid: string): object {
  const ip = parseIp(address);
  if (ip === undefined) throw new TypeError(address);
  const holder = { namespace: "shop", pod: podUid, podUid, ifName: "eth0", node: "n1" };
  const spec: IpAllocationSpec = {
    ...{ ip, addressSpace: "", prefixLength: 24, pool: "blue", state: "Bound", node: "n1", holders: [holder] },
  };
  return encodeIpAllocation(spec, { name: allocationName(ip, ""), labels: {} });
}

const create = (address: string, podUid: string): Promise<unknown> =>
  plane.client.create(`${GROUP}?fieldManager=berth-agent`, objectOf(address, podUid));
const nic = (name: string, podUid: string) => ({ name, podUid, ifName: "eth0" });

it("a life that keeps the rules is checked write by write", async () => {
  expect([...history.checker.objects.keys()]).toEqual(["10.6.0.9"]);
  for (let round = 0; round < 20; round++) {
    await create("10.6.0.21", "a");
    await history.attached(nic("10.6.0.21", "a"));
    history.leaving(nic("10.6.0.21", "a"));
    await plane.client.delete(`${GROUP}/10.6.0.21`);
  }
  await history.caughtUp();
  expect(history.checker.writes).toBe(40);
  expect(history.checker.breaches).toEqual([]);
});

it("an object that is replaced while its pod lives is found, although it exists before and after", async () => {
  await create("10.6.0.22", "a");
  await history.attached(nic("10.6.0.22", "a"));
  await plane.client.delete(`${GROUP}/10.6.0.22`);
  await create("10.6.0.22", "a");
  await history.caughtUp();
  const [breach, ...more] = history.checker.breaches;
  expect(breach).toMatch(/^revision \d+, 10\.6\.0\.22: absent while eth0 of a lives with it$/);
  expect(more).toEqual([]);
});

it("an ADD that is answered before its object is written is found", async () => {
  await history.attached(nic("10.6.0.23", "a"));
  expect(history.checker.breaches.at(-1)).toBe("10.6.0.23: absent when eth0 of a was answered");
});
