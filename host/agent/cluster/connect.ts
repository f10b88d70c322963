/**
 * The cluster mode as an agent by itself has it: credentials, a connection of its own, and a node that closes both.
 * Called by agent.ts, which loads this file only when it is needed: the libraries behind it are large.
 * Effects: those of open-cluster.ts and of the client.
 */
import { openKubeClient } from "../../kubernetes/client.ts";
import { loadCredentials } from "../../kubernetes/credentials.ts";
import type { Backend, BackendOptions } from "../backend.ts";
import { openClusterBackend } from "./backend.ts";

/** Where a cluster's API server is. */
export interface ClusterAccess {
  /** A file; absent: the service account of the pod that this process runs in. */
  readonly kubeconfig?: string | undefined;
  /** Of the ConfigMap vendor-conf. */
  readonly configNamespace: string;
}

/** Throws ConfigError for credentials that cannot be used. */
export async function connectCluster(access: ClusterAccess, base: BackendOptions): Promise<Backend> {
  const credentials = await loadCredentials({ kubeconfig: access.kubeconfig });
  const random = Math.random;
  const api = openKubeClient({ credentials, userAgent: "berth-agent", random });
  base.log.info({ server: credentials.server, node: base.node }, "The registry is a cluster");
  try {
    const node = await openClusterBackend({ ...base, api, random, configNamespace: access.configNamespace });
    return {
      ...node,
      problems: () => [...(credentials.problem === undefined ? [] : [credentials.problem]), ...node.problems()],
      stats: () => ({ ...node.stats(), server: credentials.server, api: api.stats }),
      close: async () => {
        await node.close();
        await api.close();
      },
    };
  } catch (error) {
    await api.close();
    throw error;
  }
}
