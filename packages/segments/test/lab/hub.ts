/**
 * A hub for several clusters: an AddressRange with its RangeMembers, and an account for each (docs/clusters.md).
 *
 *   const spec = { subnet: "10.6.0.0/24", blockSize: 28 };
 *   await createRange(hub.client, "lan", spec, { east: 8, west: 8 });
 *   const kubeconfig = await hub.writeKubeconfig("east", { token: await addMember(hub.client, "east") });
 *   await applyHubRights(east.client);                   // as the chart does with the value hub.kubeconfigSecret
 *
 * Effects: writes accounts, bindings and objects.
 */

import { NAMESPACES, SYSTEM } from "../../../../test/lab/cluster/objects.ts";
import { createToken } from "../../../../test/lab/cluster/rights.ts";
import type { KubeClient, KubeObject } from "../../../../test/lab/kube-client.ts";
import { RANGES_MAP } from "../../blocks/own-ranges.ts";

export const RANGES = "/apis/ipam.vendor.io/v1/addressranges";
export const MEMBERS = "/apis/ipam.vendor.io/v1/rangemembers";
const GROUP = "rbac.authorization.k8s.io";
const ROLES = `/apis/${GROUP}/v1`;

/** `members`: the blocks that each may have, by name. */
export async function createRange(
  hub: KubeClient,
  name: string,
  spec: object,
  members: Readonly<Record<string, number>>,
): Promise<void> {
  await hub.create(RANGES, { apiVersion: "ipam.vendor.io/v1", kind: "AddressRange", metadata: { name }, spec });
  for (const [member, maxBlocks] of Object.entries(members))
    await hub.create(MEMBERS, memberObject(name, member, maxBlocks));
}

/** Returns the blocks that the members of the range have leased. */
export async function leasesOf(hub: KubeClient, range: string): Promise<string[]> {
  const { items } = await hub.get(MEMBERS);
  const members = items.filter(({ spec }: KubeObject) => spec.range === range);
  return members.flatMap(({ status }: KubeObject) => Object.keys(status?.blocks ?? {}));
}

export function memberObject(range: string, member: string, maxBlocks: number): KubeObject {
  const user = `system:serviceaccount:${SYSTEM}:${accountOf(member)}`;
  return {
    ...{ apiVersion: "ipam.vendor.io/v1", kind: "RangeMember", metadata: { name: `${range}.${member}` } },
    spec: { range, member, user, maxBlocks },
  };
}

function accountOf(member: string): string {
  return `range-${member}`;
}

/** Makes the member's account on the hub, and returns a token of it. */
export async function addMember(hub: KubeClient, member: string): Promise<string> {
  const account = accountOf(member);
  await hub.apply(`${NAMESPACES}/${SYSTEM}/serviceaccounts/${account}`, {
    ...{ apiVersion: "v1", kind: "ServiceAccount", metadata: { name: account, namespace: SYSTEM } },
  });
  await bind(hub, "berth-range-member", account);
  return createToken(hub, { account });
}

/** The rights of a cluster's controller at its hub, and the map of the cluster's memory. */
export async function applyHubRights(cluster: KubeClient): Promise<void> {
  await cluster.apply(`${NAMESPACES}/${SYSTEM}/configmaps/${RANGES_MAP}`, {
    ...{ apiVersion: "v1", kind: "ConfigMap", metadata: { name: RANGES_MAP } },
  });
  const rules = [
    { apiGroups: [""], resources: ["configmaps"], resourceNames: [RANGES_MAP], verbs: ["get", "patch"] },
    { apiGroups: [""], resources: ["namespaces"], resourceNames: [SYSTEM], verbs: ["get"] },
  ];
  await cluster.apply(`${ROLES}/clusterroles/berth-hub`, {
    ...{ apiVersion: `${GROUP}/v1`, kind: "ClusterRole", metadata: { name: "berth-hub" }, rules },
  });
  await bind(cluster, "berth-hub", "berth-controller");
}

async function bind(client: KubeClient, role: string, account: string): Promise<void> {
  const metadata = { name: `${account}-${role}` };
  await client.apply(`${ROLES}/clusterrolebindings/${metadata.name}`, {
    ...{ apiVersion: `${GROUP}/v1`, kind: "ClusterRoleBinding", metadata },
    roleRef: { apiGroup: GROUP, kind: "ClusterRole", name: role },
    subjects: [{ kind: "ServiceAccount", name: account, namespace: SYSTEM }],
  });
}
