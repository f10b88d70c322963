/** Statements: parts of a rule as `nft` writes them, each a list of expressions over register 1. */
import { invariant } from "../../../lib/invariant.ts";
import type { Expression } from "../../../plan/nft-table.ts";
import { encodeText, encodeUint32 } from "../attribute.ts";
import {
  CT_STATE_NEW,
  IFNAMSIZ,
  IPS_DST_NAT,
  NFT_CMP_EQ,
  NFT_CMP_NEQ,
  NFT_CT_MARK,
  NFT_CT_STATE,
  NFT_CT_STATUS,
  NFT_META_IIFGROUP,
  NFT_META_IIFNAME,
  NFT_META_MARK,
  NFT_META_OIFGROUP,
  NFT_META_OIFNAME,
  NFT_REG_1,
} from "./constants.ts";

const register = NFT_REG_1;
const NOTHING = encodeUint32(0);

const load = (name: "meta" | "ct", key: number): Expression => ({ name, key, register, sets: false });
const store = (name: "meta" | "ct", key: number): Expression => ({ name, key, register, sets: true });
const masked = (mask: number, xor: Uint8Array): Expression => ({
  name: "bitwise",
  source: register,
  destination: register,
  mask: encodeUint32(mask >>> 0),
  xor,
});

const KEYS = { iifname: NFT_META_IIFNAME, oifname: NFT_META_OIFNAME } as const;
const GROUPS = { iifgroup: NFT_META_IIFGROUP, oifgroup: NFT_META_OIFGROUP } as const;
const MARKS = { ct: NFT_CT_MARK, meta: NFT_META_MARK } as const;

/** Encodes the name in sixteen bytes, as the kernel stores names of interfaces. */
export function encodeIfName(name: string): Uint8Array {
  const bytes = encodeText(name);
  invariant(bytes.length > 0 && bytes.length < IFNAMSIZ, `"${name}" is no name of an interface`);
  const padded = new Uint8Array(IFNAMSIZ);
  padded.set(bytes);
  return padded;
}

/** Matches `iifname "veth0"`. */
export function matchInterface(direction: "iifname" | "oifname", name: string): Expression[] {
  return [load("meta", KEYS[direction]), compare(encodeIfName(name), false)];
}

/** Matches `iifname != "veth*"`: no name with that start. */
export function matchOtherThan(direction: "iifname" | "oifname", start: string): Expression[] {
  return [load("meta", KEYS[direction]), compare(encodeText(start), true)];
}

function compare(value: Uint8Array, inverted: boolean): Expression {
  return { name: "cmp", register, operation: inverted ? NFT_CMP_NEQ : NFT_CMP_EQ, value };
}

/** Matches `iifgroup 7`, or `oifgroup != 7`: links of one group (IFLA_GROUP). */
export function matchGroup(direction: "iifgroup" | "oifgroup", group: number, inverted = false): Expression[] {
  return [load("meta", GROUPS[direction]), compare(encodeUint32(group >>> 0), inverted)];
}

function matchAnyBit(key: number, bits: number, inverted = false): Expression[] {
  return [load("ct", key), masked(bits, NOTHING), compare(NOTHING, !inverted)];
}

/** `ct state new` */
export function matchNewConnection(): Expression[] {
  return matchAnyBit(NFT_CT_STATE, CT_STATE_NEW);
}

/** `ct status dnat`, or `ct status & dnat == 0` */
export function matchDnat(inverted = false): Expression[] {
  return matchAnyBit(NFT_CT_STATUS, IPS_DST_NAT, inverted);
}

/** Matches `ct mark & 0x1 == 0x1`, on the connection or the packet. */
export function matchMark(of: "ct" | "meta", value: number, mask: number): Expression[] {
  return [load(of, MARKS[of]), masked(mask, NOTHING), compare(encodeUint32(value >>> 0), false)];
}

/** Sets `ct mark set ct mark & ~0x1 | 0x1`: bits outside of the mask stay. */
export function setMark(of: "ct" | "meta", value: number, mask: number): Expression[] {
  invariant((value & ~mask) === 0, `Mark ${value} has bits outside of its mask ${mask}`);
  return [load(of, MARKS[of]), masked(~mask, encodeUint32(value >>> 0)), store(of, MARKS[of])];
}

/** `drop` */
export function drop(): Expression[] {
  return [{ name: "drop" }];
}

/** `masquerade` */
export function masquerade(): Expression[] {
  return [{ name: "masq" }];
}
