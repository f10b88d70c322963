/// <reference lib="esnext.disposable" preserve="true" />
/**
 * The package berth-core: an allocator of IP addresses for browsers and Node.js, in WebAssembly.
 * Effects: none.
 */
export { CoreError } from "../../../host/core/core-error.ts";
export {
  ABI_VERSION,
  type CoreExports,
  CountOffset,
  MAX_EXCHANGE,
  MAX_OBJECTS,
  MAX_RANGES,
  MAX_SPARSE,
  MAX_WINDOW,
  Policy,
  Status,
} from "../../../host/core/core-exports.ts";
export type { AllocationOrder, Pool as PoolOfValues } from "../../../host/core/pool.ts";
export type { PoolCounts, PoolShape } from "../../../host/core/pool-shape.ts";
export type { RangeSet as RangeSetOfValues } from "../../../host/core/range-set.ts";
export { type Family, formatIp, type Ip, parseIp } from "../../../host/net/ip.ts";
export { formatPrefix, type Prefix, parsePrefix } from "../../../host/net/prefix.ts";
export { formatRange, parseRange, type Range } from "../../../host/net/range.ts";
export { Core, openRaw } from "./core.ts";
export type { WasmSource } from "./load.ts";
export { Pool } from "./pool.ts";
export type { Prefixes } from "./prefixes.ts";
export { RangeSet } from "./range-set.ts";
export { pack, unpack } from "./text.ts";
