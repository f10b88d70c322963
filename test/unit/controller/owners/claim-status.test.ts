import { expect, it } from "vitest";
import { planClaimStatus } from "../../../../host/controller/owners/claim-status.ts";
import { parseIp } from "../../../../host/net/ip.ts";
import type { AllocationState, IpAllocation } from "../../../../host/resources/ip-allocation.ts";
import { decodeIpamClaim } from "../../../../host/resources/workloads/ipam-claim.ts";

const claimOf = (status?: object) =>
  decodeIpamClaim(
    { metadata: { namespace: "shop", name: "c", uid: "c-1" }, spec: { network: "lan", interface: "net1" }, status },
    "x",
  );

function allocation(
  address: string,
  state: AllocationState,
  pod?: string,
  uid = "c-1",
  forged: object = {},
): IpAllocation {
  const ip = parseIp(address);
  if (ip === undefined) throw new TypeError(address);
  const holders = pod === undefined ? [] : [{ namespace: "shop", pod, podUid: pod, ifName: "net1", node: "n1" }];
  const workload = { kind: "IPAMClaim", namespace: "shop", name: "c", uid, member: "c", ...forged };
  const spec = {
    ip,
    addressSpace: "",
    prefixLength: ip.family === 4 ? 24 : 64,
    pool: "blue",
    state,
    node: "n1",
    holders,
    workload,
  };
  return { kind: "IPAllocation", name: address, uid: address, resourceVersion: "1", deleting: false, spec };
}

const SIX = allocation("fd00::7", "Bound", "a");
const FORGED = allocation("10.6.0.9", "Bound", "a", "c-1", { namespace: "evil" });
const FOUR = allocation("10.6.0.7", "Bound", "a");

it.each([
  ["nothing given: nothing is said", claimOf(), [], undefined],
  ["both families, IPv4 first", claimOf(), [SIX, FOUR], { ips: ["10.6.0.7/24", "fd00::7/64"], ownerPod: "a" }],
  ["said already", claimOf({ ips: ["10.6.0.7/24"], ownerPod: "a" }), [FOUR], undefined],
  ["another pod", claimOf({ ips: ["10.6.0.7/24"], ownerPod: "z" }), [FOUR], { ips: ["10.6.0.7/24"], ownerPod: "a" }],
  [
    "kept: the last pod stays named",
    claimOf({ ips: ["10.6.0.7/24"], ownerPod: "a" }),
    [allocation("10.6.0.7", "Kept")],
    undefined,
  ],
  [
    "kept, and the status was lost: the addresses are said again",
    claimOf(),
    [allocation("10.6.0.7", "Kept")],
    { ips: ["10.6.0.7/24"], ownerPod: "" },
  ],
  [
    "another address of the same pod",
    claimOf({ ips: ["10.6.0.9/24"], ownerPod: "a" }),
    [FOUR],
    { ips: ["10.6.0.7/24"], ownerPod: "a" },
  ],
  ["of no workload: nothing", claimOf(), [{ ...FOUR, spec: { ...FOUR.spec, workload: undefined } }], undefined],
  [
    "what a pod has before what is kept",
    claimOf(),
    [allocation("10.6.0.9", "Kept"), FOUR],
    { ips: ["10.6.0.7/24"], ownerPod: "a" },
  ],
  [
    "what was said and is in quarantine for a lost node: it stays beside the other family",
    claimOf({ ips: ["10.6.0.7/24", "fd00::7/64"], ownerPod: "a" }),
    [allocation("10.6.0.7", "Quarantined"), allocation("fd00::7", "Kept")],
    undefined,
  ],
  [
    "what was said and cools: it is no longer said",
    claimOf({ ips: ["10.6.0.7/24", "fd00::7/64"], ownerPod: "a" }),
    [allocation("10.6.0.7", "Cooling"), allocation("fd00::7", "Kept")],
    { ips: ["fd00::7/64"], ownerPod: "a" },
  ],
  [
    "what a pod has before what is in quarantine for a lost node, said or not",
    claimOf({ ips: ["10.6.0.9/24"], ownerPod: "z" }),
    [allocation("10.6.0.9", "Quarantined"), allocation("fd00::9", "Quarantined"), FOUR],
    { ips: ["10.6.0.7/24"], ownerPod: "a" },
  ],
  [
    "what was said before what another pod has claimed, which may never be answered",
    claimOf({ ips: ["10.6.0.9/24"], ownerPod: "z" }),
    [FOUR, allocation("10.6.0.9", "Kept")],
    undefined,
  ],
  [
    "the same of both families",
    claimOf({ ips: ["10.6.0.9/24", "fd00::7/64"], ownerPod: "a" }),
    [FOUR, SIX, allocation("10.6.0.9", "Kept")],
    undefined,
  ],
  [
    "the same of two that are bound",
    claimOf({ ips: ["10.6.0.9/24"], ownerPod: "z" }),
    [FOUR, allocation("10.6.0.9", "Bound", "z")],
    undefined,
  ],
  ["a cooling address is no claim's", claimOf(), [allocation("10.6.0.9", "Cooling")], undefined],
  ["of an earlier claim of the name: nothing", claimOf(), [allocation("10.6.0.9", "Bound", "a", "c-0")], undefined],
  ["of a set of another namespace that names its UID: nothing", claimOf(), [FORGED], undefined],
  [
    "of a set of its own namespace that names its UID: nothing",
    claimOf(),
    [allocation("10.6.0.9", "Bound", "a", "c-1", { kind: "StatefulSet" })],
    undefined,
  ],
  ["given before, and nothing now: it stays", claimOf({ ips: ["10.6.0.7/24"], ownerPod: "a" }), [], undefined],
])("the status of a claim: %s", (_what, claim, allocations, wanted) => {
  expect(planClaimStatus(claim, allocations)).toEqual(wanted);
});

const SAID = { ips: ["10.6.0.7/24", "fd00::7/64"], ownerPod: "a" };

it.each([
  ["that it says, and no other: it says none", SAID, [], ["10.6.0.7", "fd00::7"], { ips: [], ownerPod: "" }],
  ["of one family: it says the other", SAID, [], ["10.6.0.7"], { ips: ["fd00::7/64"], ownerPod: "a" }],
  ["that it does not say: it stays", SAID, [], ["10.6.0.8"], undefined],
  [
    "and has another: it says that",
    SAID,
    [allocation("10.6.0.9", "Bound", "b")],
    ["10.6.0.7"],
    { ips: ["10.6.0.9/24"], ownerPod: "b" },
  ],
  ["and has it again: it stays", { ips: ["10.6.0.7/24"], ownerPod: "a" }, [FOUR], ["10.6.0.7"], undefined],
] as const)("a claim has lost an address %s", (_what, said, allocations, gone, wanted) => {
  const ips = gone.map((each) => parseIp(each) ?? expect.unreachable());
  expect(planClaimStatus(claimOf(said), allocations, ips)).toEqual(wanted);
});
