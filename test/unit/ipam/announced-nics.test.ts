import { expect, it } from "vitest";
import { MAX_POD_NICS } from "../../../host/config/annotation-schemas.ts";
import { decodePodAnnotations } from "../../../host/config/annotations.ts";
import { announcedNics, claimedWith, demandedNics, faultOfNic, nicNameAt } from "../../../host/ipam/announced-nics.ts";

const announced = (networks: string | undefined, more: Record<string, unknown> = {}) => {
  const own = Object.entries(more).map(([key, value]) => [`ipam.vendor.io/${key}`, JSON.stringify(value)] as const);
  const listed = networks === undefined ? {} : { "k8s.v1.cni.cncf.io/networks": networks };
  return decodePodAnnotations({ ...Object.fromEntries(own), ...listed });
};

const POOL = { ipv4: ["blue"] };
const TWO = "a,b@lan0";

it.each<[what: string, networks: string | undefined, nics: string[]]>([
  ["only the first without a list of networks", undefined, ["eth0"]],
  ["those of the list by number, or by their own names", TWO, ["eth0", "net1", "lan0"]],
])("a pod announces %s", (_, networks, nics) => {
  expect(announcedNics(announced(networks), "eth0")).toEqual(nics);
  expect(nics.map((_, index) => nicNameAt(index, announced(networks), "eth0"))).toEqual(nics);
});

it("an entry beyond the list of networks is for the NIC of its number", () => {
  expect(nicNameAt(2, announced("a"), "eth0")).toBe("net2");
  expect(nicNameAt(1, announced(undefined), "eth0")).toBe("net1");
});

it("a NIC that the pod does not announce is claimed only by its own request", () => {
  const isClaimed = claimedWith("net7", announced(TWO), "eth0");
  expect(["eth0", "net1", "lan0", "net7", "net2"].map(isClaimed)).toEqual([true, true, true, true, false]);
});

it.each<[what: string, ifName: string, annotations: Record<string, unknown>, nics: string[]]>([
  ["its own NIC without a list of pools", "net1", { ippool: POOL }, ["net1"]],
  ["also the others of a list, by their order", "net1", { ippools: [POOL, POOL, POOL] }, ["net1", "eth0", "lan0"]],
  ["by their names", "eth0", { ippools: [{ ...POOL, interface: "lan0" }] }, ["eth0", "lan0"]],
  ["by those of a list of Subnets", "lan0", { subnets: [{ ...POOL, interface: "eth0" }] }, ["lan0", "eth0"]],
  ["but none that the pod does not announce", "eth0", { ippools: [{ ...POOL, interface: "net9" }] }, ["eth0"]],
])("a request claims for %s", (_, ifName, annotations, nics) => {
  expect(demandedNics(ifName, announced(TWO, annotations), "eth0")).toEqual(nics);
});

it("a request claims for no more NICs than a pod may have", () => {
  const networks = Array.from({ length: MAX_POD_NICS + 5 }, () => "a").join(",");
  const interfaces = Array.from({ length: MAX_POD_NICS }, (_, index) => ({ ...POOL, interface: `net${index + 1}` }));
  const nics = demandedNics("eth0", announced(networks, { ippools: interfaces }), "eth0");
  expect([nics.length, nics[0], nics.at(-1)]).toEqual([MAX_POD_NICS, "eth0", `net${MAX_POD_NICS - 1}`]);
});

it.each<[networks: string, first: string, faulty: string]>([
  ["a,b@lan0", "a", ""],
  ["a,B,c@lan0", "", "net2"],
  ["a,B@lan0", "", "lan0"],
  ['[{"name":"A"},{"name":"b","interface":"net1"}]', "", ""],
  ["{", "", "net1 net2 lan0 net9"],
  ["a,b", "A", "eth0"],
])("of the networks %j and the first %j those of %s are wrong", (networks, first, faulty) => {
  const annotations = { "k8s.v1.cni.cncf.io/networks": networks, "v1.multus-cni.io/default-network": first };
  const announcement = decodePodAnnotations(annotations);
  const nics = ["eth0", "net1", "net2", "lan0", "net9"];
  expect(nics.filter((nic) => faultOfNic(announcement, nic, "eth0") !== undefined).join(" ")).toBe(faulty);
});

it("a request claims for no NIC whose network is wrong, and nothing else is left to that NIC's own", () => {
  const isClaimed = claimedWith("eth0", announced("a,B,c"), "eth0");
  expect(["eth0", "net1", "net2", "net3"].map(isClaimed)).toEqual([true, true, false, true]);
});
