/**
 * The cluster mode of an agent that runs alone in its process: credentials, and a connection of its own. Loaded only in a cluster: the libraries
 * behind it are large.
 */
import { openKubeClient } from "../../kubernetes/client.ts";
import { loadCredentials } from "../../kubernetes/credentials.ts";
import type { BackendOptions } from "../backend.ts";
import { type ClusterBackend, openClusterBackend } from "./backend.ts";

/** How to reach the API server. */
export interface ClusterAccess {
  /** A file; absent: the service account of the pod that this process runs in. */
  readonly kubeconfig?: string | undefined;
  /** Namespace of the ConfigMap vendor-conf. */
  readonly configNamespace: string;
}

/** Throws ConfigError for credentials that cannot be used. */
export async function connectCluster(access: ClusterAccess, base: BackendOptions): Promise<ClusterBackend> {
  const credentials = await loadCredentials({ kubeconfig: access.kubeconfig });
  const random = Math.random;
  const api = openKubeClient({ credentials, userAgent: "berth-agent", random });
  base.log.info({ server: credentials.server, node: base.node }, "Using the registry of the cluster");
  const { server, problem } = credentials;
  const connection = { server, problem, client: api };
  return openClusterBackend({ ...base, api, random, configNamespace: access.configNamespace, connection });
}
