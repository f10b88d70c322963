/**
 * The cluster mode of an agent that runs alone in its process: credentials, and a connection of its own. Loaded only in a cluster: the libraries
 * behind it are large.
 */
import { type KubeClient, openKubeClient } from "../../kubernetes/client.ts";
import { type Credentials, loadCredentials } from "../../kubernetes/credentials.ts";
import { ApiError } from "../../kubernetes/kube-api.ts";
import type { Log } from "../../lib/log.ts";
import { PeriodicWorker } from "../../lib/periodic.ts";
import type { BackendOptions } from "../backend.ts";
import { type ClusterBackend, openClusterBackend } from "./backend.ts";

/** How often the files of the credentials are checked: milliseconds. Changed credentials are tried with one call. @limit */
export const CREDENTIALS_CHECK_MS = 2_000;

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
  const connection = new Connection(credentials, api, await checkCredentials(credentials, api, base.log));
  return openClusterBackend({ ...base, api, random, configNamespace: access.configNamespace, connection });
}

class Connection {
  readonly client: KubeClient;
  readonly #credentials: Credentials;
  readonly #check: PeriodicWorker;

  constructor(credentials: Credentials, client: KubeClient, check: PeriodicWorker) {
    this.client = client;
    this.#credentials = credentials;
    this.#check = check;
  }

  get server(): string {
    return this.#credentials.server;
  }

  get problems(): readonly string[] {
    const { problem } = this.#credentials;
    return problem === undefined ? this.#check.problems : [problem, ...this.#check.problems];
  }

  async close(): Promise<void> {
    await this.#check.close();
    await this.client.close();
  }
}

/** Watches stay open when a token is refused, so that an agent without calls would not notice wrong credentials for minutes. */
async function checkCredentials(credentials: Credentials, api: KubeClient, log: Log): Promise<PeriodicWorker> {
  let accepted = await credentials.current();
  return new PeriodicWorker({
    failure: `The API server refuses the credentials of ${credentials.source}`,
    firstMs: CREDENTIALS_CHECK_MS,
    retryMs: (failures) => CREDENTIALS_CHECK_MS * Math.min(failures, 15),
    work: async () => {
      const current = await credentials.current();
      if (current !== accepted && (await isAnswered(api))) accepted = current;
      return CREDENTIALS_CHECK_MS;
    },
    log,
  });
}

/** Rejects if the credentials are refused. Returns false without an answer. */
async function isAnswered(api: KubeClient): Promise<boolean> {
  try {
    await api.call({ method: "GET", path: "/version", patienceMs: 0 });
    return true;
  } catch (error) {
    if (!(error instanceof ApiError)) return false;
    if (error.status === 401) throw error;
    return true;
  }
}
