/**
 * Why a pool must not serve a NIC: each filter in the order of docs/selection.md, the first that objects wins.
 * Called by selection.ts.
 * Effects: none.
 */
import { type LabelSelector, matchLabels } from "../config/label-selector.ts";
import type { Family } from "../net/ip.ts";
import { describeApplication } from "../resources/fields/generated.ts";
import type { IpPool } from "../resources/ip-pool.ts";
import { familyName, type Labels, type Subject } from "./model.ts";

type Filter = (pool: IpPool, subject: Subject, family: Family) => string | undefined;

/** In this order a refusal is reported. Name lists win over the matching affinity. */
const FILTERS: readonly Filter[] = [
  (pool) => (pool.deleting ? "is being deleted" : undefined),
  (pool) => (pool.spec.disable ? "is disabled (spec.disable)" : undefined),
  (pool, _subject, family) =>
    pool.spec.family === family ? undefined : `is an ${familyName(pool.spec.family)} pool, not ${familyName(family)}`,
  refuseNode,
  refuseNamespace,
  refusePod,
  refuseNetwork,
];

/** The reason why a pool that some rule names may not serve the NIC, or undefined when it may. Pools of Subnets are nobody's to name. */
export function refusePool(pool: IpPool, subject: Subject, family: Family): string | undefined {
  const { generated } = pool.spec;
  if (generated !== undefined) return `is generated for ${describeApplication(generated.application)}`;
  return refuseOwnPool(pool, subject, family);
}

/** The same for a pool that was generated for the pod's own workload. */
export function refuseOwnPool(pool: IpPool, subject: Subject, family: Family): string | undefined {
  for (const filter of FILTERS) {
    const reason = filter(pool, subject, family);
    if (reason !== undefined) return reason;
  }
  return undefined;
}

function refuseNode({ spec }: IpPool, { node }: Subject): string | undefined {
  if (spec.nodeName.length > 0) {
    if (spec.nodeName.includes(node.name)) return undefined;
    return `nodeName is ${list(spec.nodeName)}, this node is "${node.name}"`;
  }
  return refuseLabels("nodeAffinity", spec.nodeAffinity, node.labels, `node "${node.name}"`);
}

function refuseNamespace({ spec }: IpPool, { pod, namespace }: Subject): string | undefined {
  const name = pod?.namespace;
  if (spec.namespaceName.length > 0) {
    if (name !== undefined && spec.namespaceName.includes(name)) return undefined;
    return `namespaceName is ${list(spec.namespaceName)}, the pod's namespace is ${quoteOrUnknown(name)}`;
  }
  const labels = namespace?.labels ?? {};
  return refuseLabels("namespaceAffinity", spec.namespaceAffinity, labels, `namespace ${quoteOrUnknown(name)}`);
}

function refusePod({ spec }: IpPool, { pod }: Subject): string | undefined {
  return refuseLabels("podAffinity", spec.podAffinity, pod?.labels ?? {}, "pod");
}

function refuseNetwork({ spec }: IpPool, { network, networkNames, pod }: Subject): string | undefined {
  if (spec.multusName.length === 0) return undefined;
  const names = networkNames ?? [network, ...networkNamesOf(pod, network)];
  if (spec.multusName.some((name) => names.includes(name))) return undefined;
  return `multusName is ${list(spec.multusName)}, the NIC's network is "${network}"`;
}

/** A network-attachment definition may be named with its namespace; the CNI configuration carries only its name. */
function networkNamesOf(pod: Subject["pod"], network: string): string[] {
  if (pod === undefined) return [];
  const attached = (pod.annotations.networks ?? []).filter(({ name }) => name === network);
  return [
    ...attached.map(({ namespace }) => `${namespace ?? pod.namespace}/${network}`),
    `${pod.namespace}/${network}`,
  ];
}

function refuseLabels(
  field: string,
  selector: LabelSelector | undefined,
  labels: Labels,
  whose: string,
): string | undefined {
  if (selector === undefined || matchLabels(selector, labels)) return undefined;
  return `${field} does not match the labels of the ${whose}`;
}

function list(names: readonly string[]): string {
  return names.map((name) => `"${name}"`).join(", ");
}

function quoteOrUnknown(name: string | undefined): string {
  return name === undefined ? "unknown" : `"${name}"`;
}

/** How specifically a pool is tied, for the order among cluster defaults: the smaller the more specific. */
export function tieRank({ spec }: IpPool): number {
  const ties = [
    spec.podAffinity !== undefined,
    spec.nodeName.length > 0,
    spec.nodeAffinity !== undefined,
    spec.namespaceName.length > 0,
    spec.namespaceAffinity !== undefined,
    spec.multusName.length > 0,
  ];
  const first = ties.indexOf(true);
  return first < 0 ? ties.length : first;
}
