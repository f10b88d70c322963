/** One step of a rule on the kernel's registers; kernel/netlink/nftables/statement.ts composes them into statements. */
export type Expression =
  /** Loads into the register, or with `sets` stores from it: NFT_META_*, NFT_CT_*. */
  | { readonly name: "meta" | "ct"; readonly key: number; readonly register: number; readonly sets: boolean }
  /** Continues if the comparison holds: NFT_CMP_*. */
  | { readonly name: "cmp"; readonly register: number; readonly operation: number; readonly value: Uint8Array }
  /** destination = (source & mask) ^ xor */
  | {
      readonly name: "bitwise";
      readonly source: number;
      readonly destination: number;
      readonly mask: Uint8Array;
      readonly xor: Uint8Array;
    }
  | { readonly name: "masq" }
  /** Verdict NF_DROP. */
  | { readonly name: "drop" }
  /** An expression that Berth does not write, with its attributes unchanged. */
  | { readonly name: "other"; readonly word: string; readonly attributes: readonly OpaqueAttribute[] };

export type NftRule = readonly Expression[];

/** A base chain, with policy accept. */
export interface NftChain {
  readonly name: string;
  readonly type: "filter" | "nat" | "route";
  /** NF_INET_* */
  readonly hook: number;
  /** NF_IP_PRI_* */
  readonly priority: number;
  readonly rules: readonly NftRule[];
}

/** A table of family inet: both IP families. */
export interface NftTable {
  readonly name: string;
  readonly chains: readonly NftChain[];
}

/** An attribute that is not decoded and copied unchanged. */
export interface OpaqueAttribute {
  readonly type: number;
  /** NLA_F_* */
  readonly flags: number;
  readonly value: Uint8Array;
}
