/** The state of each address that is kept without a pod, or for an owner: ReservedIPs beside the records. */
import { parseIp } from "../net/ip.ts";
import { parseRange, rangeContains } from "../net/range.ts";
import type { AllocationRecord } from "../records/allocation-record.ts";
import type { ReservationRecord } from "../records/reservation-record.ts";
import { isMachines, NO_NODE } from "../resources/ip-allocation.ts";
import { describeWorkload } from "../resources/member.ts";
import { describeOwner as describeReservedOwner, ownNames } from "../resources/reserved-ip.ts";
import { describeOwner } from "./allocation-table.ts";
import type { Table } from "./output.ts";

export const RESERVATION_TABLE: Table<Reservation> = {
  nameOf: ({ name, address }) => name ?? address,
  columns: [
    { title: "ADDRESS", cell: ({ address }) => address },
    { title: "SPACE", cell: ({ addressSpace }) => addressSpace, isWide: true },
    { title: "POOL", cell: ({ pool }) => pool },
    { title: "FOR", cell: ({ owner }) => owner },
    { title: "STATE", cell: ({ state }) => state },
    { title: "SINCE", cell: ({ since }) => since, isOptional: true },
    { title: "UNTIL", cell: ({ until }) => until, isOptional: true },
    { title: "DETAILS", cell: ({ details }) => details },
    { title: "RESERVEDIP", cell: ({ name }) => name, isWide: true },
  ],
};

type Reservation = ReturnType<typeof describeReserved>;

/** Returns one for each ReservedIP, then one for each further record without a pod. */
export function listReservations(
  reserved: readonly ReservationRecord[],
  allocations: readonly AllocationRecord[],
): Reservation[] {
  const held = allocations.filter(({ state }) => state !== "Cooling");
  const ips = new Map(held.map((each) => [each, parseIp(each.address)]));
  const said = new Set<AllocationRecord>();
  const all = reserved.map((one) => {
    const ranges = one.ips.flatMap((text) => parseRange(text) ?? []);
    const found = held.filter((each) => {
      const ip = each.addressSpace === one.addressSpace ? ips.get(each) : undefined;
      return ip !== undefined && ranges.some((range) => rangeContains(range, ip));
    });
    for (const record of found) said.add(record);
    return describeReserved(one, found);
  });
  const kept = held.filter((each) => each.state === "Kept" && !said.has(each));
  return [...all, ...kept.map(describeKept)];
}

/** Returns whether the record is of the owner's pod, or is retained for it. */
export function isHeldFor(record: AllocationRecord, owner: ReservationRecord["owner"]): boolean {
  const { namespace = record.namespace, member } = record.workload ?? {};
  const own = ownNames(namespace, record.pod || (member ?? ""), member);
  return namespace === owner?.namespace && own.names.includes(owner.name);
}

/** `state`: `Waiting` for its owner, `Reserved` for no pod, `InUse`, `Taken`, `Refused` by all pools, or `Expired`. */
function describeReserved(one: ReservationRecord, records: readonly AllocationRecord[]) {
  const { name, ips, addressSpace, pool, owner, hasEnded, why, since, until } = one;
  const [record, ...more] = records;
  const others = more.length === 0 ? "" : ` and ${more.length} more`;
  return {
    ...{ address: ips.join(", "), addressSpace, pool, namespace: owner?.namespace },
    ...{ owner: owner && describeReservedOwner(owner), since, until, name: name as string | undefined },
    state: hasEnded ? "Expired" : stateOf(one, record),
    details: record === undefined ? why : `${describeHolder(record)}${others}`,
  };
}

function stateOf({ owner, why }: ReservationRecord, record: AllocationRecord | undefined): string {
  if (record === undefined && why !== undefined) return "Refused";
  if (record === undefined) return owner === undefined ? "Reserved" : "Waiting";
  if (!isHeldFor(record, owner)) return "Taken";
  return record.state === "Kept" ? "Waiting" : "InUse";
}

function describeHolder(record: AllocationRecord): string {
  const { node = NO_NODE } = record;
  return `${describeOwner(record) || record.state}${node === NO_NODE ? "" : ` on ${node}`}`;
}

/** Retained for a member of a workload, or a Node or a Service has it. */
function describeKept(record: AllocationRecord): Reservation {
  const { address, addressSpace, pool, workload, node, since } = record;
  return {
    ...{ address, addressSpace, pool, since, until: undefined, name: undefined, namespace: workload?.namespace },
    owner: workload && describeWorkload({ ...workload, name: workload.member }),
    ...{ state: isMachines(record) ? "InUse" : "Waiting", details: node === NO_NODE ? undefined : `last on ${node}` },
  };
}
