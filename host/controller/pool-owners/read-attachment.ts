/**
 * Whether Berth gives the addresses of a NetworkAttachmentDefinition's network.
 */
import { ConfigError } from "../../config/config-error.ts";
import { decodeAttachedNetwork, findIpamConf } from "../../config/network-definition.ts";
import type { KubeObject } from "../../kubernetes/kube-api.ts";
import { describeObject } from "../../kubernetes/object-key.ts";
import { decodeNetworkDefinition } from "../../resources/network-attachment-definition.ts";

/**
 * What cannot be understood is not Berth's: no pod can be attached to it. Without a configuration the files of the nodes have it, which nobody
 * here can read: then it may be Berth's, and a pool too many is better than a pod that waits for ever.
 */
export function isServedByBerth(object: KubeObject): boolean {
  const source = describeObject(object);
  try {
    const { name, config, oversizeBytes } = decodeNetworkDefinition(object, source);
    if (oversizeBytes !== undefined) return false;
    return config.trim() === "" || findIpamConf(decodeAttachedNetwork(config, name, source).plugins) !== undefined;
  } catch (error) {
    if (error instanceof ConfigError) return false;
    throw error;
  }
}
