/**
 * A table of nf_tables as a plain value: sets of interface names, base chains, rules that are chains of expressions.
 * Built by kernel/netlink/nftables/statement.ts, in the words of `nft`.
 */
import type { OpaqueAttribute } from "./state.ts";

/** One step of a rule on the kernel's registers; `statement.ts` has the words that mean something. */
export type Expression =
  /** Loads into the register, or with `sets` sets from it: NFT_META_*, NFT_CT_*. */
  | { readonly name: "meta" | "ct"; readonly key: number; readonly register: number; readonly sets: boolean }
  /** Goes on when the register compares so: NFT_CMP_*. */
  | { readonly name: "cmp"; readonly register: number; readonly operation: number; readonly value: Uint8Array }
  /** destination = (source & mask) ^ xor */
  | {
      readonly name: "bitwise";
      readonly source: number;
      readonly destination: number;
      readonly mask: Uint8Array;
      readonly xor: Uint8Array;
    }
  /** Goes on when the register is in the set, or with NFT_LOOKUP_F_INV when it is not. */
  | { readonly name: "lookup"; readonly register: number; readonly set: string; readonly flags: number }
  | { readonly name: "masq" }
  /** Of others: kept as it came. */
  | { readonly name: "other"; readonly word: string; readonly attributes: readonly OpaqueAttribute[] };

export type NftRule = readonly Expression[];

/** A chain that the kernel calls; its policy is to accept. */
export interface NftChain {
  readonly name: string;
  readonly type: "filter" | "nat" | "route";
  /** NF_INET_* */
  readonly hook: number;
  /** NF_IP_PRI_* */
  readonly priority: number;
  readonly rules: readonly NftRule[];
}

export interface NftSet {
  readonly name: string;
  /** In no order. */
  readonly interfaces: readonly string[];
}

/** Of family inet: for both families. */
export interface NftTable {
  readonly name: string;
  readonly sets: readonly NftSet[];
  readonly chains: readonly NftChain[];
}
