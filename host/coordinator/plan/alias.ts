/**
 * Whose a host's end of a pair is, as a text on the link itself: what is there explains itself, to people and to an agent that has
 * forgotten everything.
 */

/** The words of the alias. */
export interface VethOwner {
  /** Pod UID, or the container ID where no pod is known. */
  readonly owner: string;
  readonly containerId: string;
  /** Of the first NIC. */
  readonly network: string;
  /** `namespace/name`, or "". */
  readonly pod: string;
}

/** IFALIASZ of linux/if.h, without the byte that ends it. */
const ALIAS_BYTES = 255;

/**
 * `berth <owner> <container> <network> <pod>`. Blanks in a word become `_`, so that nobody's name is another's container; what is too
 * long loses its end, which is the pod's name.
 */
export function formatAlias({ owner, containerId, network, pod }: VethOwner): string {
  const words = ["berth", owner, containerId, network, pod].filter((word) => word !== "");
  const text = words.map((word) => word.replace(/\s/g, "_")).join(" ");
  const bytes = new TextEncoder().encode(text);
  return bytes.length <= ALIAS_BYTES
    ? text
    : new TextDecoder().decode(bytes.subarray(0, ALIAS_BYTES)).replace(/\ufffd+$/, "");
}

/** Undefined for the alias of a link that is not Berth's. */
export function parseAlias(alias: string): VethOwner | undefined {
  const [word, owner, containerId, network, pod = ""] = alias.split(" ");
  if (word !== "berth" || owner === undefined || containerId === undefined || network === undefined) return undefined;
  return { owner, containerId, network, pod };
}
