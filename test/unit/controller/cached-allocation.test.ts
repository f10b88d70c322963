import { describe, expect, it } from "vitest";
import { hashUid, openCachedDecoder } from "../../../host/controller/cached-allocation.ts";
import { decodeIpAllocation } from "../../../host/resources/ip-allocation.ts";

const holder = { namespace: "shop", pod: "web-0", podUID: "p", interface: "eth0", node: "n1" };
const workload = { kind: "StatefulSet", namespace: "shop", name: "web", uid: "w", member: "web-0", interface: "eth0" };
const bound = { address: "10.6.0.7", prefixLength: 24, pool: "blue", state: "Bound", node: "n1", holders: [holder] };

interface Row {
  readonly name?: string;
  readonly metadata?: object;
  readonly spec: object;
}

const six = (address: string) => ({ ...bound, address, prefixLength: 64 });
const migrated = { ...holder, pod: "vm-b", podUID: "q", node: "n2" };
const quarantined = (quarantine: object): Row => ({
  spec: { ...bound, state: "Quarantined", holders: [], quarantine },
});

const rows: Readonly<Record<string, Row>> = {
  "of one pod": { spec: bound },
  "in the upper half of IPv4": { name: "203.0.113.255", spec: { ...bound, address: "203.0.113.255" } },
  "of IPv6": { name: "ffff-0000-0000-0000-0000-0000-0000-0001.lab", spec: { ...six("ffff::1"), addressSpace: "lab" } },
  "of IPv6 with a number below 2^32": { name: "0000-0000-0000-0000-0000-0000-0000-0009", spec: six("::9") },
  "of two pods while a machine migrates": { spec: { ...bound, node: "n2", holders: [holder, migrated], workload } },
  "of a machine, whose pod has another name": { spec: { ...bound, workload: { ...workload, member: "vm" } } },
  "of a workload that may have it on any NIC": { spec: { ...bound, workload: { ...workload, interface: undefined } } },
  "that is retained": { spec: { ...bound, state: "Kept", holders: [], workload } },
  "in quarantine for a conflict": quarantined({ reason: "Conflict", mac: "02:00:00:00:00:01", parent: "eth1" }),
  "in quarantine for a lost node": quarantined({ reason: "NodeLost", holder }),
  "that is being deleted": { metadata: { deletionTimestamp: "2026-11-20T04:00:00Z" }, spec: bound },
};

function objectOf({ name = "10.6.0.7", metadata = {}, spec }: Row) {
  const stored = { name, uid: "u1", resourceVersion: "5", ...metadata };
  return { apiVersion: "ipam.vendor.io/v1", kind: "IPAllocation", metadata: stored, spec };
}

/** The whole allocation without the parts that the cache leaves out. */
function kept(object: object) {
  const { name, deleting, spec } = decodeIpAllocation(object, "test");
  const { since: _, quarantine, holders, ...rest } = spec;
  const named = ({ podUid, claim: _claim, ...kept }: (typeof holders)[number]) =>
    Object.assign(kept, { uidHash: hashUid(podUid) });
  const { reason, mac = "", holder } = quarantine ?? {};
  const inQuarantine = reason && { quarantine: { reason, mac, ...(holder && { holder: named(holder) }) } };
  return { name, deleting, spec: { ...rest, holders: holders.map(named), ...inQuarantine } };
}

describe("the controller's cache has an allocation", () => {
  const decode = openCachedDecoder();
  it.each(Object.entries(rows))("%s", (_, row) => {
    const { name, deleting, spec } = decode(objectOf(row));
    expect({ name, deleting, spec }).toEqual(kept(objectOf(row)));
  });

  it("that differs from another in one shared value only", () => {
    const others: Partial<typeof holder & typeof bound>[] = [{ pool: "red" }, { prefixLength: 25 }, { node: "n2" }];
    const specs = [...others, { interface: "eth1" }, { namespace: "lab" }].map((other) => {
      const { pool = "blue", prefixLength = 24, ...own } = other;
      return { ...bound, pool, prefixLength, node: own.node ?? "n1", holders: [{ ...holder, ...own }] };
    });
    const objects = [bound, ...specs].map((spec) => objectOf({ spec }));
    expect(objects.map((object) => decode(object).spec)).toEqual(objects.map((object) => kept(object).spec));
  });
});
