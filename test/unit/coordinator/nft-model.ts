/** Effect of nf_tables on a packet, for the expressions of Berth's own rules. */
import { encodeUint32 } from "../../../host/kernel/netlink/attribute.ts";
import {
  NFT_CMP_EQ,
  NFT_CT_MARK,
  NFT_CT_STATE,
  NFT_CT_STATUS,
  NFT_META_IIFGROUP,
  NFT_META_IIFNAME,
  NFT_META_MARK,
  NFT_META_OIFNAME,
} from "../../../host/kernel/netlink/nftables/constants.ts";
import { encodeIfName } from "../../../host/kernel/netlink/nftables/statement.ts";
import type { Expression, NftTable } from "../../../host/plan/nft-table.ts";

export interface Packet {
  readonly iifname: string;
  readonly oifname: string;
  /** Group of the link by which it came. */
  readonly iifgroup: number;
  /** Bits of `ct state` and `ct status`. */
  readonly state: number;
  readonly status: number;
  readonly connectionMark: number;
  readonly packetMark: number;
  readonly isMasqueraded: boolean;
  readonly isDropped: boolean;
}

const NUMBERS: Readonly<Record<string, keyof Packet>> = {
  [`meta ${NFT_META_IIFGROUP}`]: "iifgroup",
  [`meta ${NFT_META_MARK}`]: "packetMark",
  [`ct ${NFT_CT_MARK}`]: "connectionMark",
  [`ct ${NFT_CT_STATE}`]: "state",
  [`ct ${NFT_CT_STATUS}`]: "status",
};
const NAMES: Readonly<Record<string, "iifname" | "oifname">> = {
  [`meta ${NFT_META_IIFNAME}`]: "iifname",
  [`meta ${NFT_META_OIFNAME}`]: "oifname",
};

function load(packet: Packet, key: string): Uint8Array {
  const name = NAMES[key];
  if (name !== undefined) return encodeIfName(packet[name]);
  const number = NUMBERS[key];
  if (number === undefined) throw new Error(`Unknown key ${key}`);
  return encodeUint32(Number(packet[number]) >>> 0);
}

const numberOf = (bytes: Uint8Array): number => new Uint32Array(bytes.slice().buffer)[0] ?? Number.NaN;

/** Returns the packet after the rule. */
function follow(rule: readonly Expression[], before: Packet): Packet {
  let register = new Uint8Array();
  let packet = before;
  for (const expression of rule) {
    switch (expression.name) {
      case "meta":
      case "ct": {
        const key = `${expression.name} ${expression.key}`;
        if (expression.sets) packet = { ...packet, [NUMBERS[key] ?? ""]: numberOf(register) };
        else register = new Uint8Array(load(packet, key));
        break;
      }
      case "bitwise":
        register = register.map((byte, at) => (byte & (expression.mask[at] ?? 0)) ^ (expression.xor[at] ?? 0));
        break;
      case "cmp": {
        const isEqual = expression.value.every((byte, at) => register[at] === byte);
        if (isEqual !== (expression.operation === NFT_CMP_EQ)) return packet;
        break;
      }
      case "masq":
        return { ...packet, isMasqueraded: true };
      case "drop":
        return { ...packet, isDropped: true };
      default:
        throw new Error(`Unknown expression ${expression.name}`);
    }
  }
  return packet;
}

/** Returns the packet after the table's chains of one hook (NF_INET_*). */
export function pass({ chains }: NftTable, hook: number, packet: Packet): Packet {
  return chains
    .filter((chain) => chain.hook === hook)
    .flatMap(({ rules }) => rules)
    .reduce((now, rule) => follow(rule, now), packet);
}
