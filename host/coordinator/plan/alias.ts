/** The owner of a veth's host end, as the link's alias (IFLA_IFALIAS): for people, and for an agent without state. */

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
 * can pass for another field. The end of a text that is too long, the pod's name, is cut off.
 */
export function formatAlias({ owner, containerId, network, pod }: VethOwner): string {
  const words = ["berth", owner, containerId, network, pod].filter((word) => word !== "");
  const text = words.map((word) => word.replace(/\s/g, "_")).join(" ");
  // With `stream`, an incomplete character at the end is left out.
  return new TextDecoder().decode(new TextEncoder().encode(text).subarray(0, ALIAS_BYTES), { stream: true });
}

/** Returns undefined for the alias of a link that is not Berth's. */
export function parseAlias(alias: string): VethOwner | undefined {
  const [word, owner = "", containerId = "", network, pod = ""] = alias.split(" ");
  if (word !== "berth" || network === undefined) return undefined;
  return { owner, containerId, network, pod };
}
