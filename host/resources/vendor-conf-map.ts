/** The ConfigMap `vendor-conf`, whose key `conf.yml` holds the cluster-wide settings. */
import * as z from "zod";
import { ConfigError, decodeConfig } from "../config/config-error.ts";
import { DEFAULT_VENDOR_CONF, decodeVendorConf, type VendorConf } from "../config/vendor-conf.ts";
import { parseYaml } from "../config/yaml.ts";
import { metadata } from "./fields/metadata.ts";

export interface VendorConfMap {
  readonly kind: "ConfigMap";
  readonly name: "vendor-conf";
  readonly conf: VendorConf;
  /** As written. */
  readonly text: string;
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

/**
 * Decodes the ConfigMap and its settings; an emptied one does not replace those known `before` (rule known-stays).
 * Throws ConfigError, also for a ConfigMap with another name.
 */
export function decodeVendorConfMap(value: unknown, source: string, before?: VendorConfMap): VendorConfMap {
  const { metadata, data } = decodeConfig(configMapSchema, value, source);
  if (metadata.name !== VENDOR_CONF_NAME) {
    const mismatch = { path: "metadata.name", got: `"${metadata.name}"`, wanted: `"${VENDOR_CONF_NAME}"` };
    throw new ConfigError(source, [mismatch]);
  }
  const text = data[VENDOR_CONF_KEY];
  if (text.trim() === "" && before !== undefined)
    throw new ConfigError(source, [{ path: "", got: "nothing", wanted: "settings; {} stands for the defaults" }]);
  const conf = decodeSettings(text, `${source}, key "${VENDOR_CONF_KEY}"`, metadata.namespace);
  return { kind: "ConfigMap", name: VENDOR_CONF_NAME, conf, text };
}

/** Returns the settings in force; `kept`: those that the controller has kept. */
export function settingsInForce(map: VendorConfMap | undefined, kept: VendorConf | undefined): VendorConf {
  return map === undefined || map.text.trim() === "" ? (kept ?? map?.conf ?? DEFAULT_VENDOR_CONF) : map.conf;
}

/** Decodes the text of `conf.yml`; `home`: the namespace of its ConfigMap. Throws ConfigError. */
export function decodeSettings(text: string, source: string, home: string | undefined): VendorConf {
  const documents = parseYaml(text, source);
  if (documents.length > 1)
    throw new ConfigError(source, [{ path: "", got: `${documents.length} documents`, wanted: "one" }]);
  const [document] = documents;
  const conf = document === undefined ? decodeVendorConf(undefined, source) : document.decode(source, decodeVendorConf);
  return { ...conf, home };
}
