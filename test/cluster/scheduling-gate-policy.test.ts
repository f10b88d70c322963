/** The chart's MutatingAdmissionPolicy, which sets the scheduling gate of pods, on an API server that has its kind. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { copyChart, PLAIN_RELEASE, renderChart } from "../../scripts/chart/helm.ts";
import { applyObject } from "../lab/apply.ts";
import { NAMESPACES, namespaceObject, podObject } from "../lab/cluster/objects.ts";
import { type ControlPlane, startControlPlane } from "../lab/control-plane.ts";

let plane: ControlPlane;

beforeAll(async () => {
  const serverArgs = [
    "--feature-gates=MutatingAdmissionPolicy=true",
    "--runtime-config=admissionregistration.k8s.io/v1beta1=true",
  ];
  plane = await startControlPlane({ serverArgs });
  const { client } = plane;
  using chart = copyChart();
  const files = renderChart(chart, PLAIN_RELEASE, "--set", "schedulingGate.enabled=true");
  for (const document of parseAllDocuments(files.get("scheduling-gate.yaml") ?? ""))
    await applyObject(client, document.toJS());
  const labels = { "ipam.vendor.io/scheduling-gate": "enabled" };
  await client.create(NAMESPACES, namespaceObject("gated", { labels }));
  await client.create(NAMESPACES, namespaceObject("shop"));
});
afterAll(() => plane?.stop());

async function gatesOf(namespace: string, name: string, spec: object = {}): Promise<string[]> {
  const pod = podObject({ name, namespace, node: "n1" });
  const wanted = { ...pod, spec: { ...pod.spec, nodeName: undefined, ...spec } };
  const made = await plane.client.create(`${NAMESPACES}/${namespace}/pods`, wanted);
  return (made.spec.schedulingGates ?? []).map((gate: { readonly name: string }) => gate.name);
}

it("new pods of a namespace with the label get the gate beside others, and no pods that need none", async () => {
  let attempts = 0;
  // The policy counts a moment after it was made.
  await expect
    .poll(() => gatesOf("gated", `web-${attempts++}`), { timeout: 30_000 })
    .toEqual(["ipam.vendor.io/address"]);
  expect(await gatesOf("gated", "two", { schedulingGates: [{ name: "example.com/other" }] })).toEqual([
    "example.com/other",
    "ipam.vendor.io/address",
  ]);
  expect(await gatesOf("gated", "own", { schedulingGates: [{ name: "ipam.vendor.io/address" }] })).toHaveLength(1);
  expect(await gatesOf("gated", "placed", { nodeName: "n1" })).toEqual([]);
  expect(await gatesOf("gated", "host", { hostNetwork: true })).toEqual([]);
  expect(await gatesOf("shop", "web")).toEqual([]);
});
