/**
 * The fields of a NetworkAttachmentDefinition (k8s.cni.cncf.io/v1) that Berth reads. config/network-definition.ts
 * decodes its configuration.
 */
import * as z from "zod";
import { MAX_NETWORK_CONFIG_BYTES } from "../cni/net-conf.ts";
import { decodeConfig } from "../config/config-error.ts";
import { metadata } from "./fields/metadata.ts";

interface NetworkAttachmentDefinition {
  readonly kind: "NetworkAttachmentDefinition";
  /** Default: `default`. */
  readonly namespace: string;
  readonly name: string;
  /** JSON text of a CNI configuration; "" if it is in a file on the node, under the definition's name. */
  readonly config: string;
  /** Length of a configuration that is too large; then `config` is "". */
  readonly oversizeBytes?: number | undefined;
}

/** Returns why the definition is too large to be used; undefined if it is not. */
export function refuseOversize({ namespace, name, oversizeBytes }: NetworkAttachmentDefinition): string | undefined {
  if (oversizeBytes === undefined) return undefined;
  const found = `spec.config has ${oversizeBytes} bytes, want at most ${MAX_NETWORK_CONFIG_BYTES}`;
  return `NetworkAttachmentDefinition "${namespace}/${name}" cannot be used: ${found}`;
}

const definitionSchema = z.object({
  kind: z.literal("NetworkAttachmentDefinition").optional(),
  metadata,
  spec: z.object({ config: z.string().nullish() }).nullish(),
});

/** Decodes a NetworkAttachmentDefinition; `source` names it in the error. Throws ConfigError. */
export function decodeNetworkDefinition(value: unknown, source: string): NetworkAttachmentDefinition {
  const { metadata, spec } = decodeConfig(definitionSchema, value, source);
  const { namespace = "default", name } = metadata;
  const config = spec?.config ?? "";
  const bytes = Buffer.byteLength(config);
  const found = { kind: "NetworkAttachmentDefinition", namespace, name } as const;
  return bytes <= MAX_NETWORK_CONFIG_BYTES ? { ...found, config } : { ...found, config: "", oversizeBytes: bytes };
}
