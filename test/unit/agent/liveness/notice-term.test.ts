import { expect, it } from "vitest";
import { openNoticeTerm } from "../../../../host/agent/liveness/notice-term.ts";
import { ApiError } from "../../../../host/kubernetes/kube-api.ts";

const ledBy = (notifier: string) => ({ uid: "u", annotations: { "ipam.vendor.io/notifier": notifier } });
const LEASE = {
  metadata: ledBy("a"),
  spec: { holderIdentity: "a", acquireTime: "1", renewTime: "2", leaseTransitions: 3 },
};
const renewed = (lease: typeof LEASE, renewTime: string) => ({ ...lease, spec: { ...lease.spec, renewTime } });
const changed = (spec: object) => ({ ...LEASE, spec: { ...LEASE.spec, renewTime: "4", ...spec } });
const missing = new ApiError({ status: 404, reason: "NotFound", operation: "GET", message: "there is none" });

it.each([
  ["the same leader has renewed", renewed(LEASE, "4"), true],
  ["no process has renewed", LEASE, false],
  ["another leads", { ...changed({ holderIdentity: "b" }), metadata: ledBy("b") }, false],
  ["another led meanwhile", changed({ leaseTransitions: 5 }), false],
  ["it began anew", changed({ acquireTime: "3" }), false],
  ["an older controller leads, which leaves the annotation as it is", changed({ holderIdentity: "old" }), false],
  ["an older controller leads", { ...changed({}), metadata: { uid: "u", annotations: {} } }, false],
  ["the lease was given back", changed({ holderIdentity: null }), false],
  ["it is another object", { ...changed({}), metadata: { ...LEASE.metadata, uid: "v" } }, false],
  ["there is none", missing, false],
  ["it cannot be decoded", { spec: 7 }, false],
] as const)("recreate: notices came all the time? %s", async (_, second, wanted) => {
  const answers: readonly object[] = [LEASE, second, renewed(LEASE, "6"), renewed(LEASE, "8")];
  let asked = 0;
  const call = async ({ path }: { readonly path: string }) => {
    expect(path).toBe("/apis/coordination.k8s.io/v1/namespaces/net/leases/lead");
    const found = answers[asked++];
    if (found instanceof Error) throw found;
    return { ...found };
  };
  const isTold = openNoticeTerm({ call } as never, { namespace: "net", name: "lead" });
  expect([await isTold(), await isTold()]).toEqual([false, wanted]);
  await isTold();
  expect(await isTold(), "the third and fourth are of one time").toBe(true);
});
