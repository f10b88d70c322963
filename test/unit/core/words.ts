/** Addresses and shapes as text, for the tests of the core's door. */
import type { PoolShape } from "../../../host/core/pool-shape.ts";
import { formatIp, type Ip } from "../../../host/net/ip.ts";
import { range } from "../../world/values.ts";

export function shape(ranges: string[], masked: string[] = []): PoolShape {
  return { ranges: ranges.map(range), masked: masked.map(range) };
}

export function textOf(found: Ip | undefined): string | undefined {
  return found === undefined ? undefined : formatIp(found);
}
