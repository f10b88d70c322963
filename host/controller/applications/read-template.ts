/**
 * The annotations of a pod template, as far as they are about Subnets.
 * Called by kinds.ts and read-pod.ts.
 * Effects: none.
 */
import { ANNOTATION_PREFIX, decodePodAnnotations } from "../../config/annotations.ts";
import { ConfigError } from "../../config/config-error.ts";
import { DEFAULT_POOL_NUMBER } from "../../config/pool-number.ts";
import { MAX_APPLICATION_NICS } from "../../resources/limits.ts";
import type { SubnetTemplate } from "./tracked.ts";

type Annotations = Readonly<Record<string, string>>;

const SUBNET = `${ANNOTATION_PREFIX}subnet`;
const SUBNETS = `${ANNOTATION_PREFIX}subnets`;
const NETWORKS = "k8s.v1.cni.cncf.io/networks";

/** Where Multus looks for the network of the first NIC when no namespace is named. */
const META_NAMESPACE = "kube-system";

/** Of an object that nobody has decoded yet. */
export function namesSubnets(annotations: unknown): boolean {
  if (typeof annotations !== "object" || annotations === null) return false;
  return Object.hasOwn(annotations, SUBNET) || Object.hasOwn(annotations, SUBNETS);
}

/** Of pods in `namespace`. */
export function readTemplate(namespace: string, annotations: Annotations): SubnetTemplate {
  try {
    return decodeTemplate(namespace, annotations);
  } catch (error) {
    if (error instanceof ConfigError) return { kind: "fault", message: error.message };
    throw error;
  }
}

function decodeTemplate(home: string, annotations: Annotations): SubnetTemplate {
  const decoded = decodePodAnnotations(annotations);
  const { subnet, subnets, networks = [], defaultNetwork: first, ippoolIpNumber, ippoolReclaim } = decoded;
  if (subnets !== undefined) limit(SUBNETS, subnets.length);
  else limit(NETWORKS, networks.length + 1);
  return {
    kind: "wishes",
    ...{ subnet, subnets },
    first: first && `${first.namespace ?? META_NAMESPACE}/${first.name}`,
    others: networks.map(({ namespace = home, name, interface: ifName }, index) => ({
      ifName: ifName ?? `net${index + 1}`,
      attachment: `${namespace}/${name}`,
    })),
    number: ippoolIpNumber ?? DEFAULT_POOL_NUMBER,
    reclaim: ippoolReclaim ?? true,
  };
}

function limit(annotation: string, nics: number): void {
  if (nics <= MAX_APPLICATION_NICS) return;
  const mismatch = { path: "", got: `${nics} NICs`, wanted: `at most ${MAX_APPLICATION_NICS}` };
  throw new ConfigError(`annotation "${annotation}"`, [mismatch]);
}
