/**
 * Other machines that use a pod's address, by the neighbour table of the node's link below the pod's NIC. Only what
 * is known already: no probes.
 */
import { equalIp, formatIp } from "../../net/ip.ts";
import type { LinkState } from "../../plan/state.ts";
import type { DamageFinding } from "../../records/check-record.ts";
import type { ResolvedNeighbour } from "../coordinator/observe-node.ts";
import { finding, isOf, isSteady, type NicAddress, type NodeFacts, type RowFacts } from "./find-damage.ts";

/** A MAC address with so many addresses on one link answers for others, as routers with proxy ARP do. */
export const PROXY_ADDRESSES = 3;

interface RivalFacts extends Pick<NodeFacts, "nowMs" | "rows" | "nics" | "objects" | "pools"> {
  readonly neighbours: readonly ResolvedNeighbour[];
  /** The node's links. */
  readonly links: readonly LinkState[];
}

/** Returns one finding for each address that another machine has proved to have since it is the pod's. */
export function findRivals(facts: RivalFacts): DamageFinding[] {
  return facts.rows.flatMap((each) => {
    const { row } = each;
    if (each.netns !== "inUse" || !isSteady(row, facts) || isShared(each, facts)) return [];
    const nic = facts.nics.find((other) => isOf(each, other));
    const rival = nic && findRival(nic, facts.nowMs - row.sinceMs, facts);
    if (rival === undefined) return [];
    const link = facts.links.find(({ index }) => index === rival.link)?.name ?? rival.link;
    const text = `a machine with the MAC address ${rival.mac} on ${link} has it too, says the node's neighbour table`;
    const remedy = "Find that machine and give it another address, or restart the pod with detectIPConflict";
    return [finding("duplicate", row, text, remedy)];
  });
}

/** A virtual machine that migrates has the address on two nodes. */
function isShared({ row }: RowFacts, { objects }: RivalFacts): boolean {
  return [...(objects?.values() ?? [])].some(
    ({ spec }) => spec.addressSpace === row.space && equalIp(spec.ip, row.ip) && spec.holders.length > 1,
  );
}

function findRival(nic: NicAddress, sinceMs: number, facts: RivalFacts): ResolvedNeighbour | undefined {
  const segment = linksBelow(nic, facts.links);
  return facts.neighbours.find(
    (each) =>
      segment.includes(each.link) &&
      equalIp(each.ip, nic.ip) &&
      !nic.macs.includes(each.mac) &&
      // An older entry is of the pod that had the address before.
      each.confirmedAgoMs < sinceMs &&
      !isProxy(each, facts),
  );
}

/** The link below the NIC, and the bridge of which it is a member. */
function linksBelow({ parent }: NicAddress, links: readonly LinkState[]): number[] {
  const below = links.find(({ index }) => index === parent);
  const bridge = below && links.find(({ name }) => name === below.master);
  return [below, bridge].flatMap((link) => link?.index ?? []);
}

function isProxy({ link, mac }: ResolvedNeighbour, { neighbours, pools }: RivalFacts): boolean {
  const same = neighbours.filter((each) => each.link === link && each.mac === mac);
  const addresses = new Set(same.map(({ ip }) => formatIp(ip)));
  const gateways = [...pools.values()].flatMap(({ spec }) => (spec.gateway ? formatIp(spec.gateway) : []));
  return addresses.size >= PROXY_ADDRESSES || gateways.some((gateway) => addresses.has(gateway));
}
