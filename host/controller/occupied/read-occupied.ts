/**
 * Which addresses an EndpointSlice, a Service, and kubeadm's settings name. Entries that are malformed or no
 * addresses are left out.
 */
import * as z from "zod";
import { parseYaml } from "../../config/yaml.ts";
import type { KubeObject } from "../../kubernetes/kube-api.ts";

const texts = z.array(z.string()).catch([]);

const slice = z.object({ endpoints: z.array(z.object({ addresses: texts })).catch([]) });

/** Reads one of the API server's own EndpointSlices: the machines that run it. */
export function readEndpoints(object: KubeObject): readonly string[] {
  return slice.parse(object).endpoints.flatMap(({ addresses }) => addresses);
}

const service = z.object({
  spec: z.object({ externalIPs: texts, loadBalancerIP: z.string().optional().catch(undefined) }).partial(),
  status: z
    .object({ loadBalancer: z.object({ ingress: z.array(z.object({ ip: z.string().optional() })).catch([]) }) })
    .partial()
    .catch({}),
});

/** Reads a Service: the addresses that nodes, or a load balancer, answer for in its place. Undefined if it has none. */
export function readService(object: KubeObject): readonly string[] | undefined {
  const { spec, status } = service.parse(object);
  const ingress = status.loadBalancer?.ingress ?? [];
  const all = [...(spec.externalIPs ?? []), spec.loadBalancerIP, ...ingress.map(({ ip }) => ip)];
  const found = all.filter((text) => text !== undefined);
  return found.length === 0 ? undefined : [...new Set(found)];
}

const KEY = "ClusterConfiguration";

const kubeadmMap = z.object({ data: z.object({ [KEY]: z.string() }) });

const configuration = z.object({ controlPlaneEndpoint: z.string() });

/**
 * Reads the ConfigMap kubeadm-config: the host of `controlPlaneEndpoint`, which is a virtual address of the API
 * server or a name.
 */
export function readControlPlane(object: KubeObject): readonly string[] {
  const text = kubeadmMap.safeParse(object).data?.data[KEY];
  if (text === undefined) return [];
  const endpoint = configuration.safeParse(parseYaml(text, KEY)[0]?.value).data?.controlPlaneEndpoint;
  const host = /^(?:\[(?<six>[^\]]*)\]|(?<four>[^:]*))(?::\d+)?$/.exec(endpoint ?? "")?.groups;
  return [host?.six ?? host?.four ?? ""];
}
