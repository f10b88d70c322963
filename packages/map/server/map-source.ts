/**
 * The port of the address map: pools and addresses as agent and controller know them. Implementations:
 * embedded-source.ts, cluster-source.ts.
 */
import type { Ip } from "../../../host/net/ip.ts";
import type { Prefix } from "../../../host/net/prefix.ts";
import type { Range } from "../../../host/net/range.ts";
import type { AuditLine } from "../../../host/records/audit-line.ts";
import type { ExplanationRecord } from "../../../host/records/explanation-record.ts";
import type { Holder, IpAllocationSpec } from "../../../host/resources/ip-allocation.ts";
import type { OccupiedIp } from "../../../host/resources/occupied-ips.ts";
import type { OtherMember } from "../../../host/resources/pool-source.ts";

interface PoolCondition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
}

export interface MapPool {
  readonly name: string;
  readonly subnet: Prefix;
  readonly addressSpace: string;
  /** Ascending and disjoint, as `excluded`. */
  readonly ranges: readonly Range[];
  readonly excluded: readonly Range[];
  readonly gateway: Ip | undefined;
  /** The blocks of other clusters, for a pool that leases blocks. */
  readonly elsewhere?: readonly OtherMember[] | undefined;
  /** Addresses of its ranges that routers and other machines have, with the reasons. */
  readonly exceptions: readonly OccupiedIp[];
  readonly isDefault: boolean;
  readonly isDisabled: boolean;
  /** The Subnet and the workload of a generated pool. */
  readonly generated: { readonly subnet: string; readonly owner: string; readonly namespace: string } | undefined;
  readonly conditions: readonly PoolCondition[];
}

export interface MapReservation {
  readonly name: string;
  readonly addressSpace: string;
  readonly ranges: readonly Range[];
}

type Quarantine = NonNullable<IpAllocationSpec["quarantine"]>;
type MapHolder = Pick<Holder, "namespace" | "pod" | "ifName" | "node">;

/** An address that is not free. */
export interface MapAllocation extends Pick<IpAllocationSpec, "ip" | "addressSpace" | "pool" | "state" | "workload"> {
  readonly holders: readonly MapHolder[];
  readonly quarantine?: (Pick<Quarantine, "mac"> & { readonly holder?: MapHolder | undefined }) | undefined;
  /** MAC address of the NIC, where it is known. */
  readonly mac?: string | undefined;
  /** Time of the last transition, RFC 3339, where it is known. */
  readonly since?: string | undefined;
}

/** An address that was claimed, released or changed. */
export interface MapChange {
  readonly ip: Ip;
  readonly addressSpace: string;
  /** If undefined, it is free now. */
  readonly allocation: MapAllocation | undefined;
}

/** The questions that only agents can answer. An abort ends the work for them, also the agents'. */
export interface MapQuestions {
  /** Returns the explanation of the answer that an ADD of the pod would get now. */
  explain(pod: PodName, signal: AbortSignal): Promise<ExplanationRecord>;
  /** Which pods had the address, from the audit logs: the newest lines of each node; they ascend by time. */
  history(address: Ip, signal: AbortSignal): Promise<AddressHistory>;
}

export interface PodName {
  readonly namespace: string;
  readonly name: string;
}

export interface AddressHistory {
  readonly lines: readonly AuditLine[];
  /** Why lines may be missing: sentences. */
  readonly problems: readonly string[];
}

export interface MapSource {
  readonly mode: "embedded" | "cluster";
  /** Resolves when the rest is no more than a second old. */
  refresh(): Promise<void>;
  pools(): readonly MapPool[];
  reserved(): readonly MapReservation[];
  allocations(): Iterable<MapAllocation>;
  /** Sentences. */
  problems(): readonly string[];
  /** Calls the listener after each change. Returns the function that ends the subscription. */
  subscribe(listener: (change: MapChange) => void): () => void;
  /** Returns the namespace's creation time, RFC 3339: earlier records are not its own. Undefined: unknown. */
  namespaceSince?(namespace: string): string | undefined;
  /** Absent where no agent can be asked. */
  readonly questions?: MapQuestions | undefined;
}
