import { describe, expect, it, onTestFinished } from "vitest";
import { KIND_RETRY_SPREAD_MS, KindArrival, MISSING_KIND_RETRY_MS } from "../../../host/kubernetes/kind-arrival.ts";
import type { KubeApi } from "../../../host/kubernetes/kube-api.ts";
import { METADATA } from "../../../host/kubernetes/kube-api.ts";
import { until } from "../../world/recorded-log.ts";
import { type StubAnswer, sendStatus, startStub } from "./stub-server.ts";

const event = (type: string) => `${JSON.stringify({ type, object: { metadata: { resourceVersion: "7" } } })}\n`;

/** Sends an event of the definition's watch. */
type Send = (type: string) => void;

async function open(answer?: StubAnswer) {
  let send: Send | undefined;
  const stub = await startStub((response, request) => {
    if (answer !== undefined) return answer(response, request);
    response.writeHead(200).flushHeaders();
    send = (type) => response.write(event(type));
  });
  const arrival = new KindArrival({ api: stub.client, path: "/apis/x.io/v1/things", random: () => 0.01 });
  onTestFinished(() => arrival.close());
  await until(() => stub.requests.length === 1, "the definition is watched");
  return { stub, arrival, send: (type: string) => (send ?? expect.unreachable())(type) };
}

/** It has been installed, and was read once. */
async function openInstalled() {
  const { arrival, send } = await open();
  const first = waitOf(arrival);
  send("ADDED");
  await first;
  return { arrival, send };
}

/** Returns the time until the next look: milliseconds. */
async function waitOf(arrival: KindArrival, longestMs = MISSING_KIND_RETRY_MS): Promise<number> {
  const startMs = performance.now();
  await arrival.next(longestMs, new AbortController().signal);
  return performance.now() - startMs;
}

it.each([
  ["/apis/k8s.cni.cncf.io/v1/network-attachment-definitions", "network-attachment-definitions.k8s.cni.cncf.io"],
  ["/apis/projectcalico.org/v3/ippools", "ippools.projectcalico.org"],
  ["/apis/networking.k8s.io/v1/servicecidrs", undefined],
  ["/apis/apps/v1/statefulsets", undefined],
  ["/api/v1/pods", undefined],
])("the definition behind the collection %s: %s is watched", async (path, name) => {
  const watched: unknown[] = [];
  const api: KubeApi = {
    call: async () => ({}),
    watch: async ({ query }) => void watched.push(query.fieldSelector),
    close: async () => {},
  };
  await new KindArrival({ api, path, random: () => 0.5 }).close();
  expect(watched).toEqual(name === undefined ? [] : [`metadata.name=${name}`]);
});

describe("a kind that is missing", () => {
  it("is read when it is installed, although no retry was due, and retried at growing intervals", async () => {
    const { arrival } = await openInstalled();
    const waits = [await waitOf(arrival), await waitOf(arrival)];
    for (const [index, waitMs] of waits.entries())
      expect(waitMs).toBeGreaterThanOrEqual(KIND_RETRY_SPREAD_MS * 2 ** index - 2);
  });

  it("that is uninstalled is no reason to read", async () => {
    const { arrival, send } = await open();
    send("DELETED");
    expect(await waitOf(arrival, 300)).toBeGreaterThanOrEqual(298);
  });

  it("is retried at intervals when the server refuses the watch, which is not requested again at once", async () => {
    const { stub, arrival } = await open((response) => sendStatus(response, 403, "Forbidden"));
    await waitOf(arrival, 300);
    expect(stub.requests.map(({ accept }) => accept)).toEqual([METADATA]);
  });
});
