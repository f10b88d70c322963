/**
 * The names of the CNI protocol as branded text, so that one cannot stand for another.
 */

/** Longest name of an interface, IFNAMSIZ of linux/if.h less its final NUL: bytes. @limit */
export const MAX_IF_NAME_BYTES = 15;

declare const containerIdBrand: unique symbol;
declare const ifNameBrand: unique symbol;

/** A container ID of the runtime (CNI 1.1 §"Parameters"). */
export type ContainerId = string & { readonly [containerIdBrand]: true };

/** The name of an interface inside the pod. */
export type IfName = string & { readonly [ifNameBrand]: true };

/** CNI 1.1 §"Parameters" and §"Network configuration format" give container IDs and network names one grammar. */
const IDENTIFIER = /^[a-zA-Z0-9][a-zA-Z0-9_.-]*$/;

/**
 * What the kernel (`dev_valid_name`) refuses in a name, and what it does not: control characters, and %, for it makes `bond0` when it is
 * asked for `bond%d`, and the next time `bond1`. Half of a character would come back as another one.
 */
const BAD_IN_IF_NAME = /[\s/:%\p{Cc}\p{Cs}]/u;

/** Names that no link can have: their settings below /proc/sys/net are those of all links, and of new ones. */
const RESERVED_IF_NAMES: ReadonlySet<string> = new Set([".", "..", "all", "default"]);

/** What {@link parseContainerId} and {@link parseNetworkName} accept, for error texts. */
export const IDENTIFIER_FORM = "a letter or digit, then letters, digits, _, . or -";

/** What {@link parseIfName} accepts, for error texts. */
export const IF_NAME_FORM = `an interface name: 1 to ${MAX_IF_NAME_BYTES} bytes without "/", ":", "%" and blanks, not "." or "..", "all" or "default"`;

/** Undefined when the text is no container ID. */
export function parseContainerId(text: string): ContainerId | undefined {
  return IDENTIFIER.test(text) ? (text as ContainerId) : undefined;
}

/** Undefined when the text may not name a network configuration. */
export function parseNetworkName(text: string): string | undefined {
  return IDENTIFIER.test(text) ? text : undefined;
}

/** Undefined when the kernel would refuse the name. */
export function parseIfName(text: string): IfName | undefined {
  if (text === "" || RESERVED_IF_NAMES.has(text) || BAD_IN_IF_NAME.test(text)) return undefined;
  return new TextEncoder().encode(text).length <= MAX_IF_NAME_BYTES ? (text as IfName) : undefined;
}
