/**
 * Which rows of an owner are of the NIC that a claim is for. An attachment is a network, a container and an interface (CNI 1.1 §1).
 */
import type { Allocation, Claim } from "./registry.ts";

/**
 * Whether the row is of the same interface name in another network: another attachment, whose address a claim neither gets nor touches. What was claimed ahead of an
 * ADD, or taken in from the API server, is of no network yet.
 */
export function isOfOtherNetwork(
  { ifName, containerId, network }: Pick<Allocation, "ifName" | "containerId" | "network">,
  claim: Pick<Claim, "ifName" | "containerId" | "network">,
): boolean {
  if (ifName !== claim.ifName || containerId === "" || network === "" || claim.containerId === "") return false;
  return network !== claim.network;
}
