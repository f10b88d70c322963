import { describe, expect, it } from "vitest";
import type { LiveAddress } from "../../../../host/agent/request/live-namespaces.ts";
import type { CachedAttachment } from "../../../../host/agent/request/runtime-cache.ts";
import { formatIp } from "../../../../host/net/ip.ts";
import { UNKNOWN_CONTAINER } from "../../../../host/registry/journal.ts";
import { isAdopted } from "../../../../host/registry/nic.ts";
import type { Allocation } from "../../../../host/registry/registry.ts";
import { decodePod, type Pod } from "../../../../host/resources/pod.ts";
import { cases } from "../../../../test/world/rows.ts";
import { pool, proposal } from "../../../../test/world/subjects.ts";
import { ip, prefix } from "../../../../test/world/values.ts";
import { type AdoptionEvidence, isAllocatable, planAdoption } from "../../adoption/plan-adoption.ts";

const POOLS = [
  pool("blue", "10.0.0.0/24", { gatewayIp: "10.0.0.1", ips: ["10.0.0.100-10.0.0.199"] }),
  pool("six", "fd00::/64"),
  pool("twin", "10.2.0.0/24"),
  pool("lab", "10.2.0.0/24", { addressSpace: "lab" }),
];

/** Returns a cached attachment of container `c` of pod shop/pod-c, in namespace /netns/c. */
function cached(containerId: string, addresses: readonly string[], more: Partial<CachedAttachment> = {}) {
  const netns = `/netns/${containerId}`;
  const pod = { NAMESPACE: "shop", NAME: `pod-${containerId}`, UID: `uid-${containerId}` };
  const args = new Map(Object.entries(pod).map(([key, value]) => [`K8S_POD_${key}`, value]));
  const ips = addresses.map((address) => ({ address: prefix(address), interface: 0 }));
  const result = { interfaces: [{ name: "eth0", sandbox: netns }], ips, routes: [] };
  const about = { source: `cache/${containerId}`, containerId, ifName: "eth0", network: "lan", netns, args };
  return { ...about, result, ipams: ["whereabouts"], ...more };
}

function live(containerId: string, address: string, ifName = "eth0"): LiveAddress {
  const netns = `/netns/${containerId}`;
  return { netns, netnsId: netns, ifName, mac: undefined, prefix: prefix(address) };
}

function row(containerId: string, address: string, more: Partial<Allocation> = {}): Allocation {
  return {
    ...{ ...proposal(address), state: "Bound", owner: `uid-${containerId}`, containerId, network: "lan" },
    ...{ netns: `/netns/${containerId}`, namespace: "shop", pod: `pod-${containerId}`, sinceMs: 0, version: 1 },
    ...more,
  };
}

function podOf(name: string, { uid = name.replace("pod-", "uid-"), phase = "Running", ending = false } = {}): Pod {
  const metadata = { namespace: "shop", name, uid, ...(ending && { deletionTimestamp: "2026-01-01T00:00:00Z" }) };
  return decodePod({ kind: "Pod", metadata, status: { phase } }, "pod");
}

type Given = Partial<Omit<AdoptionEvidence, "findPod">> & { readonly pods?: readonly Pod[] };

function evidenceOf({ pods = [podOf("pod-a"), podOf("pod-b")], ...given }: Given): AdoptionEvidence {
  const nothing = { cached: [], live: [], rows: [], pools: POOLS, reserved: [] };
  const findPod = (namespace: string, name: string): Pod | undefined =>
    pods.find((each) => each.namespace === namespace && each.name === name);
  return { ...nothing, findPod, netnsIdOf: (path) => (path.startsWith("/netns") ? path : undefined), ...given };
}

/** NICs as `owner container NIC: address pool`, refusals as `address: reason`. */
function check(given: Given): string {
  const { adoptable, recorded, refused } = planAdoption(evidenceOf(given));
  const textOf = ({ owner, containerId, ifName, addresses, ipams }: (typeof adoptable)[number]): string => {
    const placed = addresses.map((each) => `${formatIp(each.ip)}/${each.prefixLength} ${each.pool}`).join(", ");
    return `${owner} ${containerId} ${ifName}: ${placed} [${ipams}]`;
  };
  const texts = [
    ...adoptable.map((nic) => `adoptable ${textOf(nic)}`),
    ...recorded.map((nic) => `recorded ${textOf(nic)}`),
    ...refused.map((each) => `refused ${formatIp(each.ip)}: ${each.reason}`),
  ];
  return texts.join(" & ") || "nothing";
}

const [A5, B5] = [live("a", "10.0.0.5/16"), live("b", "10.0.0.5/16")];
const SIX = live("a", "fd00::5/64");
const A6 = live("a", "10.0.0.6/16");
const NET1 = live("a", "10.0.0.5/16", "net1");
/** The runtime has recorded these addresses of container a, whose NIC has 10.0.0.5. */
const recorded = (addresses = ["10.0.0.5/16"], more: Partial<CachedAttachment> = {}, nics = [A5]) => ({
  cached: [cached("a", addresses, more)],
  live: nics,
});
/** The same, with a row of the address. */
const known = (more: Partial<Allocation> = {}) => ({ ...recorded(), rows: [row("a", "10.0.0.5", more)] });
const of = (...pods: Pod[]) => ({ ...recorded(), pods });
const BOTH = ["10.0.0.5/16", "fd00::5/64"];
const ADOPTED = "adoptable uid-a a eth0: 10.0.0.5/24 blue [whereabouts]";
const UNKNOWN_POD = "refused 10.0.0.5: no runtime has recorded with its UID which pod has this NIC";

describe("planAdoption", () => {
  it.each(cases<Given>`
    adopts what the kernel has and the runtime recorded ${recorded()}
      => adoptable uid-a a eth0: 10.0.0.5/24 blue [whereabouts]
    adopts both families of a NIC ${recorded(BOTH, {}, [A5, SIX])}
      => adoptable uid-a a eth0: 10.0.0.5/24 blue, fd00::5/64 six [whereabouts]
    prefers no pool that does not allocate it, but takes it: ranges may be the other IPAM's ${{ ...recorded(), pools: [...POOLS, pool("wide", "10.0.0.0/16")] }}
      => adoptable uid-a a eth0: 10.0.0.5/16 wide [whereabouts]
    leaves alone what is in no pool ${recorded(["10.9.0.5/16"], {}, [live("a", "10.9.0.5/16")])} => nothing
    finds nothing of a NIC that is gone ${recorded(undefined, {}, [])} => nothing
    finds the pod of a NIC by another NIC of the namespace ${recorded(["10.9.0.5/16"], {}, [live("a", "10.9.0.5/16"), NET1])}
      => adoptable uid-a a net1: 10.0.0.5/24 blue []
    counts an attachment once that two programs recorded ${{ cached: ["lan", "multus"].flatMap((network) => recorded(undefined, { network }).cached), live: [A5] }}
      => adoptable uid-a a eth0: 10.0.0.5/24 blue [whereabouts]
    refuses a NIC that no runtime recorded ${{ live: [A5] }}
      => refused 10.0.0.5: no runtime has recorded with its UID which pod has this NIC
    refuses a NIC of which a runtime's record names no namespace ${recorded(undefined, { netns: undefined })}
      => refused 10.0.0.5: no runtime has recorded with its UID which pod has this NIC
    refuses a NIC of which a runtime's record names one that is gone ${recorded(undefined, { netns: "/gone/a" })}
      => refused 10.0.0.5: no runtime has recorded with its UID which pod has this NIC
    refuses a NIC in a namespace of two pods ${{ cached: [cached("a", ["10.0.0.5/16"]), cached("b", [], { netns: "/netns/a" })], live: [A5] }}
      => refused 10.0.0.5: no runtime has recorded with its UID which pod has this NIC
    refuses a pod of which the API server has a later one ${of(podOf("pod-a", { uid: "later" }))}
      => refused 10.0.0.5: the API server has no such pod on this node
    refuses a pod that the API server does not have ${of()}
      => refused 10.0.0.5: the API server has no such pod on this node
    refuses a pod that has finished ${of(podOf("pod-a", { phase: "Succeeded" }))}
      => refused 10.0.0.5: its pod has finished
    refuses a pod that is ending ${of(podOf("pod-a", { ending: true }))} => refused 10.0.0.5: its pod is ending
    refuses an address on two NICs, of both ${{ cached: [cached("a", ["10.0.0.5/16"]), cached("b", ["10.0.0.5/16"])], live: [A5, B5] }}
      => refused 10.0.0.5: NIC eth0 in /netns/b has it as well & refused 10.0.0.5: NIC eth0 in /netns/a has it as well
    refuses an address on two NICs of a pod ${recorded(undefined, {}, [A5, NET1])}
      => refused 10.0.0.5: NIC net1 in /netns/a has it as well & refused 10.0.0.5: NIC eth0 in /netns/a has it as well
    adopts the only one of each family of a NIC without a record of its own ${recorded([], {}, [A5, SIX])}
      => adoptable uid-a a eth0: 10.0.0.5/24 blue, fd00::5/64 six [whereabouts]
    refuses an address that the pod gave itself ${recorded(["10.0.0.6/16"])}
      => refused 10.0.0.5: the runtime's record of the NIC does not have it
    refuses several of a NIC without a record of its own ${recorded([], {}, [A5, A6])}
      => refused 10.0.0.5: the NIC has several, and no record of the runtime says which are an IPAM's & refused 10.0.0.6: the NIC has several, and no record of the runtime says which are an IPAM's
    refuses the second of one family ${recorded(["10.0.0.5/16", "10.0.0.6/16"], {}, [A5, A6])}
      => adoptable uid-a a eth0: 10.0.0.5/24 blue [whereabouts] & refused 10.0.0.6: Berth records one address of each family for a NIC
    refuses a gateway ${recorded(["10.0.0.1/16"], {}, [live("a", "10.0.0.1/16")])}
      => refused 10.0.0.1: it is the gateway of pool "blue"
    refuses an address of two address spaces ${recorded(["10.2.0.5/16"], {}, [live("a", "10.2.0.5/16")])}
      => refused 10.2.0.5: pools of 2 address spaces have it: twin, lab
    knows what Berth gave, by its row ${known()} => nothing
    knows what Berth gave a NIC whose namespace it has not recorded ${known({ netns: undefined })} => nothing
    knows what Berth gave, by the network ${recorded(undefined, { ipams: ["berth"] })} => nothing
    knows what Berth gave to a journal that was lost ${known({ network: "", containerId: UNKNOWN_CONTAINER })}
      => nothing
    knows what it adopted ${known({ network: "" })} => recorded uid-a a eth0: 10.0.0.5/24 blue [whereabouts]
    adopts both families of a NIC of which it adopted one ${{ ...known({ network: "" }), ...recorded(BOTH, {}, [A5, SIX]) }}
      => adoptable uid-a a eth0: 10.0.0.5/24 blue, fd00::5/64 six [whereabouts]
    adopts again what another sandbox of the pod has now ${known({ network: "", containerId: "old" })}
      => adoptable uid-a a eth0: 10.0.0.5/24 blue [whereabouts]
  `)("%s", (_what, given, expected) => expect(check(given)).toBe(expected));

  it.each(["K8S_POD_NAMESPACE", "K8S_POD_NAME", "K8S_POD_UID"])("refuses a record without %s", (missing) => {
    const args = new Map([...cached("a", []).args].filter(([key]) => key !== missing));
    expect(check(recorded(undefined, { args }))).toBe(UNKNOWN_POD);
  });

  const other = { ip: ip("10.0.0.6") };
  it.each<[what: string, row: Partial<Allocation>]>([
    ["Berth gave the NIC, and that cools", { state: "Cooling" }],
    ["Berth gave the NIC, another one", other],
    ["Berth gave another NIC of the pod", { ifName: "net1" }],
    ["Berth gave a NIC in another namespace", { netns: "/netns/b" }],
    ["was adopted for the NIC, and cools", { network: "", state: "Cooling" }],
    ["was adopted for the NIC, another one", { ...other, network: "" }],
    ["was adopted for another NIC of the pod", { ifName: "net1", network: "" }],
    ["was adopted for another pod", { owner: "uid-b", network: "" }],
    ["was adopted in another address space", { space: "lab", network: "" }],
  ])("adopts an address beside a row %s", (_, change) => expect(check(known(change))).toBe(ADOPTED));
});

describe("an adopted address", () => {
  it.each([
    ["names its container and no network", { network: "" }, true],
    ["is not one of an ADD", {}, false],
    ["is not one taken in from the API server", { network: "", containerId: UNKNOWN_CONTAINER }, false],
    ["is not one claimed ahead", { network: "", containerId: "" }, false],
    ["is not a cooling one", { network: "", state: "Cooling" as const }, false],
  ])("%s", (_what, more, expected) => expect(isAdopted(row("a", "10.0.0.5", more))).toBe(expected));

  it.each([
    ["10.0.0.5", "spec.ips does not have it", false, {}],
    ["10.0.0.105", "spec.ips has it", true, {}],
    ["10.0.0.105", "the pool is disabled", false, { disable: true }],
    ["10.0.0.105", "the pool is of another address space", false, { addressSpace: "lab" }],
  ])("is given to another pod once it is free: %s, %s: %s", (address, _what, expected, options) => {
    const pools = [pool("blue", "10.0.0.0/24", { ips: ["10.0.0.100-10.0.0.199"], ...options })];
    expect(isAllocatable(row("a", address), { pools, reserved: [] })).toBe(expected);
    const wide = pool("wide", "10.0.0.0/16", { ips: ["10.0.9.9"] });
    expect(isAllocatable(row("a", address), { pools: [wide, ...pools], reserved: [] })).toBe(expected);
  });
});
