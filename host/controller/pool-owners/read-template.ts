/**
 * The annotations of a pod template, as far as they are about Subnets.
 */
import { ANNOTATION_PREFIX, type AnnotationRules, decodePodAnnotations } from "../../config/annotations.ts";
import { ConfigError } from "../../config/config-error.ts";
import { DEFAULT_POOL_NUMBER } from "../../config/pool-number.ts";
import type { DemandSettings } from "../types.ts";
import type { SubnetTemplate } from "./tracked.ts";

/** Most NICs of a workload's pods for which pools are generated. @limit */
export const MAX_APPLICATION_NICS = 32;

type Annotations = Readonly<Record<string, string>>;

const SUBNET = `${ANNOTATION_PREFIX}subnet`;
const SUBNETS = `${ANNOTATION_PREFIX}subnets`;
const NETWORKS = "k8s.v1.cni.cncf.io/networks";

/** Where Multus looks for the network of the first NIC when no namespace is named. */
const META_NAMESPACE = "kube-system";

/** What is read beside Berth's own. */
const READ = [NETWORKS, "v1.multus-cni.io/default-network"];

/** Of an object that nobody has decoded yet. */
export function namesSubnets(annotations: unknown): boolean {
  if (typeof annotations !== "object" || annotations === null) return false;
  return Object.hasOwn(annotations, SUBNET) || Object.hasOwn(annotations, SUBNETS);
}

/** Of pods in `namespace`, whatever the settings. */
export function readTemplate(namespace: string, annotations: Annotations): SubnetTemplate {
  return decodeOrBlame(namespace, annotations);
}

/** The same with settings: a disabled family may hold anything. Gives back what is no fault. */
export function settleTemplate(template: SubnetTemplate, settings: DemandSettings): SubnetTemplate {
  if (template.kind === "wishes" || template.of === undefined) return template;
  return decodeOrBlame(template.of.namespace, template.of.annotations, { ...settings, enableSubnet: true });
}

function decodeOrBlame(namespace: string, annotations: Annotations, rules?: AnnotationRules): SubnetTemplate {
  try {
    return decodeTemplate(namespace, annotations, rules);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const own = Object.entries(annotations).filter(([key]) => key.startsWith(ANNOTATION_PREFIX) || READ.includes(key));
    return { kind: "fault", message: error.message, of: { namespace, annotations: Object.fromEntries(own) } };
  }
}

function decodeTemplate(home: string, annotations: Annotations, rules?: AnnotationRules): SubnetTemplate {
  const decoded = decodePodAnnotations(annotations, rules);
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
