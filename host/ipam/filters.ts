/** Why a pool must not serve a NIC: the filters in the order of docs/selection.md. The first rejection counts. */

import { type LabelSelector, matchLabels } from "../config/label-selector.ts";
import type { Family } from "../net/ip.ts";
import { describePoolOwner } from "../resources/fields/subnet-pool.ts";
import type { IpPool } from "../resources/ip-pool.ts";
import type { Labels, Subject } from "./model.ts";

/** Most nodes, namespaces or networks of a pool that the reason of a refusal lists. */
const MAX_SHOWN_NAMES = 8;

/** Why a pool may not serve a NIC. `brief`: without names of nodes, networks and other namespaces' objects. */
interface Objection {
  readonly refusal: string;
  readonly brief?: string;
}

/** Returns why a pool that a rule names may not serve the NIC; undefined if it may. Generated pools cannot be named. */
export function refusePool(pool: IpPool, subject: Subject, family: Family): Objection | undefined {
  const { generated } = pool.spec;
  if (generated === undefined) return refuseOwnPool(pool, subject, family);
  const refusal = `is generated for ${describePoolOwner(generated.application)}`;
  const isForeign = generated.application.namespace !== subject.pod?.namespace;
  return isForeign ? { refusal, brief: "is generated for a workload of another namespace" } : { refusal };
}

/**
 * Like {@link refusePool}, for a pool that was generated for the pod's own workload. Name lists take precedence over
 * the matching affinity.
 */
export function refuseOwnPool(pool: IpPool, subject: Subject, family: Family): Objection | undefined {
  const { spec } = pool;
  if (pool.deleting) return { refusal: "is being deleted" };
  if (spec.disable) return { refusal: "is disabled (spec.disable)" };
  if (spec.family !== family) return { refusal: `is an IPv${spec.family} pool, not IPv${family}` };
  if (tieRank(pool) === UNTIED) return undefined;
  return (
    refuseNode(pool, subject) ??
    refuseNamespace(pool, subject) ??
    refuseLabels("podAffinity", spec.podAffinity, subject.pod?.labels ?? {}, "pod") ??
    refuseNetwork(pool, subject)
  );
}

function refuseNode({ spec }: IpPool, { node }: Subject): Objection | undefined {
  if (node === undefined) return undefined;
  if (spec.nodeName.length > 0) {
    if (spec.nodeName.includes(node.name)) return undefined;
    const refusal = `nodeName is ${list(spec.nodeName)}, this node is "${node.name}"`;
    return { refusal, brief: "is for other nodes (spec.nodeName)" };
  }
  return refuseLabels("nodeAffinity", spec.nodeAffinity, node.labels, `node "${node.name}"`);
}

function refuseNamespace({ spec }: IpPool, { pod, namespace }: Subject): Objection | undefined {
  const name = pod?.namespace;
  if (spec.namespaceName.length > 0) {
    if (spec.namespaceName.some((each) => each === name)) return undefined;
    const refusal = `namespaceName is ${list(spec.namespaceName)}, the pod's namespace is ${quoteOrUnknown(name)}`;
    return { refusal, brief: "is for other namespaces (spec.namespaceName)" };
  }
  const labels = namespace?.labels ?? {};
  return refuseLabels("namespaceAffinity", spec.namespaceAffinity, labels, `namespace ${quoteOrUnknown(name)}`);
}

function refuseNetwork({ spec }: IpPool, { network, networkNames, pod }: Subject): Objection | undefined {
  if (spec.multusName.length === 0) return undefined;
  const names = networkNames ?? [network, ...networkNamesOf(pod, network)];
  if (spec.multusName.some((name) => names.includes(name))) return undefined;
  const refusal = `multusName is ${list(spec.multusName)}, the NIC's network is "${network}"`;
  return { refusal, brief: "is for other networks (spec.multusName)" };
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
): Objection | undefined {
  if (selector === undefined || matchLabels(selector, labels)) return undefined;
  return { refusal: `${field} does not match the labels of the ${whose}` };
}

function list(names: readonly string[]): string {
  const shown = names.slice(0, MAX_SHOWN_NAMES).map((name) => `"${name}"`);
  return [...shown, ...(names.length > shown.length ? [`and ${names.length - shown.length} more`] : [])].join(", ");
}

function quoteOrUnknown(name: string | undefined): string {
  return name === undefined ? "unknown" : `"${name}"`;
}

/** The rank of a pool that serves any pod. */
const UNTIED = 6;

/** Returns the rank of a pool among cluster defaults: the more specific its restriction, the smaller. */
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
  return first < 0 ? UNTIED : first;
}
