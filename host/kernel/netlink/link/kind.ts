/**
 * Kinds of links: IFLA_LINKINFO ↔ values for the kinds that Berth creates; other kinds keep their attributes.
 *
 *      IFLA_LINKINFO { IFLA_INFO_KIND "macvlan", IFLA_INFO_DATA { IFLA_MACVLAN_MODE 4 } }
 */
import {
  type Attribute,
  attribute,
  decodeAttributes,
  decodeUint16,
  decodeUint32,
  encodeText,
  encodeUint16,
  encodeUint32,
  findValue,
  nest,
  readValue,
} from "../attribute.ts";
import { malformed } from "../error.ts";
import { type BondOptions, decodeBond, encodeBond } from "./bond.ts";
import {
  ETH_P_8021Q,
  IFLA_INFO_DATA,
  IFLA_INFO_KIND,
  IFLA_LINKINFO,
  IFLA_MACVLAN_MODE,
  IFLA_VLAN_ID,
  IFLA_VLAN_PROTOCOL,
} from "./constants.ts";

export type LinkKind =
  | { readonly kind: "veth" }
  | { readonly kind: "bridge" }
  | { readonly kind: "dummy" }
  /** MACVLAN_MODE_* */
  | { readonly kind: "macvlan"; readonly mode: number }
  /** `protocol` is ETH_P_8021Q or ETH_P_8021AD. */
  | { readonly kind: "vlan"; readonly id: number; readonly protocol: number }
  | { readonly kind: "bond"; readonly options: BondOptions }
  /** `name` is the kernel's name of the kind; `attributes` are those of IFLA_INFO_DATA. */
  | { readonly kind: "other"; readonly name: string; readonly attributes: readonly Attribute[] };

/** Returns the kernel's name of the kind, as `ip -d link` shows it. */
export function kindName(kind: LinkKind): string {
  return kind.kind === "other" ? kind.name : kind.kind;
}

function networkOrder(value: Uint8Array): Uint8Array {
  return value.slice().reverse();
}

function encodeKindAttributes(kind: LinkKind): readonly Attribute[] {
  switch (kind.kind) {
    case "veth":
    case "bridge":
    case "dummy":
      return [];
    case "macvlan":
      return [attribute(IFLA_MACVLAN_MODE, encodeUint32(kind.mode))];
    case "vlan": {
      const protocol = attribute(IFLA_VLAN_PROTOCOL, networkOrder(encodeUint16(kind.protocol)));
      return [...(kind.protocol === ETH_P_8021Q ? [] : [protocol]), attribute(IFLA_VLAN_ID, encodeUint16(kind.id))];
    }
    case "bond":
      return encodeBond(kind.options);
    case "other":
      return kind.attributes;
  }
}

const decoder = new TextDecoder();

/** Decodes a name with a final NUL, as the kernel sends it, or without, as `ip` does. */
function decodeName(value: Uint8Array): string {
  return decoder.decode(value.at(-1) === 0 ? value.subarray(0, -1) : value);
}

/** `more` are attributes besides the kind's own: the peer of a new veth. */
export function encodeKind(kind: LinkKind, more: readonly Attribute[] = []): Attribute {
  const attributes = [...encodeKindAttributes(kind), ...more];
  const name = encodeText(kindName(kind));
  const data = attributes.length === 0 ? [] : [nest(IFLA_INFO_DATA, attributes)];
  return nest(IFLA_LINKINFO, [attribute(IFLA_INFO_KIND, name), ...data]);
}

function requireValue<T>(what: string, value: T | undefined): T {
  if (value === undefined) throw malformed("link kind", 0, `no ${what}`, "one");
  return value;
}

const PLAIN = ["veth", "bridge", "dummy"] as const;

function decodeNamed(name: string, data: Uint8Array): LinkKind {
  const plain = PLAIN.find((one) => one === name);
  if (plain !== undefined) return { kind: plain };
  const attributes = decodeAttributes(data);
  switch (name) {
    case "macvlan":
      return { kind: name, mode: requireValue("macvlan mode", readValue(attributes, IFLA_MACVLAN_MODE, decodeUint32)) };
    case "vlan": {
      const protocol = readValue(attributes, IFLA_VLAN_PROTOCOL, (value) => decodeUint16(networkOrder(value)));
      const id = requireValue("VLAN id", readValue(attributes, IFLA_VLAN_ID, decodeUint16));
      return { kind: name, id, protocol: protocol ?? ETH_P_8021Q };
    }
    case "bond":
      return { kind: name, options: decodeBond(attributes) };
    default:
      return { kind: "other", name, attributes };
  }
}

/** Decodes the kind from a link's attributes; undefined for a physical device or loopback. */
export function decodeKind(attributes: readonly Attribute[]): LinkKind | undefined {
  const given = findValue(attributes, IFLA_LINKINFO);
  if (given === undefined) return undefined;
  const list = decodeAttributes(given);
  const name = readValue(list, IFLA_INFO_KIND, decodeName);
  if (name === undefined) return undefined;
  return decodeNamed(name, findValue(list, IFLA_INFO_DATA) ?? new Uint8Array());
}
