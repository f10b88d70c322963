/**
 * The NetworkAttachmentDefinition of the network plumbing working group (k8s.cni.cncf.io/v1), as far as Berth reads it.
 * Called by the watches; what its configuration means is host/config/network-definition.ts.
 */
import { z } from "zod";
import { decodeConfig } from "../config/config-error.ts";
import { cutMetadata } from "./fields/kept-metadata.ts";
import { metadata } from "./fields/metadata.ts";

/** Largest `spec.config` of a NetworkAttachmentDefinition that is used: bytes. Every agent keeps those of all namespaces. @limit */
export const MAX_DEFINITION_CONFIG_BYTES = 65_536;

export interface NetworkAttachmentDefinition {
  readonly kind: "NetworkAttachmentDefinition";
  /** `default` when the object names none. */
  readonly namespace: string;
  readonly name: string;
  /** JSON text of a CNI configuration; "" when the node's own files have it, as the name says. */
  readonly config: string;
  /** Its length where it is more than is used; then `config` is "" and means nothing. */
  readonly oversizeBytes?: number | undefined;
}

/** Why the definition cannot be used; undefined: it can, as far as its size goes. */
export function refuseOversize({ namespace, name, oversizeBytes }: NetworkAttachmentDefinition): string | undefined {
  if (oversizeBytes === undefined) return undefined;
  const found = `spec.config has ${oversizeBytes} bytes, want at most ${MAX_DEFINITION_CONFIG_BYTES}`;
  return `NetworkAttachmentDefinition "${namespace}/${name}" cannot be used: ${found}`;
}

const definitionSchema = z.object({
  kind: z.literal("NetworkAttachmentDefinition").optional(),
  metadata,
  spec: z.object({ config: z.string().nullish() }).nullish(),
});

/** Throws ConfigError. */
export function decodeNetworkDefinition(value: unknown, source: string): NetworkAttachmentDefinition {
  const cut = cutMetadata(value, () => ({ labels: {}, annotations: {}, ownerReferences: [] }));
  const { metadata, spec } = decodeConfig(definitionSchema, cut, source);
  const { namespace = "default", name } = metadata;
  const config = spec?.config ?? "";
  const bytes = Buffer.byteLength(config);
  const found = { kind: "NetworkAttachmentDefinition", namespace, name } as const;
  return bytes <= MAX_DEFINITION_CONFIG_BYTES ? { ...found, config } : { ...found, config: "", oversizeBytes: bytes };
}
