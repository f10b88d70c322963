/** MAC addresses of an export: any content of a pod's annotation, read with any rights. */
import { expect, it } from "vitest";
import { ApiError, type KubeApi } from "../../../../../host/kubernetes/kube-api.ts";
import { withMacs } from "../../../cli/export/pod-macs.ts";

const RECORD = { address: "10.6.0.21", pool: "blue", state: "Bound", namespace: "shop", pod: "web-0" } as never;

it.each<[status: string | undefined, mac: string | undefined]>([
  [undefined, undefined],
  ["{", undefined],
  ['{"mac": 1}', undefined],
  ['[{"mac": "02:00:00:00:00:01"}, {"ips": ["10.6.0.21"]}]', undefined],
  ['[{"mac": "02:00:00:00:00:01", "ips": ["10.6.0.22", "10.6.0.21"]}]', "02:00:00:00:00:01"],
])("%s", async (status, mac) => {
  const annotations = { "k8s.v1.cni.cncf.io/network-status": status };
  const items = [{ metadata: { namespace: "shop", name: "web-0", annotations } }];
  const api = {
    call: async () => ({ apiVersion: "v1", kind: "PodList", metadata: { resourceVersion: "1" }, items }),
  } as unknown as KubeApi;
  expect(await withMacs(api, [RECORD])).toEqual([mac === undefined ? RECORD : { ...(RECORD as object), mac }]);
});

it("has none for an account that may not list pods", async () => {
  const answer = { status: 403, reason: "Forbidden", operation: "GET /api/v1/pods", message: "no" };
  const refuse = async () => Promise.reject(new ApiError(answer));
  expect(await withMacs({ call: refuse } as unknown as KubeApi, [RECORD])).toEqual([RECORD]);
});
