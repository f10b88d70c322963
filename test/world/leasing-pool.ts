import { decodeIpPool, type IpPool } from "../../host/resources/ip-pool.ts";
import { ipPool } from "./subjects.ts";

interface LeasingOptions {
  /** Default: e1. */
  readonly epoch?: string;
  /** Default: {@link LEASED}. */
  readonly asOf?: string;
  readonly spec?: object;
  /** Message of its condition Supplied, which is False. Default: there is none. */
  readonly shortfall?: string;
}

/** When the hub has confirmed its blocks. */
export const LEASED = "2026-11-20T12:00:00.000Z";

/** The registry as an agent of the same time sees it. */
export const seenAt = (epoch?: string, minutesLater = 0) => ({
  epoch,
  sinceMs: Date.parse(LEASED) + minutesLater * 60_000,
});

/** A pool of AddressRange "seg" that has leased these blocks: `10.6.0.16/28 Active`. */
export function leasingPool(
  name: string,
  subnet: string,
  blocks: readonly string[],
  options: LeasingOptions = {},
): IpPool {
  const { epoch = "e1", asOf = LEASED, spec, shortfall } = options;
  const listed = blocks.map((text) => {
    const [block, state] = text.split(" ");
    return { block, state };
  });
  const conditions = shortfall === undefined ? [] : [{ type: "Supplied", status: "False", message: shortfall }];
  const pool = ipPool(name, subnet, { source: { range: "seg" }, ...spec });
  return decodeIpPool({ ...pool, status: { source: { epoch, asOf, blocks: listed }, conditions } }, name);
}
