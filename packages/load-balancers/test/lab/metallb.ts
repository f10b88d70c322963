/** The place of MetalLB, and the chart's rights there, for the controller's tests with it. */
import { parseAllDocuments } from "yaml";
import { copyChart, PLAIN_RELEASE, renderChart } from "../../../../scripts/chart/helm.ts";
import { applyObject } from "../../../../test/lab/apply.ts";
import type { KubeClient, KubeObject } from "../../../../test/lab/kube-client.ts";

export const METALLB_NAMESPACE = "metallb-system";
export const METALLB_PATH = `/apis/metallb.io/v1beta1/namespaces/${METALLB_NAMESPACE}`;
export const METALLB_BINDING = `/apis/rbac.authorization.k8s.io/v1/namespaces/${METALLB_NAMESPACE}/rolebindings/berth-controller-metallb`;
const CONTROLLER_ROLE = "/apis/rbac.authorization.k8s.io/v1/clusterroles/berth-controller";

/** The namespace must exist. */
export async function grantMetallb(client: KubeClient): Promise<void> {
  using chart = copyChart();
  const text = renderChart(chart, PLAIN_RELEASE, "--set", `metallb.namespace=${METALLB_NAMESPACE}`);
  for (const document of parseAllDocuments(text.get("controller.yaml") ?? "")) {
    const object = document.toJS();
    if (object.metadata.namespace === METALLB_NAMESPACE) await applyObject(client, object);
  }
}

/** Runs `meanwhile` while the controller may write no Service's status. */
export async function withoutStatus(client: KubeClient, meanwhile: () => Promise<void>): Promise<void> {
  const { rules } = await client.get(CONTROLLER_ROLE);
  const others = rules.filter(({ resources }: KubeObject) => !resources.includes("services/status"));
  await client.patch(CONTROLLER_ROLE, { rules: others });
  await meanwhile();
  await client.patch(CONTROLLER_ROLE, { rules });
}

/** The objects for MetalLB: addresses of each pool, and pools of each advertisement. */
export async function metallbObjects(client: KubeClient): Promise<string[]> {
  const pools = (await client.get(`${METALLB_PATH}/ipaddresspools`)).items;
  const advertisements = (await client.get(`${METALLB_PATH}/l2advertisements`)).items;
  return [
    ...pools.map(({ metadata, spec }: KubeObject) => `${metadata.name} ${spec.autoAssign} ${spec.addresses}`),
    ...advertisements.map(({ metadata, spec }: KubeObject) => `${metadata.name} ${spec.ipAddressPools}`),
  ];
}
