/**
 * The service's own settings: key `conf.yml` of the ConfigMap `vendor-conf` (spec.md, Resolved C).
 * Called by whoever watches that ConfigMap or reads it from a file.
 * Effects: none.
 */

export interface VendorConf {
  readonly enableIPv4: boolean;
  readonly enableIPv6: boolean;
  readonly allowSingleFamily: boolean;
  readonly enableSubnet: boolean;
  readonly enableStatefulSet: boolean;
  readonly enableKubevirt: boolean;
  readonly allocationCooldownMs: number;
  readonly garbageCollection: { readonly intervalMs: number; readonly graceMs: number; readonly nodeLostMs: number };
  readonly maxGeneratedPoolSize: number;
  /** 0 is no limit. */
  readonly maxGeneratedAddressesPerNamespace: number;
}

/** What holds without a ConfigMap. */
export const DEFAULT_VENDOR_CONF: VendorConf = {
  enableIPv4: true,
  enableIPv6: true,
  allowSingleFamily: false,
  enableSubnet: true,
  enableStatefulSet: true,
  enableKubevirt: true,
  allocationCooldownMs: 30_000,
  garbageCollection: { intervalMs: 300_000, graceMs: 60_000, nodeLostMs: 600_000 },
  maxGeneratedPoolSize: 1_024,
  maxGeneratedAddressesPerNamespace: 0,
};

/** `value` is the parsed YAML; nothing at all means the defaults. Throws ConfigError. */
export function decodeVendorConf(_value: unknown, _source: string): VendorConf {
  throw new Error("decodeVendorConf is under construction");
}
