import { expect, it } from "vitest";
import { IN_USE_FINALIZER } from "../../../../host/controller/finalizers/plan-finalizers.ts";
import type { ControlledSubnet } from "../../../../host/controller/objects.ts";
import { releaseUnreadable } from "../../../../host/controller/subnets/release-unreadable.ts";
import type { KubeCall } from "../../../../host/kubernetes/kube-api.ts";

const POOL = { metadata: { name: "p" }, spec: { generated: { subnet: "used" } } };

function subnet(name: string, deleting: boolean, finalizers: readonly string[]): ControlledSubnet {
  return { name, uid: `uid-${name}`, resourceVersion: "7", deleting, finalizers } as unknown as ControlledSubnet;
}

async function release(...unreadable: readonly ControlledSubnet[]): Promise<readonly KubeCall[]> {
  const calls: KubeCall[] = [];
  const call = async (each: KubeCall) => {
    calls.push(each);
    return each.method === undefined || each.method === "GET"
      ? { kind: "List", metadata: { resourceVersion: "1" }, items: [POOL, { metadata: { name: "by hand" }, spec: {} }] }
      : {};
  };
  const api = { call } as unknown as Parameters<typeof releaseUnreadable>[0]["api"];
  await releaseUnreadable({ api, leading: new AbortController().signal }, unreadable);
  return calls;
}

it("a deleted Subnet without pools loses its finalizer, and only that", async () => {
  const free = subnet("free", true, ["other", IN_USE_FINALIZER]);
  const calls = await release(free, subnet("used", true, [IN_USE_FINALIZER]));
  const metadata = { finalizers: ["other"], uid: "uid-free", resourceVersion: "7" };
  expect(calls.slice(1)).toMatchObject([
    { method: "PATCH", path: "/apis/ipam.vendor.io/v1/subnets/free", body: { metadata } },
  ]);
});

it("nothing is read when no such Subnet is being deleted", async () =>
  expect(await release(subnet("kept", false, [IN_USE_FINALIZER]), subnet("gone", true, ["other"]))).toEqual([]));
