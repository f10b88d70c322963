/** The kept part of a pod in a namespace with a Service for its network. */
import * as z from "zod";
import {
  DEFAULT_NETWORK_ANNOTATION,
  MAX_ANNOTATION_LENGTH,
  NETWORKS_ANNOTATION,
} from "../../host/config/annotations.ts";
import type { Labels } from "../../host/config/label-selector.ts";
import {
  decodeNetworkSelections,
  definitionOf,
  META_NAMESPACE,
  type NetworkSelection,
  nicNameOf,
} from "../../host/config/network-selection.ts";
import { ifDecodable } from "../../host/controller/if-decodable.ts";
import type { KubeObject } from "../../host/kubernetes/kube-api.ts";

export interface BackendPod {
  readonly name: string;
  readonly uid: string;
  readonly labels: Labels;
  readonly node: string | undefined;
  /** The name that the pod has below the Service of the name `subdomain`. */
  readonly hostname: string | undefined;
  readonly subdomain: string | undefined;
  readonly isReady: boolean;
  readonly isEnding: boolean;
  /** Its NICs, in the order in which they are attached. */
  readonly nics: readonly {
    /** The definition's `namespace/name`. */
    readonly network: string;
    /** undefined: the first NIC. */
    readonly ifName: string | undefined;
  }[];
  /** Ports with a name. */
  readonly ports: readonly { readonly name: string; readonly protocol: string; readonly number: number }[];
}

const texts = z.record(z.string(), z.string()).catch({});
const text = z.string().optional().catch(undefined);

const port = z.object({ name: z.string().catch(""), protocol: z.string().catch("TCP"), containerPort: z.number() });

const containers = z.array(z.object({ restartPolicy: text, ports: z.array(port).catch([]) })).catch([]);

const pod = z.object({
  metadata: z.object({
    name: z.string(),
    namespace: z.string(),
    uid: z.string(),
    labels: texts,
    annotations: texts,
    deletionTimestamp: text,
  }),
  spec: z.object({ nodeName: text, hostname: text, subdomain: text, containers, initContainers: containers }),
  status: z
    .object({ conditions: z.array(z.object({ type: z.string(), status: z.string() })).catch([]) })
    .catch({ conditions: [] }),
});

/** Returns undefined for a pod that names no network, which costs no memory. */
export function decodeBackendPod(object: KubeObject): BackendPod | undefined {
  const { metadata, spec, status } = pod.parse(object);
  const nics = nicsOf(metadata);
  if (nics.length === 0) return undefined;
  // A container that is started first and goes on (a sidecar) has ports, too.
  const all = [...spec.containers, ...spec.initContainers.filter(({ restartPolicy }) => restartPolicy === "Always")];
  return {
    ...{ name: metadata.name, uid: metadata.uid, labels: metadata.labels, nics },
    ...{ node: spec.nodeName, hostname: spec.hostname, subdomain: spec.subdomain },
    isReady: status.conditions.some(({ type, status }) => type === "Ready" && status === "True"),
    isEnding: metadata.deletionTimestamp !== undefined,
    ports: all.flatMap(({ ports }) =>
      ports.flatMap(({ name, protocol, containerPort: number }) => (name === "" ? [] : [{ name, protocol, number }])),
    ),
  };
}

/** A pod whose annotations cannot be read has no NIC by them. */
function nicsOf({ namespace: home, annotations }: z.output<typeof pod>["metadata"]): BackendPod["nics"] {
  const read = (annotation: string): readonly NetworkSelection[] => {
    const text = annotations[annotation] ?? "";
    if (text.length > MAX_ANNOTATION_LENGTH) return [];
    return ifDecodable(() => decodeNetworkSelections(text, annotation)) ?? [];
  };
  const [first] = read(DEFAULT_NETWORK_ANNOTATION);
  return [
    ...(first === undefined ? [] : [{ network: definitionOf(first, META_NAMESPACE), ifName: undefined }]),
    ...read(NETWORKS_ANNOTATION).map((each, index) => ({
      network: definitionOf(each, home),
      ifName: nicNameOf(each, index),
    })),
  ];
}
