/** A Service without a selector whose annotations name a network and the pods on it. */
import * as z from "zod";
import { decodeServiceAnnotations, type ServiceTarget } from "../../host/config/annotations.ts";
import { ConfigError } from "../../host/config/config-error.ts";
import type { KubeObject } from "../../host/kubernetes/kube-api.ts";
import { FAMILIES, type Family } from "../../host/net/ip.ts";

interface ServicePort {
  readonly name: string;
  readonly protocol: string;
  /** A number, or the name of a port of the pod's containers. */
  readonly target: number | string;
  readonly appProtocol?: string | undefined;
}

interface ServiceName {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

export interface NetworkService extends ServiceName, ServiceTarget {
  readonly families: readonly Family[];
  readonly ports: readonly ServicePort[];
  /** `publishNotReadyAddresses` */
  readonly isForAll: boolean;
  readonly fault?: undefined;
}

/** One that gets no EndpointSlices. */
export interface FaultyService extends ServiceName {
  /** Why: a sentence without a full stop. */
  readonly fault: string;
}

const port = z.object({
  name: z.string().catch(""),
  protocol: z.string().catch("TCP"),
  port: z.number(),
  targetPort: z.union([z.number(), z.string()]).optional().catch(undefined),
  appProtocol: z.string().optional().catch(undefined),
});

const service = z.object({
  metadata: z.object({
    namespace: z.string(),
    name: z.string(),
    uid: z.string(),
    annotations: z.record(z.string(), z.string()).catch({}),
  }),
  spec: z.object({
    selector: z.record(z.string(), z.string()).catch({}),
    type: z.string().catch("ClusterIP"),
    ipFamilies: z.array(z.string()).catch([]),
    ports: z.array(port).catch([]),
    publishNotReadyAddresses: z.boolean().catch(false),
  }),
});

/** Returns undefined for a Service without the annotations, which costs no memory. */
export function decodeNetworkService(object: KubeObject): NetworkService | FaultyService | undefined {
  const { metadata, spec } = service.parse(object);
  const { annotations, ...name } = metadata;
  try {
    const target = decodeServiceAnnotations(annotations);
    if (target === undefined) return undefined;
    if (Object.keys(spec.selector).length > 0)
      return {
        ...name,
        fault: "It has spec.selector, by which Kubernetes writes its endpoints; remove one of the two",
      };
    if (spec.type === "ExternalName") return { ...name, fault: "Of type ExternalName it has no endpoints" };
    const families = FAMILIES.filter((family) => spec.ipFamilies.includes(`IPv${family}`));
    return {
      ...name,
      ...target,
      families: families.length === 0 ? FAMILIES : families,
      ports: spec.ports.map(({ port, targetPort, ...rest }) => ({
        ...rest,
        // 0 is Go's zero value: not set.
        target: targetPort === undefined || targetPort === 0 ? port : targetPort,
      })),
      isForAll: spec.publishNotReadyAddresses,
    };
  } catch (error) {
    if (error instanceof ConfigError) return { ...name, fault: error.message };
    throw error;
  }
}
