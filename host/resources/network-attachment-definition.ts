/**
 * The NetworkAttachmentDefinition of the network plumbing working group (k8s.cni.cncf.io/v1), as far as Berth reads it.
 * Called by the watches; what its configuration means is host/config/network-definition.ts.
 * Effects: none.
 */
import { z } from "zod";
import { decodeConfig } from "../config/config-error.ts";
import { metadata } from "./fields/metadata.ts";

export interface NetworkAttachmentDefinition {
  readonly kind: "NetworkAttachmentDefinition";
  /** `default` when the object names none. */
  readonly namespace: string;
  readonly name: string;
  /** JSON text of a CNI configuration; "" when the node's own files have it, as the name says. */
  readonly config: string;
}

const definitionSchema = z.object({
  kind: z.literal("NetworkAttachmentDefinition").optional(),
  metadata,
  spec: z.object({ config: z.string().nullish() }).nullish(),
});

/** Throws ConfigError. */
export function decodeNetworkDefinition(value: unknown, source: string): NetworkAttachmentDefinition {
  const { metadata, spec } = decodeConfig(definitionSchema, value, source);
  const { namespace = "default", name } = metadata;
  return { kind: "NetworkAttachmentDefinition", namespace, name, config: spec?.config ?? "" };
}
