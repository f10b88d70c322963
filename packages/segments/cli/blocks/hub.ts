/** The hub as an administrator of it sees it, and the cluster that the command is for. */

import type { ClusterSource } from "../../../../host/cli/cluster-source.ts";
import type { CommandLine } from "../../../../host/cli/command-line.ts";
import { ProblemError, UsageError } from "../../../../host/cli/exit-code.ts";
import { CLUSTER_PATIENCE_MS, listObjects } from "../../../../host/cli/read-objects.ts";
import { type Patch, patchIfSame } from "../../../../host/controller/patch.ts";
import { readClusterId } from "../../../../host/kubernetes/cluster-id.ts";
import type { KubeApi } from "../../../../host/kubernetes/kube-api.ts";
import { CONFIG_MAPS, objectPath, statusPath } from "../../../../host/kubernetes/paths.ts";
import { ADDRESS_RANGES, RANGE_MEMBERS } from "../../../../host/resources/collections.ts";
import type { AddressRange } from "../../address-range.ts";
import type { SharedRange } from "../../blocks/hub.ts";
import { RANGES_MAP } from "../../blocks/own-ranges.ts";
import type { RangeMember } from "../../range-member.ts";

export interface HubFlags {
  readonly hubKubeconfig: string;
}

/** The hub and the own cluster of a command; both are closed at its end. */
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
  const hub = await cli.openCluster(hubKubeconfig);
  try {
    return await work({ hub: hub.api, own, cluster: await readClusterId(own.api, CLUSTER_PATIENCE_MS) });
  } finally {
    await Promise.allSettled([own.close(), hub.close()]);
  }
}

/** Writes the version that was read. Returns false if another writer was faster. */
export function writeRange(api: KubeApi, range: AddressRange, spec: object): Promise<boolean> {
  return write(api, range, { path: objectPath(ADDRESS_RANGES, range), body: { spec } });
}

/** As {@link writeRange}. */
export function writeMember(api: KubeApi, member: RangeMember, status: object): Promise<boolean> {
  return write(api, member, { path: statusPath(RANGE_MEMBERS, member), body: { status } });
}

type Change = Pick<Patch, "path" | "body">;

async function write(api: KubeApi, { uid, resourceVersion }: AddressRange | RangeMember, change: Change) {
  return (
    (await patchIfSame(api, { uid, resourceVersion, ...change, signal: AbortSignal.timeout(CLUSTER_PATIENCE_MS) })) !==
    undefined
  );
}

/** Returns the namespace of the cluster's memory. Rejects with ProblemError if its chart has no hub. */
export async function findMemory({ api }: ClusterSource): Promise<string> {
  const query = { fieldSelector: `metadata.name=${RANGES_MAP}` };
  const [map] = await listObjects(api, { resource: CONFIG_MAPS, query });
  const { namespace } = (map?.metadata ?? {}) as { readonly namespace?: string };
  if (namespace !== undefined) return namespace;
  throw new ProblemError(
    `The cluster has no ConfigMap ${RANGES_MAP}: set the chart's value hub.kubeconfigSecret first`,
  );
}

/**
 * Returns the cluster among the range's members; `given`: its name, as the user or its controller has said. A member
 * may write the UID of another cluster into its own object.
 */
export function memberOf({ range, members }: SharedRange, cluster: string, given: string | undefined): RangeMember {
  const known = members.filter(({ status }) => status.cluster === cluster);
  const names = known.map(({ spec }) => `"${spec.member}"`).join(", ");
  const about = `AddressRange "${range.name}"`;
  if (given === undefined && known.length > 1)
    throw new UsageError(`${about} has this cluster's UID for ${names}: give its own name with --member`);
  if (given === undefined && known.length === 0)
    throw new UsageError(`${about} does not know this cluster yet: give the name of its RangeMember with --member`);
  const member = given === undefined ? known[0] : members.find(({ spec }) => spec.member === given);
  if (member === undefined) throw new ProblemError(`${about} has no RangeMember "${given}"`);
  if (known.length > 0 && !known.includes(member))
    throw new ProblemError(`${about} knows this cluster as ${names}, not as "${given}"`);
  return member;
}
