/** The form in which addresses are exported; docs/records.md promises it. */

import { parseIp } from "../../../../host/net/ip.ts";
import { formatPrefix, maskPrefix } from "../../../../host/net/prefix.ts";
import type { AllocationRecord } from "../../../../host/records/allocation-record.ts";
import { NO_NODE } from "../../../../host/resources/ip-allocation.ts";
import { describeWorkload } from "../../../../host/resources/member.ts";
import { podDnsName } from "./dns-name.ts";

/** Columns of CSV and keys of JSON, in this order. More may be added at the end within {@link FORM_VERSION}. */
export const FIELDS = [
  "address",
  "prefixLength",
  "subnet",
  "addressSpace",
  "pool",
  "state",
  "namespace",
  "pod",
  "interface",
  "node",
  "mac",
  "dnsName",
  "retainedFor",
  "cluster",
  "since",
] as const;

/** `version` of JSON. */
export const FORM_VERSION = 1;

/** Texts are empty where nothing is known. */
export type AddressRow = Readonly<Record<(typeof FIELDS)[number], string>>;

/** The change of a watched address: `present` is the first list. */
export type Change = "present" | "added" | "changed" | "removed";

/** The names in an export. */
interface Naming {
  /** The domain of the pods' names, without a dot at the end; "": names end in the namespace. */
  readonly origin: string;
  /** Written into each row. */
  readonly cluster: string;
}

export function addressRow(record: AllocationRecord, { origin, cluster }: Naming): AddressRow {
  const { address, prefixLength, addressSpace, pool, state, namespace, pod, node = "", since = "" } = record;
  const { workload, quarantine } = record;
  const ip = parseIp(address);
  const hasSubnet = ip !== undefined && prefixLength !== undefined;
  const name = boundName(record);
  return {
    address,
    prefixLength: String(prefixLength ?? ""),
    subnet: hasSubnet ? formatPrefix(maskPrefix({ ip, length: prefixLength })) : "",
    ...{ addressSpace, pool, state, namespace, pod, cluster, since, node: node === NO_NODE ? "" : node },
    interface: record.interface,
    mac: quarantine?.mac || record.mac || "",
    dnsName: name === undefined ? "" : [name, origin].filter((part) => part !== "").join("."),
    retainedFor: workload === undefined ? "" : describeWorkload({ ...workload, name: workload.member }),
  };
}

/** Returns the name of the pod that has the address; undefined if none has it. */
export function boundName({ state, pod, namespace }: AllocationRecord): string | undefined {
  return state === "Bound" ? podDnsName(pod, namespace) : undefined;
}
