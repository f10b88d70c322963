/**
 * The owner of a veth's host end, as the alias of the link (IFLA_IFALIAS): it explains the link to people, and to an
 * agent that has lost its state.
 */

/** The fields of the alias. */
export interface VethOwner {
  /** Pod UID, or the container ID where no pod is known. */
  readonly owner: string;
  readonly containerId: string;
  /** Network of the first NIC. */
  readonly network: string;
  /** `namespace/name`, or "". */
  readonly pod: string;
}

/** IFALIASZ of linux/if.h, without the byte that ends it. */
const ALIAS_BYTES = 255;

/**
 * Formats the alias as `berth <owner> <container> <network> <pod>`. Blanks within a field become `_`, so that no name
 * can pass for another field. A text that is too long is cut at its end, the pod's name.
 */
export function formatAlias({ owner, containerId, network, pod }: VethOwner): string {
  const words = ["berth", owner, containerId, network, pod].filter((word) => word !== "");
  const text = words.map((word) => word.replace(/\s/g, "_")).join(" ");
  // A stream keeps back the first part of a character.
  return new TextDecoder().decode(new TextEncoder().encode(text).subarray(0, ALIAS_BYTES), { stream: true });
}

/** Returns undefined for the alias of a link that is not Berth's. */
export function parseAlias(alias: string): VethOwner | undefined {
  const [word, owner = "", containerId = "", network, pod = ""] = alias.split(" ");
  if (word !== "berth" || network === undefined) return undefined;
  return { owner, containerId, network, pod };
}
