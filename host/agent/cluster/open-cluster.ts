/**
 * The cluster mode: resources from the API server's watches, addresses as objects there and in this node's journal.
 * Called by agent.ts, and by tests that run many nodes in one process: everything of an agent but socket, spool and plugins.
 * Effects: those of its parts.
 */
import type { KubeApi } from "../../kubernetes/kube-api.ts";
import type { Foundation } from "../foundation.ts";
import type { FoundationOptions } from "../open-embedded.ts";

export interface ClusterOptions extends FoundationOptions {
  /** Closed by whoever opened it. */
  readonly api: KubeApi;
  /** Of the ConfigMap vendor-conf. */
  readonly configNamespace: string;
  /** From 0 to 1, for pauses that are not to meet. */
  readonly random: () => number;
}

/** `addAddresses(node.tools, request, signal)` is the ADD, `node.tools.registry.release(attachment)` the DEL. */
export interface ClusterNode extends Foundation {
  readonly mode: "cluster";
}

/** Resolves when the journal is open: a DEL works from then on, an ADD waits for {@link Foundation.synced}. */
export async function openCluster(options: ClusterOptions): Promise<ClusterNode> {
  throw new Error(`Node ${options.node} cannot be opened yet`);
}
