import { describe, expect, it } from "vitest";
import type { IfName } from "../../../host/cni/names.ts";
import type { RequestedIp } from "../../../host/cni/request.ts";
import type { FamilyDemand } from "../../../host/ipam/model.ts";
import { PoolCache } from "../../../host/ipam/pool-cache.ts";
import {
  assignRequested,
  refuseRequested,
  requestedByAnnotation,
  requestedByReservation,
  withReserved,
} from "../../../host/ipam/requested-ips.ts";
import { formatIp } from "../../../host/net/ip.ts";
import type { IpPool } from "../../../host/resources/ip-pool.ts";
import { decodeReservedIp, ownNames } from "../../../host/resources/reserved-ip.ts";
import { demandOf, openCore, pool, poolsByName } from "../../world/subjects.ts";
import { ip } from "../../world/values.ts";

const POOLS = [
  pool("blue", "10.6.0.0/24", { ips: ["10.6.0.1-10.6.0.9"] }),
  pool("green", "10.7.0.0/16"),
  pool("six", "fd00:6::/64"),
];
const SOURCE = "CNI_ARGS IP";
const SIX = { address: "fd00:6::9" };
const THREE = [{ address: "10.6.0.1" }, SIX, { address: "10.6.0.2" }];

function assign(
  requested: readonly { address: string; length?: number }[],
  pools = [["blue", "green"], ["six"]],
  generated?: FamilyDemand,
) {
  const poolCache = new PoolCache(openCore());
  poolCache.apply(poolsByName(...POOLS), []);
  const demanded = demandOf({ ifName: "eth0", pools }, poolsByName(...POOLS));
  const families = demanded.families.map((each) => (each.family === generated?.family ? generated : each));
  const nic = { ...demanded, families };
  const ips = requested.map(({ address, length }): RequestedIp => ({ ip: ip(address), length, source: SOURCE }));
  return assignRequested(poolCache, nic, ips).map(
    (each) => `${each.ifName} ${formatIp(each.ip)} of ${each.pool}, requested: ${each.requested}`,
  );
}

describe("a requested address", () => {
  it("comes from the pool that has it, whatever its place in the list, one for each family", () => {
    expect(assign([{ address: "10.7.0.9" }, { address: "fd00:6::9" }])).toEqual([
      "eth0 10.7.0.9 of green, requested: true",
      "eth0 fd00:6::9 of six, requested: true",
    ]);
    expect(assign([{ address: "10.7.0.9", length: 16 }])).toHaveLength(1);
  });

  const refused = (text: string) => `The address requested by ${SOURCE} is refused: ${text}`;
  it.each<[what: string, requested: Parameters<typeof assign>[0], code: number, text: string, pools?: string[][]]>([
    ["two of one family", THREE, 7, "10.6.0.1 and 10.6.0.2: a NIC gets one IPv4 address"],
    ["in no range", [{ address: "10.6.0.10" }], 100, "10.6.0.10: pool \"blue\" may not hand out 10.6.0.10; pool \"green\" may not hand out 10.6.0.10"], // biome-ignore format: one row
    ["of a family without pools", [SIX], 100, "fd00:6::9: the test names no IPv6 pool", [["blue"]]],
    ["of another length", [{ address: "10.6.0.1", length: 16 }], 7, '10.6.0.1/16: the subnet of pool "blue" has length 24'], // biome-ignore format: one row
  ])("is refused: %s", (_, requested, code, text, pools) => {
    expect(() => assign(requested, pools)).toThrow(expect.objectContaining({ code, message: refused(text) }));
  });

  const WEB = { apiVersion: "apps/v1", kind: "Deployment", namespace: "shop", name: "web", uid: "u-web" };
  const wanted = { application: WEB, ifName: "eth0", family: 4 as const, subnets: ["blue"] };
  const generated: FamilyDemand = { family: 4, candidates: [], generated: wanted };

  it("of a pool that has yet to be generated is a shortage of its NIC", () => {
    expect(() => assign([{ address: "10.6.0.1" }], undefined, generated)).toThrow(
      expect.objectContaining({
        ...{ code: 100, demand: generated },
        details: expect.stringMatching(/^eth0: by the test\neth0 IPv4 no pool has been generated .*\neth0 IPv6 pool/),
      }),
    );
  });

  it.each<[what: string, address: string, demand: FamilyDemand]>([
    ["of a generated pool", "10.6.0.1", { ...generated, candidates: [{ name: "blue", pool: POOLS[0] as IpPool }] }],
    ["of one family beside a pool of the other that has yet to be generated", "fd00:6::9", generated],
  ])("is assigned: %s", (_, address, demand) => {
    expect(assign([{ address }], undefined, demand)).toHaveLength(1);
  });

  it("is refused for the pod's owner in other words than for the administrator", () => {
    const error = refuseRequested(100, SOURCE, "10.6.0.1: it is used", "10.6.0.1: pod lab/x has it");
    const texts = [refused("10.6.0.1: it is used"), refused("10.6.0.1: pod lab/x has it")];
    expect([error.message, error.forLog]).toEqual(texts);
    expect(refuseRequested(100, SOURCE, "10.6.0.1: it is used").forLog).toBeUndefined();
  });
});

function reservedIp(address: string, owner?: object) {
  const metadata = { name: address.replaceAll(":", "-") };
  return decodeReservedIp({ apiVersion: "ipam.vendor.io/v1", kind: "ReservedIP", metadata, spec: { ips: [address], owner } }, "test"); // biome-ignore format: one object
}

describe("an address is named for a NIC", () => {
  const nicOf = (pod: string, ifName = "eth0", member?: string) => ({
    ...{ own: ownNames("shop", pod, member), ifName, firstNic: "eth0" },
  });
  const texts = (found: readonly RequestedIp[]) => found.map(({ ip }) => formatIp(ip)).join(" ");

  it.each([
    ["of the pod", "db-0", nicOf("db-0"), "10.6.0.5"],
    ["of another pod", "db-0", nicOf("db-1"), ""],
    ["of another NIC", "db-0", nicOf("db-0", "net1"), ""],
    ["of the machine", "vm", nicOf("virt-launcher-vm-x", "eth0", "vm"), "10.6.0.5"],
    ["of the machine, for a claim's NIC", "vm", nicOf("virt-launcher-vm-x7k2p", "eth0", "vm.lan"), "10.6.0.5"],
    ["of the Deployment", "web", nicOf("web-6d4cf56db6-x7k2p"), "10.6.0.5"],
    ["of a set whose pods have other endings", "web", nicOf("web-0"), ""],
  ] as const)("by a ReservedIP %s", (_, name, nic, expected) => {
    const elsewhere = reservedIp("10.6.0.6", { namespace: "lab", name });
    const mine = reservedIp("10.6.0.5", { namespace: "shop", name });
    expect(texts(requestedByReservation([elsewhere, mine, reservedIp("10.6.0.7")], nic))).toBe(expected);
  });

  it.each([
    ["its own", "web-0", { source: 'ReservedIP "a"', reservedIn: "" }],
    ["another pod's", "db-0", { source: 'ReservedIP "b"' }],
  ])("by one of two ReservedIPs of an address: %s counts", (_, name, expected) => {
    const first = { ...reservedIp("10.6.0.5", { namespace: "shop", name }), name: "a" };
    const second = { ...reservedIp("10.6.0.5", { namespace: "shop", name: "web-0" }), name: "b" };
    const found = requestedByReservation([second, first], nicOf("web-0"));
    expect(found).toEqual([{ ip: ip("10.6.0.5"), ...expected }]);
    // As the annotation requests it.
    expect(withReserved([{ ip: ip("10.6.0.5"), source: SOURCE }], found)[0]?.reservedIn).toBe(found[0]?.reservedIn);
  });

  it("by the annotation, for all pods or by name", () => {
    const [five, six] = [
      { ipv4: ip("10.6.0.5"), ipv6: ip("fd00::5") },
      { interface: "net1" as IfName, ipv4: ip("10.6.0.6") },
    ];
    expect(texts(requestedByAnnotation([five, six], nicOf("a")))).toBe("10.6.0.5 fd00::5");
    expect(texts(requestedByAnnotation([five, six], nicOf("a", "net1")))).toBe("10.6.0.6");
    const first = { interface: "eth0" as IfName, ipv6: ip("fd00::6") };
    expect(texts(requestedByAnnotation([five, six, first], nicOf("a")))).toBe("10.6.0.5 fd00::5 fd00::6");
    const byPod = new Map([["a", [five]]]);
    expect(texts(requestedByAnnotation(byPod, nicOf("a")))).toBe("10.6.0.5 fd00::5");
    for (const pod of ["b", "constructor"]) expect(texts(requestedByAnnotation(byPod, nicOf(pod)))).toBe("");
  });

  it("and a reservation counts in each family for which no pod insists", () => {
    const named = (address: string, more: object = {}): RequestedIp => ({ ip: ip(address), source: SOURCE, ...more });
    const reserved = [named("10.6.0.5", { reservedIn: "" }), named("fd00::5", { reservedIn: "" })];
    expect(texts(withReserved([named("10.6.0.9")], reserved))).toBe("10.6.0.9 fd00::5");
    expect(texts(withReserved([named("10.6.0.9", { isPreference: true })], reserved))).toBe("10.6.0.5 fd00::5");
    expect(withReserved([named("10.6.0.5", { isPreference: true })], reserved)[0]).toMatchObject({
      ...{ reservedIn: "", isPreference: false },
    });
  });
});
