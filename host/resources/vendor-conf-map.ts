/** The ConfigMap `vendor-conf`, whose key `conf.yml` holds the cluster-wide settings. */
import * as z from "zod";
import { ConfigError, decodeConfig } from "../config/config-error.ts";
import { decodeVendorConf, type VendorConf } from "../config/vendor-conf.ts";
import { parseYaml } from "../config/yaml.ts";
import { metadata } from "./fields/metadata.ts";

export interface VendorConfMap {
  readonly kind: "ConfigMap";
  readonly name: "vendor-conf";
  readonly conf: VendorConf;
}

const VENDOR_CONF_NAME = "vendor-conf";
const VENDOR_CONF_KEY = "conf.yml";

/** The API server omits `apiVersion` and `kind` in the items of a list. */
const configMapSchema = z.strictObject({
  apiVersion: z.literal("v1").optional(),
  kind: z.literal("ConfigMap").optional(),
  metadata,
  data: z.strictObject({ [VENDOR_CONF_KEY]: z.string() }),
  immutable: z.boolean().optional(),
});

/** Decodes the ConfigMap and the settings in it. Throws ConfigError, also for a ConfigMap with another name. */
export function decodeVendorConfMap(value: unknown, source: string): VendorConfMap {
  const { metadata, data } = decodeConfig(configMapSchema, value, source);
  if (metadata.name !== VENDOR_CONF_NAME) {
    const mismatch = { path: "metadata.name", got: `"${metadata.name}"`, wanted: `"${VENDOR_CONF_NAME}"` };
    throw new ConfigError(source, [mismatch]);
  }
  const inside = `${source}, key "${VENDOR_CONF_KEY}"`;
  const documents = parseYaml(data[VENDOR_CONF_KEY], inside);
  if (documents.length > 1) {
    throw new ConfigError(inside, [{ path: "", got: `${documents.length} documents`, wanted: "one" }]);
  }
  const [document] = documents;
  const conf = document === undefined ? decodeVendorConf(undefined, inside) : document.decode(inside, decodeVendorConf);
  return { kind: "ConfigMap", name: VENDOR_CONF_NAME, conf: { ...conf, home: metadata.namespace } };
}
