import { expect, it } from "vitest";
import type { KubeApi, KubeCall } from "../../../../../host/kubernetes/kube-api.ts";
import { findRecords } from "../../../cli/find-records.ts";

const NOW_MS = Date.parse("2026-11-27T00:30:00Z");

function apiOf(answer: (call: KubeCall) => object): KubeApi {
  return { call: async (call: KubeCall) => answer(call) } as unknown as KubeApi;
}

const event = (note: string, eventTime: string, more: object = {}) => {
  return { regarding: { kind: "IPAllocation", name: "10.6.0.7" }, note, eventTime, ...more };
};

it("lists the reasons that keep addresses from the IPAM of record, without those that are over", async () => {
  const items = [
    event("The address is not recorded: an entry of others", "2026-11-27T00:20:00.000000Z"),
    event("long ago, and again", "2026-11-26T23:00:00Z", { series: { lastObservedTime: "2026-11-27T00:29:00Z" } }),
    event("over", "2026-11-27T00:10:00Z"),
    event("Addresses of pods are not recorded: no answer", "2026-11-27T00:29:00Z", {
      regarding: { kind: "Namespace" },
    }),
    { note: "of another form" },
  ];
  const calls: KubeCall[] = [];
  const api = apiOf((call) => {
    calls.push(call);
    return { metadata: { resourceVersion: "1" }, items };
  });
  expect((await findRecords(api, NOW_MS)).map(({ text }) => text)).toEqual([
    "10.6.0.7: The address is not recorded: an entry of others",
    "10.6.0.7: long ago, and again",
    "Addresses of pods are not recorded: no answer",
  ]);
  expect(calls).toMatchObject([
    { path: "/apis/events.k8s.io/v1/namespaces/default/events", query: { fieldSelector: "reason=AddressNotRecorded" } },
  ]);
});

it("finds nothing if the user may not list events", async () => {
  const api = apiOf(() => expect.fail("forbidden"));
  expect(await findRecords(api, NOW_MS)).toEqual([]);
});
