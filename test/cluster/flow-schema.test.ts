import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { KubeCall } from "../../host/kubernetes/kube-api.ts";
import { root } from "../../scripts/setup/paths.mjs";
import { applyFile } from "../lab/apply.ts";
import { connectClient } from "../lab/cluster/in-process.ts";
import { createToken } from "../lab/cluster/rights.ts";
import type { ControlPlane } from "../lab/control-plane.ts";
import { borrowPlane } from "./borrow-plane.ts";

const ALLOCATIONS = "/apis/ipam.vendor.io/v1/ipallocations";
const FLOW_CONTROL = "/apis/flowcontrol.apiserver.k8s.io/v1";

let plane: ControlPlane;
beforeAll(async () => {
  plane = await borrowPlane();
  const metadata = { name: "other", namespace: "kube-system" };
  await plane.client.create("/api/v1/namespaces/kube-system/serviceaccounts", { metadata });
  await applyFile(plane.client, join(root, "deploy", "flowschema.yaml"));
});
afterAll(async () => {
  // The next borrower has none.
  for (const plural of ["flowschemas", "prioritylevelconfigurations"])
    await plane?.client.delete(`${FLOW_CONTROL}/${plural}/berth-claims`);
  await plane?.stop();
});

/** The name of the FlowSchema that the API server counts the account's call to. */
async function schemaOf(account: string, call: KubeCall): Promise<string> {
  const kubeconfig = await plane.writeKubeconfig(account, { token: await createToken(plane.client, { account }) });
  const api = await connectClient(kubeconfig);
  let uid = "";
  const onHeaders = (message: unknown): void => {
    const headers: readonly Buffer[] = Object(message).response?.headers ?? [];
    const texts = headers.map((header) => `${header}`);
    uid = texts[texts.findIndex((text) => text.toLowerCase() === "x-kubernetes-pf-flowschema-uid") + 1] ?? "";
  };
  subscribe("undici:request:headers", onHeaders);
  try {
    // A request without rights is sorted in before it is refused.
    await api.call({ ...call, patienceMs: 0 }).catch(() => {});
  } finally {
    unsubscribe("undici:request:headers", onHeaders);
    await api.close();
  }
  const { items } = await plane.client.get(`${FLOW_CONTROL}/flowschemas`);
  return String(items.find((each: { metadata: { uid: string } }) => each.metadata.uid === uid)?.metadata.name);
}

it("exhaustion: the agents' claims have a priority level of their own, and nothing else has", async () => {
  const get: KubeCall = { method: "GET", path: `${ALLOCATIONS}/10.0.0.1` };
  // The API server takes a schema in a moment after it was written.
  await expect.poll(() => schemaOf("berth-agent", get), { timeout: 30_000 }).toBe("berth-claims");
  expect(await schemaOf("berth-agent", { method: "POST", path: ALLOCATIONS, body: {} })).toBe("berth-claims");
  expect(await schemaOf("berth-agent", { method: "GET", path: ALLOCATIONS })).toBe("berth-claims");
  expect(await schemaOf("berth-agent", { method: "GET", path: "/api/v1/namespaces/shop/pods/web-0" })).toBe(
    "berth-claims",
  );
  expect(await schemaOf("berth-agent", { method: "GET", path: "/apis/ipam.vendor.io/v1/ippools" })).toBe(
    "kube-system-service-accounts",
  );
  expect(await schemaOf("other", get)).toBe("kube-system-service-accounts");
});
