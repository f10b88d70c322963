import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import {
  allocationLabels,
  allocationName,
  decodeIpAllocation,
  encodeIpAllocation,
  type IpAllocationSpec,
  ownerLabelOf,
  parseAllocationName,
} from "../../../host/resources/ip-allocation.ts";
import { isSameMember, type Workload } from "../../../host/resources/member.ts";
import { HOLDER, ipAllocation } from "../../world/subjects.ts";
import { ip } from "../../world/values.ts";

const { spec: BOUND } = ipAllocation("10.6.0.21", { prefixLength: 16 });

const KEPT: IpAllocationSpec = { ...BOUND, state: "Kept", holders: [] };

const WORKLOAD = { kind: "StatefulSet", namespace: "shop", name: "web", uid: "w1", member: "web-0" };

describe("the name of an allocation", () => {
  it.each<[address: string, space: string, name: string]>([
    ["10.6.0.21", "", "10.6.0.21"],
    ["10.6.0.21", "lab", "10.6.0.21.lab"],
    ["10.6.0.21", "7", "10.6.0.21.7"],
    ["fd00::a", "", "fd00-0000-0000-0000-0000-0000-0000-000a"],
    ["::", "", "0000-0000-0000-0000-0000-0000-0000-0000"],
    ["fd00::a", "a-b", "fd00-0000-0000-0000-0000-0000-0000-000a.a-b"],
  ])("of %s in %j is %s, and back", (address, addressSpace, name) => {
    expect(allocationName(ip(address), addressSpace)).toBe(name);
    expect(parseAllocationName(name)).toEqual({ ip: ip(address), addressSpace });
  });
  it.each([
    ...["", "a", "10.6.0", "10.6.0.256", "10.6.0.021", "10.6.0.21.", "10.6.0.21.a.b", "10.6.0.21.-a", "10.6.0.21-lab"],
    ...["fd00::a", "fd00-a", "FD00-0000-0000-0000-0000-0000-0000-000a", "fd00-0000-0000-0000-0000-0000-0000-000a-b"],
    `10.6.0.21.${"a".repeat(64)}`,
  ])("%j is none", (name) => expect(parseAllocationName(name)).toBeUndefined());
});

it("labels of a bound address name its first pod, those of a kept one its identity", () => {
  const hash = createHash("sha256").update("shop/w1/web-0").digest("hex").slice(0, 32);
  const [pod, owner] = [{ "ipam.vendor.io/pod-uid": "u1" }, { "ipam.vendor.io/owner": hash }];
  expect(ownerLabelOf(WORKLOAD)).toBe(hash);
  expect(allocationLabels(BOUND)).toEqual(pod);
  expect(allocationLabels({ ...BOUND, workload: WORKLOAD })).toEqual({ ...pod, ...owner });
  expect(allocationLabels({ ...KEPT, workload: WORKLOAD })).toEqual(owner);
});

describe("the same member of a workload", () => {
  it.each<[what: string, other: Workload | undefined, isSame: boolean]>([
    ["itself, for another NIC", { ...WORKLOAD, ifName: "net1" }, true],
    ["none", undefined, false],
    ["of another UID", { ...WORKLOAD, uid: "w2" }, false],
    ["another member", { ...WORKLOAD, member: "web-1" }, false],
    ["of another namespace, whose pod claims the UID", { ...WORKLOAD, namespace: "evil" }, false],
    ["without a namespace", { ...WORKLOAD, namespace: "" }, false],
  ])("retention: %s", (_, other, isSame) => {
    expect([isSameMember(WORKLOAD, other), isSameMember(other, WORKLOAD)]).toEqual([isSame, isSame]);
    if (other !== undefined) expect(ownerLabelOf(other) === ownerLabelOf(WORKLOAD)).toBe(isSame);
  });

  it("retention: two without a namespace are not", () => {
    const workload = { ...WORKLOAD, namespace: "" };
    expect(isSameMember(workload, workload)).toBe(false);
  });
});

describe("the workload of an object that an older agent wrote without its namespace", () => {
  const { namespace: _, ...workload } = WORKLOAD;
  const read = (spec: object): string | undefined => {
    const written = Object(encodeIpAllocation(BOUND));
    const found = decodeIpAllocation({ ...written, spec: { ...written.spec, workload, ...spec } }, "a test");
    return found.spec.workload?.namespace;
  };

  it("is in the namespace of the pod that has the address", () => {
    expect(read({})).toBe("shop");
    const holder = { namespace: "store", pod: "web-0", podUID: "u1", interface: "eth0", node: "n1" };
    expect(read({ state: "Quarantined", holders: [], quarantine: { reason: "NodeLost", holder } })).toBe("store");
  });

  it("is in none when no pod has it", () => expect(read({ state: "Kept", holders: [] })).toBe(""));
});

describe("an allocation", () => {
  it("is written as the API has it", () =>
    expect(encodeIpAllocation({ ...BOUND, since: "2026-11-20T04:00:00Z" }, { uid: "x", resourceVersion: "9" })).toEqual(
      {
        ...{ apiVersion: "ipam.vendor.io/v1", kind: "IPAllocation" },
        metadata: { name: "10.6.0.21", labels: { "ipam.vendor.io/pod-uid": "u1" }, uid: "x", resourceVersion: "9" },
        spec: {
          ...{ address: "10.6.0.21", addressSpace: "", prefixLength: 16, pool: "blue", state: "Bound", node: "n1" },
          holders: [{ namespace: "shop", pod: "web-0", podUID: "u1", interface: "eth0", node: "n1" }],
          since: "2026-11-20T04:00:00Z",
        },
      },
    ));

  it("that is kept says for which NIC, and where its workload is", () => {
    const { spec } = encodeIpAllocation({ ...KEPT, workload: { ...WORKLOAD, ifName: "net1" } });
    expect(spec).toMatchObject({ workload: { ...WORKLOAD, interface: "net1" } });
  });

  it.each([
    ["that says nothing is of an older release: it was answered", {}, 1],
    ["is 0 where an older release calls the address new", { fresh: true }, 0],
  ])("a number %s", (_, change, number) => {
    const { spec } = encodeIpAllocation({ ...KEPT, workload: WORKLOAD }, { uid: "x", resourceVersion: "9" });
    const object = { ...encodeIpAllocation(KEPT), spec: { ...spec, workload: { ...spec.workload, ...change } } };
    expect(decodeIpAllocation(JSON.parse(JSON.stringify(object)), "watch").spec.number).toBe(number);
  });

  it("with the number 0 tells an older release that the address is new", () => {
    expect(encodeIpAllocation({ ...KEPT, workload: WORKLOAD, number: 0 }).spec.workload).toMatchObject({ fresh: true });
    expect(encodeIpAllocation({ ...KEPT, workload: WORKLOAD, number: 1 }).spec.workload).not.toHaveProperty("fresh");
  });

  const conflict = { reason: "Conflict", mac: "02:00:00:00:00:01", parent: "eth1" } as const;
  const since = "2026-11-20T04:00:00Z";
  it.each<[title: string, spec: IpAllocationSpec]>([
    ["Bound", BOUND],
    ["of IPv6 in a space", { ...BOUND, ip: ip("fd00::a"), addressSpace: "lab", prefixLength: 64 }],
    ["Cooling", { ...BOUND, state: "Cooling", holders: [], since }],
    ["Kept by an older agent", { ...KEPT, workload: { ...WORKLOAD, namespace: "" }, number: 1 }],
    ["Kept", { ...KEPT, workload: { ...WORKLOAD, ifName: "net1" }, number: 7 }],
    ["Bound by a claim", { ...BOUND, holders: [{ ...HOLDER, claim: "c" }], workload: WORKLOAD, number: 0 }],
    ["Quarantined", { ...BOUND, state: "Quarantined", holders: [], quarantine: conflict }],
  ])("%s is read as it was written", (_title, spec) => {
    const object = JSON.parse(JSON.stringify(encodeIpAllocation(spec, { uid: "x", resourceVersion: "9" })));
    const name = allocationName(spec.ip, spec.addressSpace);
    const metadata = { kind: "IPAllocation", name, uid: "x", resourceVersion: "9", deleting: false };
    expect(decodeIpAllocation(object, "watch")).toEqual({ ...metadata, spec });
  });

  it("with keys of a newer Berth is read", () => {
    const { metadata, spec, ...rest } = Object(encodeIpAllocation(BOUND));
    const holders = [{ ...spec.holders[0], later: 1 }];
    const newer = { ...rest, metadata: { ...metadata, later: {} }, spec: { ...spec, holders, later: 1 }, later: 1 };
    expect(decodeIpAllocation(newer, "watch").spec).toEqual(BOUND);
  });
});
