import { UNKNOWN_CONTAINER } from "./journal.ts";
import type { Allocation, Claim } from "./registry.ts";

/**
 * Returns whether the row has the claim's interface name in another network: it then belongs to another attachment
 * (CNI 1.1 §1), and the claim neither gets nor changes its address. A row that was claimed ahead of an ADD, or
 * adopted from the API server, has no network yet.
 */
export function isOfOtherNetwork(
  { ifName, containerId, network }: Pick<Allocation, "ifName" | "containerId" | "network">,
  claim: Pick<Claim, "ifName" | "containerId" | "network">,
): boolean {
  if (ifName !== claim.ifName || containerId === "" || network === "" || claim.containerId === "") return false;
  return network !== claim.network;
}

/**
 * Returns whether the row was adopted from another IPAM: it names its container, and no network. So the pod keeps the
 * address if its next sandbox is attached by a network of any name.
 */
export function isAdopted({ state, network, containerId, netns, pod }: Allocation): boolean {
  const isAttached = containerId !== "" && containerId !== UNKNOWN_CONTAINER;
  return state === "Bound" && network === "" && pod !== "" && isAttached && netns !== undefined;
}
