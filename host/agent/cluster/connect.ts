/**
 * The cluster mode of an agent that runs alone in its process: credentials, and a connection of its own. Loaded only
 * in a cluster: the libraries behind it are large.
 */
import { ConfigError } from "../../config/config-error.ts";
import { type KubeClient, openKubeClient } from "../../kubernetes/client.ts";
import { type Credentials, loadCredentials } from "../../kubernetes/credentials.ts";
import { ApiError } from "../../kubernetes/kube-api.ts";
import { renewToken } from "../../kubernetes/token-renewal.ts";
import type { Log } from "../../lib/log.ts";
import { PeriodicWorker } from "../../lib/periodic.ts";
import type { BackendOptions } from "../backend.ts";
import { type ClusterBackend, openClusterBackend } from "./backend.ts";
import { readHostMachine } from "./host-machine.ts";

/** Interval of checks of the credentials' files: milliseconds. Changed credentials are tried with one call. */
const CREDENTIALS_CHECK_MS = 2_000;

/** The means of reaching the API server. */
export interface ClusterAccess {
  /** A file; absent: the service account of the pod that this process runs in. */
  readonly kubeconfig?: string | undefined;
  /** Whether the agent renews the token in the kubeconfig's `tokenFile`. */
  readonly renewToken: boolean;
  /** Namespace of the ConfigMap vendor-conf. */
  readonly configNamespace: string;
  /** Name of the controllers' Lease in that namespace. */
  readonly controllerLease: string;
}

/** Throws ConfigError for credentials that cannot be used. */
export async function connectCluster(access: ClusterAccess, base: BackendOptions): Promise<ClusterBackend> {
  const credentials = await loadCredentials({ kubeconfig: access.kubeconfig });
  const random = Math.random;
  const api = openKubeClient({ credentials, userAgent: "berth-agent", random });
  base.log.info({ server: credentials.server, node: base.node }, "Using the registry of the cluster");
  const workers = [await checkCredentials(credentials, api, base.log)];
  if (access.renewToken)
    workers.push(
      await renewToken({ api, file: requireTokenFile(credentials), node: base.node, log: base.log, random }),
    );
  const connection = new Connection(credentials, api, workers);
  const { configNamespace, controllerLease } = access;
  // Without a kubeconfig it runs in a pod.
  const hostMachine = access.kubeconfig === undefined ? undefined : readHostMachine();
  return openClusterBackend({ ...base, configNamespace, controllerLease, api, random, hostMachine, connection });
}

function requireTokenFile({ source, tokenFile }: Credentials): string {
  if (tokenFile !== undefined) return tokenFile;
  const wanted = "the file of the token that --renew-token renews";
  throw new ConfigError(source, [{ path: "users[].user.tokenFile", got: "nothing", wanted }]);
}

class Connection {
  readonly client: KubeClient;
  readonly #credentials: Credentials;
  readonly #workers: readonly PeriodicWorker[];

  constructor(credentials: Credentials, client: KubeClient, workers: readonly PeriodicWorker[]) {
    this.client = client;
    this.#credentials = credentials;
    this.#workers = workers;
  }

  get server(): string {
    return this.#credentials.server;
  }

  get problems(): readonly string[] {
    const { problem } = this.#credentials;
    const problems = this.#workers.flatMap((worker) => worker.problems);
    return problem === undefined ? problems : [problem, ...problems];
  }

  async close(): Promise<void> {
    const closed = this.#workers.map((worker) => worker.close());
    await this.client.close();
    await Promise.all(closed);
  }
}

/** Watches stay open when a token is refused: an agent without calls would not notice that for minutes. */
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
