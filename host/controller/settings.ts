/**
 * The service's settings as the controller knows them.
 */
import { DEFAULT_VENDOR_CONF, type VendorConf } from "../config/vendor-conf.ts";
import type { Caches } from "./types.ts";

/** Those of the ConfigMap vendor-conf; the defaults when there is none. */
export function settingsOf({ vendorConf }: Pick<Caches, "vendorConf">): VendorConf {
  const [map] = vendorConf.items.values();
  return map?.conf ?? DEFAULT_VENDOR_CONF;
}
