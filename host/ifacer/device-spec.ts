/** The devices that a network definition asks the ifacer for: its configuration with the bond's options parsed. */
import { ConfigError } from "../config/config-error.ts";
import { decodeIfacerConf, type IfacerConf } from "../config/ifacer-conf.ts";
import type { BondSettings } from "../plan/bond.ts";
import { parseBondOptions } from "./bond-options.ts";

export interface DeviceSpec extends IfacerConf {
  /** Options without the mode; empty without a bond. */
  readonly options: BondSettings;
}

/** Decodes a plugin entry's own keys. Throws ConfigError. */
export function decodeDeviceSpec(value: unknown, source: string): DeviceSpec {
  const conf = decodeIfacerConf(value, source);
  const { bond, interfaces } = conf;
  if (bond === undefined) return { ...conf, options: { numbers: {} } };
  const { settings, mismatches } = parseBondOptions(bond.options, { mode: bond.mode, members: interfaces });
  const [first, ...rest] = mismatches;
  if (first !== undefined) throw new ConfigError(source, [first, ...rest]);
  return { ...conf, options: settings };
}
