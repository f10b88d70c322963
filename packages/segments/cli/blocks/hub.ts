/** The hub as an administrator of it sees it, and the cluster that the command is for. */

import {
  CLUSTER_PATIENCE_MS,
  type ClusterSource,
  listObjects,
  openClusterSource,
  readObjects,
} from "../../../../host/cli/cluster-source.ts";
import type { CommandLine } from "../../../../host/cli/command-line.ts";
import { ProblemError, UsageError } from "../../../../host/cli/exit-code.ts";
import { readClusterId } from "../../../../host/kubernetes/cluster-id.ts";
import { isConflict, type KubeApi } from "../../../../host/kubernetes/kube-api.ts";
import { CONFIG_MAPS, objectPath, statusPath } from "../../../../host/kubernetes/paths.ts";
import { ADDRESS_RANGES } from "../../../../host/resources/collections.ts";
import { type AddressRange, decodeAddressRange } from "../../address-range.ts";
import { OwnRanges, RANGES_MAP } from "../../blocks/own-ranges.ts";

export interface HubFlags {
  readonly hubKubeconfig: string;
}

/** What a command works with; both are closed at its end. */
export interface Places {
  readonly hub: KubeApi;
  readonly own: ClusterSource;
  /** UID of the cluster's namespace kube-system. */
  readonly cluster: string;
}

/** Rejects with UsageError if the command is not for a cluster. */
export async function withPlaces<T>(
  cli: CommandLine,
  { hubKubeconfig }: HubFlags,
  work: (places: Places) => Promise<T>,
): Promise<T> {
  if (!cli.isCluster) throw new UsageError("blocks needs a cluster: give --kubeconfig or --context");
  const own = await cli.openCluster();
  const hub = await openClusterSource({
    ...{ kubeconfig: [hubKubeconfig], context: undefined, userAgent: `berthctl/${cli.version}` },
  });
  try {
    return await work({ hub: hub.api, own, cluster: await readClusterId(own.api, CLUSTER_PATIENCE_MS) });
  } finally {
    await Promise.allSettled([own.close(), hub.close()]);
  }
}

const nameOf = (range: string): string => `AddressRange "${range}"`;

export async function readRange(hub: Pick<KubeApi, "call">, name: string): Promise<AddressRange> {
  const path = objectPath(ADDRESS_RANGES, { name });
  return decodeAddressRange(await hub.call({ method: "GET", path, patienceMs: CLUSTER_PATIENCE_MS }), nameOf(name));
}

export function listRanges(hub: KubeApi): Promise<readonly AddressRange[]> {
  return readObjects(hub, { resource: ADDRESS_RANGES }, (object) => decodeAddressRange(object, "AddressRange"));
}

/** Writes the status, or else the spec, of the version that was read. Returns whether nobody else has written since. */
export async function writeRange(
  hub: Pick<KubeApi, "call">,
  { name, uid, resourceVersion }: AddressRange,
  change: { readonly status: object } | { readonly spec: object },
): Promise<boolean> {
  const path = "status" in change ? statusPath(ADDRESS_RANGES, { name }) : objectPath(ADDRESS_RANGES, { name });
  try {
    await hub.call({ method: "PATCH", path, body: { metadata: { uid, resourceVersion }, ...change } });
    return true;
  } catch (error) {
    if (isConflict(error)) return false;
    throw error;
  }
}

/** Opens what the cluster remembers of its ranges. Rejects with ProblemError if its chart has no hub. */
export async function openOwnRanges({ api }: ClusterSource): Promise<OwnRanges> {
  const query = { fieldSelector: `metadata.name=${RANGES_MAP}` };
  const [map] = await listObjects(api, { resource: CONFIG_MAPS, query });
  const { namespace } = (map?.metadata ?? {}) as { readonly namespace?: string };
  if (namespace !== undefined) return new OwnRanges(api, namespace);
  throw new ProblemError(
    `The cluster has no ConfigMap ${RANGES_MAP}: set the chart's value hub.kubeconfigSecret first`,
  );
}

/** Returns the cluster's name among the range's members; `given`: the one that the user wrote. */
export function memberOf({ name, spec, status }: AddressRange, cluster: string, given: string | undefined): string {
  const [known] = Object.entries(status.members).find(([, member]) => member.cluster === cluster) ?? [];
  if (known !== undefined && given !== undefined && known !== given)
    throw new ProblemError(`${nameOf(name)} knows this cluster as "${known}", not as "${given}"`);
  const member = known ?? given;
  if (member === undefined)
    throw new UsageError(`${nameOf(name)} does not know this cluster yet: give its name in spec.members with --member`);
  if (!spec.members.some((each) => each.name === member))
    throw new ProblemError(`${nameOf(name)} has no member "${member}" in spec.members`);
  return member;
}
