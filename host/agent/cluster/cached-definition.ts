/**
 * An agent's part of a NetworkAttachmentDefinition, which tenants write: its network, decoded when the object arrives,
 * without keys that no part of the agent reads.
 */
import { ConfigError } from "../../config/config-error.ts";
import {
  decodeAttachedNetwork,
  decodeInnerNetwork,
  type PlacedEntry,
  trimNetwork,
} from "../../config/network-definition.ts";
import type { KubeObject } from "../../kubernetes/kube-api.ts";
import { describeObject } from "../../kubernetes/object-key.ts";
import { messageOf } from "../../lib/describe.ts";
import { decodeNetworkDefinition, refuseOversize } from "../../resources/network-attachment-definition.ts";

/** A network's configuration, of either source. */
export interface Network {
  readonly name: string;
  readonly plugins: readonly PlacedEntry[];
}

export type CachedDefinition =
  | { readonly kind: "network"; readonly network: Network }
  /** A file on the node has the configuration, under the definition's name. */
  | { readonly kind: "file" }
  /** `reason`: a sentence without a full stop. */
  | { readonly kind: "invalid"; readonly reason: string };

/**
 * Longest text in which a mistake is named with line and column, and a repeated key is one: UTF-16 units. For a longer
 * one, which no person wrote, this would block the agent for tens of milliseconds.
 */
const MAX_CHECKED_LENGTH = 8_192;

/** Throws ConfigError for an object that is none of this kind. */
export function decodeCachedDefinition(object: KubeObject): CachedDefinition {
  const definition = decodeNetworkDefinition(object, describeObject(object));
  const { namespace, name, config } = definition;
  const oversize = refuseOversize(definition);
  if (oversize !== undefined) return { kind: "invalid", reason: oversize };
  if (config.trim() === "") return { kind: "file" };
  const source = `NetworkAttachmentDefinition "${namespace}/${name}", spec.config`;
  try {
    if (config.length <= MAX_CHECKED_LENGTH) decodeAttachedNetwork(config, name, source);
    const { name: network, plugins } = decodeInnerNetwork(trimNetwork(JSON.parse(config)), name, source);
    return { kind: "network", network: { name: network, plugins } };
  } catch (error) {
    const reason = error instanceof ConfigError ? error.message : `${source}: ${messageOf(error)}`;
    return { kind: "invalid", reason };
  }
}
