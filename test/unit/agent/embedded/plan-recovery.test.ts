import { expect, it } from "vitest";
import { type Evidence, planRecovery } from "../../../../host/agent/embedded/recovery/plan-recovery.ts";
import type { LiveAddress } from "../../../../host/agent/request/live-namespaces.ts";
import type { CachedAttachment } from "../../../../host/agent/request/runtime-cache.ts";
import { formatIp } from "../../../../host/net/ip.ts";
import type { Allocation } from "../../../../host/registry/registry.ts";
import { cases } from "../../../world/rows.ts";
import { pool, proposal } from "../../../world/subjects.ts";
import { ip, mac, prefix } from "../../../world/values.ts";

const POOLS = [
  pool("blue", "10.0.0.0/24"),
  pool("lab", "10.0.0.0/24", { addressSpace: "lab" }),
  pool("red", "10.1.0.0/24"),
  pool("via", "10.3.0.0/24", { gatewayIp: "10.3.0.1" }),
  pool("low", "10.2.0.0/24", { ips: ["10.2.0.1-10.2.0.9"] }),
  pool("high", "10.2.0.0/24", { ips: ["10.2.0.10-10.2.0.19", "10.2.0.30"] }),
];

/** Returns a cached attachment of container `c`, in namespace `/live/c` or `/dead/c`. */
function cached(containerId: string, address: string, where = "/live"): CachedAttachment {
  const netns = `${where}/${containerId}`;
  const pod = { NAMESPACE: "shop", NAME: `pod-${containerId}`, UID: `uid-${containerId}` };
  const args = new Map(Object.entries(pod).map(([key, value]) => [`K8S_POD_${key}`, value]));
  const ips = [{ address: prefix(address), interface: 0 }];
  const result = { interfaces: [{ name: "eth0", sandbox: netns }], ips, routes: [] };
  const nic = { source: `cache/${containerId}`, containerId, ifName: "eth0", network: "lab", netns };
  return { ...nic, args, result, ipams: [] };
}

function live(netns: string, address: string): LiveAddress {
  return { netns, netnsId: netns, ifName: "eth0", mac: undefined, prefix: prefix(address) };
}

function row(containerId: string, address: string, netns: string): Allocation {
  const who = { owner: containerId, containerId, network: "lab", netns, namespace: "", pod: "" };
  return { ...proposal(address, { pool: "red" }), ...who, state: "Bound", sinceMs: 0, version: 1 };
}

/** Each as `address container`, found ones with their space and source. */
function check(evidence: Partial<Evidence>): string {
  const isLive = (path: string): boolean => path.startsWith("/live");
  const nothing = { cached: [], live: [], rows: [] };
  const { found, kept, gone, ignored } = planRecovery({ ...nothing, pools: POOLS, isLive, ...evidence });
  const text = (one: Pick<Allocation, "ip" | "containerId">): string => `${formatIp(one.ip)} ${one.containerId}`;
  const viaOf = ({ routers = [] }: Pick<Allocation, "routers">) => routers.map((each) => ` via ${each}`).join("");
  const texts = [
    ...found.map((one) => `found ${text(one)} ${one.pool}/${one.space} ${one.owner} from ${one.source}${viaOf(one)}`),
    ...kept.map((one) => `kept ${text(one)}`),
    ...gone.map((one) => `gone ${text(one)}`),
    ...ignored.map((each) => `ignored ${each}`),
  ];
  return texts.join(" & ") || "nothing";
}

const stored = row("a", "10.1.0.5", "/live/a");
const orphan = row("a", "10.1.0.5", "/dead/a");
const [inBlue, inRed] = [cached("a", "10.0.0.5/24"), cached("a", "10.1.0.5/24")];
const nic = (...addresses: string[]) => ({ live: addresses.map((address) => live("/live/b", `${address}/24`)) });
const told = cached("a", "10.3.0.5/24");
const routed = { ...told, result: { ...told.result, routes: [{ dst: prefix("0.0.0.0/0"), gw: ip("10.3.0.2") }] } };
it.each(cases<Partial<Evidence>>`
  takes in the router that a runtime remembers, though the pool has another ${{ cached: [routed] }}
    => found 10.3.0.5 a via/ uid-a from cache/a via 10.3.0.2
  takes in the pool's router if nothing else tells ${nic("10.3.0.7")}
    => found 10.3.0.7 netns:/live/b via/ netns:/live/b from /live/b via 10.3.0.1
  takes in what a runtime remembers, once for each address space ${{ cached: [inBlue] }}
    => found 10.0.0.5 a blue/ uid-a from cache/a & found 10.0.0.5 a lab/lab uid-a from cache/a
  leaves out what a runtime remembers of a pod that is gone ${{ cached: [cached("a", "10.0.0.5/24", "/dead")] }}
    => ignored cache/a belongs to a deleted pod: its namespace /dead/a is gone
  leaves out addresses of no pool, and says so ${{ cached: [cached("a", "10.9.0.5/24")], ...nic("10.9.0.6") }}
    => ignored cache/a: 10.9.0.5 is in no pool
  takes in a NIC's address that nothing else tells ${nic("10.1.0.6")}
    => found 10.1.0.6 netns:/live/b red/ netns:/live/b from /live/b
  leaves out a NIC's address when its namespace is gone by now ${{ live: [live("/dead/b", "10.1.0.6/24")] }} => nothing
  does not take in a NIC's address a second time ${{ cached: [inRed], live: [live("/live/a", "10.1.0.5/24")] }}
    => found 10.1.0.5 a red/ uid-a from cache/a
  keeps a row of a live namespace ${{ rows: [stored] }} => kept 10.1.0.5 a
  keeps a row of which no namespace is known ${{ rows: [{ ...stored, netns: undefined }] }} => kept 10.1.0.5 a
  releases a row of a namespace that is gone ${{ rows: [orphan] }} => gone 10.1.0.5 a
  keeps the row of what a runtime remembers ${{ cached: [inRed], rows: [stored] }} => kept 10.1.0.5 a
  takes in a NIC's second address beside the one that is recorded ${{ cached: [cached("a", "10.2.0.5/24")], rows: [stored] }}
    => found 10.2.0.5 a low/ uid-a from cache/a & kept 10.1.0.5 a
  gives the row of an old copy to the pod that lives ${{ cached: [cached("b", "10.1.0.5/24")], rows: [orphan] }}
    => found 10.1.0.5 b red/ uid-b from cache/b
  gives the row of a pod that is gone to the NIC that has the address ${{ ...nic("10.1.0.5"), rows: [orphan] }}
    => found 10.1.0.5 netns:/live/b red/ netns:/live/b from /live/b
  leaves out a NIC's address that is recorded ${{ live: [live("/live/a", "10.1.0.5/24")], rows: [stored] }}
    => kept 10.1.0.5 a
  takes in what a runtime remembers without a namespace ${{ cached: [{ ...inRed, netns: undefined }] }}
    => found 10.1.0.5 a red/ uid-a from cache/a
  takes in a NIC's address beside another one that is recorded ${{ ...nic("10.1.0.6"), rows: [stored] }}
    => found 10.1.0.6 netns:/live/b red/ netns:/live/b from /live/b & kept 10.1.0.5 a
  takes in a NIC's address that is recorded in another address space ${{ ...nic("10.0.0.5"), rows: [{ ...row("a", "10.0.0.5", "/live/a"), space: "lab" }] }}
    => found 10.0.0.5 netns:/live/b blue/ netns:/live/b from /live/b & kept 10.0.0.5 a
  takes in a NIC's address that only cools ${{ ...nic("10.1.0.5"), rows: [{ ...stored, state: "Cooling" }] }}
    => found 10.1.0.5 netns:/live/b red/ netns:/live/b from /live/b
  gives the row of another NIC of the container to the one that has the address ${{ cached: [inRed], rows: [{ ...stored, ifName: "net1" }] }}
    => found 10.1.0.5 a red/ uid-a from cache/a
  keeps the right row beside one that is not ${{ cached: [inRed, cached("b", "10.1.0.7/24")], rows: [stored, row("c", "10.1.0.7", "/live/c")] }}
    => found 10.1.0.7 b red/ uid-b from cache/b & kept 10.1.0.5 a
  names the pool that may hand out the address, and the first of the subnet where none may ${nic("10.2.0.12", "10.2.0.200")}
    => found 10.2.0.12 netns:/live/b high/ netns:/live/b from /live/b & found 10.2.0.200 netns:/live/b low/ netns:/live/b from /live/b
`)("planRecovery: %s", (_what, evidence, expected) => expect(check(evidence)).toBe(expected));

it("an address that a runtime remembers has the MAC address of its interface, if it says which", () => {
  const known = mac("02:00:00:00:00:05");
  const macOf = (position: number | undefined): unknown => {
    const { result, ...attachment } = cached("a", "10.1.0.5/24");
    const interfaces = [{ name: "veth" }, { name: "eth0", mac: known }];
    const ips = [{ address: prefix("10.1.0.5/24"), ...(position === undefined ? {} : { interface: position }) }];
    const given = [{ ...attachment, result: { ...result, interfaces, ips } }];
    return planRecovery({ cached: given, live: [], rows: [], pools: POOLS, isLive: () => true }).found[0]?.mac;
  };
  expect([1, 0, 9, undefined].map(macOf)).toEqual([known, undefined, undefined, undefined]);
});
