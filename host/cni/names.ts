/** Names of the CNI protocol as branded types, so that they cannot be confused. */

/** Longest name of an interface, IFNAMSIZ of linux/if.h less its final NUL: bytes. */
export const MAX_IF_NAME_BYTES = 15;

/** Longest alternative name of an interface, ALTIFNAMSIZ of linux/if.h less its final NUL: bytes. */
export const MAX_ALT_NAME_BYTES = 127;

declare const containerIdBrand: unique symbol;
declare const ifNameBrand: unique symbol;

/** A container ID of the runtime (CNI 1.1 §"Parameters"). */
export type ContainerId = string & { readonly [containerIdBrand]: true };

/** The name of an interface inside the pod. */
export type IfName = string & { readonly [ifNameBrand]: true };

/** CNI 1.1 §"Parameters" and §"Network configuration format" give container IDs and network names one grammar. */
const IDENTIFIER = /^[a-zA-Z0-9][a-zA-Z0-9_.-]*$/;

/**
 * No characters and names that the kernel refuses (`dev_valid_name`), and more: control characters; lone surrogates,
 * which do not survive encoding; and %, because the kernel makes `bond0` out of `bond%d`, and `bond1` the next time.
 * Below /proc/sys/net, `all` and `default` are the settings of all and of new links.
 */
const LINK_NAME = /^(?!(?:\.|\.\.|all|default)$)[^\s/:%\p{Cc}\p{Cs}]+$/u;

/** The form that {@link parseContainerId} and {@link parseNetworkName} accept, for error texts. */
export const IDENTIFIER_FORM = "a letter or digit, then letters, digits, _, . or -";

/** The form that {@link parseIfName} accepts, for error texts. */
export const IF_NAME_FORM = `an interface name: 1 to ${MAX_IF_NAME_BYTES} bytes without "/", ":", "%" and blanks, not "." or "..", "all" or "default"`;

/** The form that {@link parseLinkName} accepts, for error texts. */
export const LINK_NAME_FORM = `an interface name or an alternative one: 1 to ${MAX_ALT_NAME_BYTES} bytes without "/", ":", "%" and blanks, not "." or "..", "all" or "default"`;

/** Returns undefined if the text is not a container ID. */
export function parseContainerId(text: string): ContainerId | undefined {
  return IDENTIFIER.test(text) ? (text as ContainerId) : undefined;
}

/** Returns undefined if the text cannot name a network configuration. */
export function parseNetworkName(text: string): string | undefined {
  return IDENTIFIER.test(text) ? text : undefined;
}

/** Returns undefined if the text cannot name an interface. */
export function parseIfName(text: string): IfName | undefined {
  return LINK_NAME.test(text) && Buffer.byteLength(text) <= MAX_IF_NAME_BYTES ? (text as IfName) : undefined;
}

/** Returns undefined if the text can be neither a name nor an alternative name of an interface. */
export function parseLinkName(text: string): string | undefined {
  return LINK_NAME.test(text) && Buffer.byteLength(text) <= MAX_ALT_NAME_BYTES ? text : undefined;
}
