/**
 * The shapes of pools that are compared: how large, how full, and exactly which addresses are taken.
 * Effects: none; the same shape always gives the same addresses.
 */

export interface PoolShape {
  readonly name: string;
  readonly subnet: string;
  /** A /112 from which pods get an IPv6 address, too. */
  readonly subnet6?: string;
  /** The share of the usable addresses that is in use before the first call, 0 to 1. */
  readonly taken: number;
  /** Berth's cooldown of a released address; none to compare with host-local, which has no cooldown. */
  readonly cooldown: string;
}

export const emptyC24: PoolShape = { name: "empty /24", subnet: "10.1.0.0/24", taken: 0, cooldown: "0s" };
/**
 * With Berth's default rest nearly all of the /24 is cooling after the first round: most ADDs take such an address
 * over.
 */
export const coolingC24: PoolShape = { ...emptyC24, name: "empty /24, cooldown 30 s", cooldown: "30s" };
/** 4,500 addresses: of some peers' pools, which are one object each, a larger one cannot have more. */
export const half19: PoolShape = { name: "/19 at 55 %", subnet: "10.4.0.0/19", taken: 0.55, cooldown: "0s" };
export const half16: PoolShape = { name: "/16 at 50 %", subnet: "10.2.0.0/16", taken: 0.5, cooldown: "0s" };
export const full16: PoolShape = { name: "/16 at 99 %", subnet: "10.3.0.0/16", taken: 0.99, cooldown: "0s" };
export const dual24: PoolShape = {
  ...emptyC24,
  name: "dual stack, empty",
  subnet: "10.7.0.0/24",
  subnet6: "fd00:7::/112",
};
/** 125 addresses for pods. */
export const exact25: PoolShape = { name: "/25", subnet: "10.8.0.0/25", taken: 0, cooldown: "0s" };
/** 1,021 addresses for pods. */
export const storm22: PoolShape = { name: "/22", subnet: "10.9.0.0/22", taken: 0, cooldown: "0s" };
export const full12: PoolShape = { name: "/12 at 99 %", subnet: "10.16.0.0/12", taken: 0.99, cooldown: "0s" };

/** The first and the last address that may be given to a pod: neither network, broadcast nor gateway (the first). */
export function usableRange({ subnet }: Pick<PoolShape, "subnet">): { gateway: string; first: string; last: string } {
  const { base, size } = decodeSubnet(subnet);
  return { gateway: formatAddress(base + 1), first: formatAddress(base + 2), last: formatAddress(base + size - 2) };
}

/** The same of the IPv6 subnet, which has `::` before its length: as many addresses as a /24 has. */
export function usableRange6(subnet6: string): { gateway: string; first: string; last: string } {
  const [base = ""] = subnet6.split("/");
  return { gateway: `${base}1`, first: `${base}2`, last: `${base}fe` };
}

/** The addresses in use, ascending, spread at random with a fixed seed. */
export function* takenAddresses(shape: PoolShape): Generator<string> {
  const { base } = decodeSubnet(shape.subnet);
  for (const offset of takenOffsets(shape)) yield formatAddress(base + offset);
}

/** The same, counted from the subnet's own address. */
export function* takenOffsets({ subnet, taken }: PoolShape): Generator<number> {
  const { size } = decodeSubnet(subnet);
  const random = seededRandom(size);
  for (let offset = 2; offset <= size - 2; offset++) if (random() < taken) yield offset;
}

export function decodeSubnet(subnet: string): { base: number; size: number } {
  const [address = "", length = ""] = subnet.split("/");
  const base = address.split(".").reduce((value, octet) => value * 256 + Number(octet), 0);
  return { base, size: 2 ** (32 - Number(length)) };
}

export function formatAddress(value: number): string {
  return [24, 16, 8, 0].map((shift) => (value >>> shift) & 255).join(".");
}

/** A linear congruential generator (the constants of ISO C's example); values from 0 to below 1. */
function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return (state >>> 8) / 2 ** 24;
  };
}
