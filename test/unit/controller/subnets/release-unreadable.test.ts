import { expect, it } from "vitest";
import { IN_USE_FINALIZER } from "../../../../host/controller/finalizers/plan-finalizers.ts";
import type { ControlledSubnet } from "../../../../host/controller/objects.ts";
import { releaseUnreadable } from "../../../../host/controller/subnets/subnets-controller.ts";
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
  const calls = await release(
    subnet("free", true, ["other", IN_USE_FINALIZER]),
    subnet("used", true, [IN_USE_FINALIZER]),
  );
  expect(calls.slice(1).map(({ method, path }) => `${method} ${path}`)).toEqual([
    "PATCH /apis/ipam.vendor.io/v1/subnets/free",
  ]);
  expect(calls[1]?.body).toMatchObject({
    metadata: { finalizers: ["other"], uid: "uid-free", resourceVersion: "7" },
  });
});

it("nothing is read when no such Subnet is being deleted", async () => {
  expect(await release(subnet("kept", false, [IN_USE_FINALIZER]), subnet("gone", true, ["other"]))).toEqual([]);
});
