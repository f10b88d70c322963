/**
 * The colours of the map: those of Okabe and Ito, which people with any kind of colour vision can tell apart;
 * patterns tell them apart as well.
 */
import type { Kind } from "./map-model.ts";
import type { Palette } from "./tiles.ts";

/** The page's name of a kind, and its meaning. */
export const KIND_TEXTS: Readonly<Record<Kind, string>> = {
  Free: "free",
  Bound: "bound to a pod",
  Cooling: "cooling after a release",
  Kept: "kept for a workload",
  Quarantined: "quarantined",
  InUse: "in use",
  Reserved: "reserved",
  Elsewhere: "another cluster's",
  Outside: "outside of the pool",
};

/** In the order of KINDS. */
export const LIGHT: Palette = {
  ground: [0xe3ebf1, 0x0072b2, 0x56b4e9, 0x009e73, 0xd55e00, 0x6f7b85, 0xf0e442, 0xe0b7d0, 0xa9b2b9],
  ink: [0xe3ebf1, 0x0072b2, 0xffffff, 0xffffff, 0xffffff, 0xffffff, 0x8a7a00, 0x7a3e63, 0x77828b],
  empty: 0xffffff,
};

export const DARK: Palette = {
  ground: [0x3a4b5b, 0x3d9be0, 0x8fd0f7, 0x2fc59a, 0xff7f2a, 0x93a1ad, 0xd8c930, 0x7a5570, 0x11171d],
  ink: [0x3a4b5b, 0x3d9be0, 0x12202b, 0x0b2b20, 0x331300, 0x1b232a, 0x4d4600, 0xe0b7d0, 0x2c3843],
  empty: 0x0f151b,
};
