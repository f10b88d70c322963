/** MAC addresses of pods' NICs, which no record has in a cluster: Multus shows them in an annotation of each pod. */
import * as z from "zod";
import { listObjects } from "../../../../host/cli/read-objects.ts";
import { isForbidden, type KubeApi } from "../../../../host/kubernetes/kube-api.ts";
import { PODS } from "../../../../host/kubernetes/paths.ts";
import { orElse } from "../../../../host/lib/try-or.ts";
import { formatIp, parseIp } from "../../../../host/net/ip.ts";
import type { AllocationRecord } from "../../../../host/records/allocation-record.ts";
import { readNetworkStatus } from "../../../../host/resources/network-status.ts";

const podSchema = z.object({
  metadata: z.object({ namespace: z.string(), name: z.string(), annotations: z.record(z.string(), z.string()) }),
});

/** Returns the records with the MAC addresses that are known; as they are if the account may not list pods. */
export async function withMacs(api: KubeApi, records: readonly AllocationRecord[]) {
  const pods = await listObjects(api, { resource: PODS }).catch(orElse(isForbidden, []));
  const macs = new Map(pods.flatMap(macsOf));
  return records.map((record) => {
    const mac = record.state === "Bound" ? macs.get(keyOf(record)) : undefined;
    return mac === undefined ? record : { ...record, mac };
  });
}

function macsOf(pod: unknown): [string, string][] {
  const { data } = podSchema.safeParse(pod);
  if (data === undefined) return [];
  const { namespace, name, annotations } = data.metadata;
  return readNetworkStatus(annotations).flatMap(({ mac, ips }) =>
    mac === undefined ? [] : ips.map((address): [string, string] => [keyOf({ namespace, pod: name, address }), mac]),
  );
}

function keyOf({ namespace, pod, address }: Pick<AllocationRecord, "namespace" | "pod" | "address">): string {
  const ip = parseIp(address);
  return `${namespace}/${pod} ${ip && formatIp(ip)}`;
}
