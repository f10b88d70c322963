import { expect, it } from "vitest";
import { planClaimStatus } from "../../../../host/controller/owners/claim-status.ts";
import type { AllocationState, IpAllocation } from "../../../../host/resources/ip-allocation.ts";
import { decodeIpamClaim } from "../../../../host/resources/workloads/ipam-claim.ts";
import { cases } from "../../../world/rows.ts";
import { HOLDER, ipAllocation } from "../../../world/subjects.ts";
import { ip } from "../../../world/values.ts";

/** `10.6.0.7 fd00::7, a`: the addresses that a status has, each in its network, and the pod; nothing: no status. */
function statusOf(text: string) {
  const [addresses = "", ownerPod = ""] = text.split(",").map((part) => part.trim());
  const ips = addresses.split(" ").filter(Boolean);
  return { ips: ips.map((each) => `${each}/${each.includes(":") ? 64 : 24}`), ownerPod };
}

const claimOf = (text: string) =>
  decodeIpamClaim(
    {
      ...{ metadata: { namespace: "shop", name: "c", uid: "c-1" }, spec: { network: "lan", interface: "net1" } },
      status: text === "" ? undefined : statusOf(text),
    },
    "x",
  );

function allocation(address: string, state: AllocationState = "Bound", pod = "a", forged: object = {}): IpAllocation {
  const holders = state === "Bound" ? [{ ...HOLDER, pod, podUid: pod, ifName: "net1" }] : [];
  const workload = { kind: "IPAMClaim", namespace: "shop", name: "c", uid: "c-1", member: "c", ...forged };
  return ipAllocation(address, { state, holders, workload, prefixLength: address.includes(":") ? 64 : 24 });
}

const SIX = allocation("fd00::7");
const FOUR = allocation("10.6.0.7");
const UNANSWERED = { ...FOUR, spec: { ...FOUR.spec, number: 0 } };
const kept = (address: string) => allocation(address, "Kept");
const held = (address: string) => allocation(address, "Quarantined");
const none = { ...FOUR, spec: { ...FOUR.spec, workload: undefined } };
const [OLD, EVIL, SET] = [{ uid: "c-0" }, { namespace: "evil" }, { kind: "StatefulSet" }].map((forged) =>
  allocation("10.6.0.9", "Bound", "a", forged),
) as [IpAllocation, IpAllocation, IpAllocation];

/** The present status, and the allocations: the status then; "=": the same. */
it.each(cases<[said: string, ...allocations: IpAllocation[]]>`
  nothing given: nothing is said ${[""]} => =
  both families, IPv4 first ${["", SIX, FOUR]} => 10.6.0.7 fd00::7, a
  said already ${["10.6.0.7, a", FOUR]} => =
  another pod ${["10.6.0.7, z", FOUR]} => 10.6.0.7, a
  kept: the last pod stays named ${["10.6.0.7, a", kept("10.6.0.7")]} => =
  kept, and the status was lost: the addresses are said again ${["", kept("10.6.0.7")]} => 10.6.0.7,
  another address of the same pod ${["10.6.0.9, a", FOUR]} => 10.6.0.7, a
  of no workload: nothing ${["", none]} => =
  what is kept before an address that no ADD was answered with, as its number says ${["", kept("10.6.0.9"), UNANSWERED]}
    => 10.6.0.9,
  what a pod has before what is kept ${["", kept("10.6.0.9"), FOUR]} => 10.6.0.7, a
  said, and in quarantine for a lost node: it stays ${["10.6.0.7 fd00::7, a", held("10.6.0.7"), kept("fd00::7")]} => =
  what was said and cools: it is no longer said ${["10.6.0.7 fd00::7, a", allocation("10.6.0.7", "Cooling"), kept("fd00::7")]}
    => fd00::7, a
  said, and in quarantine for a lost node, while a pod claims another ${["10.6.0.9, z", held("10.6.0.9"), FOUR]} => =
  what a pod has before what is in quarantine, and not said ${["", held("10.6.0.9"), held("fd00::9"), FOUR]} => 10.6.0.7, a
  what was said before what another pod has claimed, which may never be answered ${["10.6.0.9, z", FOUR, kept("10.6.0.9")]}
    => =
  the same of both families ${["10.6.0.9 fd00::7, a", FOUR, SIX, kept("10.6.0.9")]} => =
  the same of two that are bound ${["10.6.0.9, z", FOUR, allocation("10.6.0.9", "Bound", "z")]} => =
  a cooling address is no claim's ${["", allocation("10.6.0.9", "Cooling")]} => =
  of an earlier claim of the name: nothing ${["", OLD]} => =
  of a set of another namespace that names its UID: nothing ${["", EVIL]} => =
  of a set of its own namespace that names its UID: nothing ${["", SET]} => =
  given before, and nothing now: it stays ${["10.6.0.7, a"]} => =
`)("the status of a claim: %s", (_what, [said, ...allocations], wanted) => {
  expect(planClaimStatus(claimOf(said), allocations)).toEqual(wanted === "=" ? undefined : statusOf(wanted));
});

it.each(cases<[said: string, gone: string[], ...allocations: IpAllocation[]]>`
  that it says, and no other: it says none ${["10.6.0.7 fd00::7, a", ["10.6.0.7", "fd00::7"]]} => ,
  of one family: it says the other ${["10.6.0.7 fd00::7, a", ["10.6.0.7"]]} => fd00::7, a
  that it does not say: it stays ${["10.6.0.7 fd00::7, a", ["10.6.0.8"]]} => =
  and has another: it says that ${["10.6.0.7 fd00::7, a", ["10.6.0.7"], allocation("10.6.0.9", "Bound", "b")]}
    => 10.6.0.9, b
  and has it again: it stays ${["10.6.0.7, a", ["10.6.0.7"], FOUR]} => =
`)("a claim has lost an address %s", (_what, [said, gone, ...allocations], wanted) => {
  const found = planClaimStatus(claimOf(said), allocations, gone.map(ip));
  expect(found).toEqual(wanted === "=" ? undefined : statusOf(wanted));
});
