/**
 * The connection to the hub: opened by the first call, so that a hub whose kubeconfig is wrong keeps the controller
 * from nothing else; only to a server whose certificate is verified. Its files are read again when they change.
 */
import { ConfigError } from "../../../host/config/config-error.ts";
import { openKubeClient } from "../../../host/kubernetes/client.ts";
import { type Access, type Credentials, loadCredentials } from "../../../host/kubernetes/credentials.ts";
import type { KubeApi, KubeCall, KubeObject } from "../../../host/kubernetes/kube-api.ts";
import { SourceFailure } from "./block-source.ts";

interface HubConnectionOptions {
  readonly kubeconfig: string;
  readonly userAgent: string;
  /** Returns a number in [0, 1) that spreads pauses. */
  readonly random: () => number;
}

type Client = ReturnType<typeof openKubeClient>;

interface Opened {
  readonly credentials: Credentials;
  readonly client: Client;
}

export class HubConnection implements Pick<KubeApi, "call"> {
  readonly #options: HubConnectionOptions;
  #opened: Promise<Opened> | undefined;
  #credentials: Credentials | undefined;

  constructor(options: HubConnectionOptions) {
    this.#options = options;
  }

  /** Why its files cannot be read now, while their last valid content is used. */
  get problem(): string | undefined {
    return this.#credentials?.problem;
  }

  /** Rejects as KubeApi, and with SourceFailure where the kubeconfig cannot be used. */
  async call(call: KubeCall): Promise<KubeObject> {
    return (await this.#ready()).call(call);
  }

  async #ready(): Promise<Client> {
    try {
      const { client, credentials } = await this.#open();
      // Before the client tries it again and again.
      requireVerified(await credentials.current(), credentials.source);
      return client;
    } catch (error) {
      throw error instanceof ConfigError ? new SourceFailure("Failed", error.message, error) : error;
    }
  }

  async close(): Promise<void> {
    const opened = await this.#opened?.catch(() => undefined);
    await opened?.client.close();
  }

  #open(): Promise<Opened> {
    this.#opened ??= this.#connect().catch((error: unknown) => {
      this.#opened = undefined;
      throw error;
    });
    return this.#opened;
  }

  async #connect(): Promise<Opened> {
    const { kubeconfig, userAgent, random } = this.#options;
    const credentials = await loadCredentials({ kubeconfig });
    this.#credentials = credentials;
    return { credentials, client: openKubeClient({ credentials, userAgent, random }) };
  }
}

/** Throws SourceFailure before credentials are shown to a server that would not be verified. */
function requireVerified({ endpoint }: Access, source: string): void {
  if (endpoint.isVerified) return;
  const wanted = "a hub whose certificate is verified (certificate-authority-data)";
  const refused = new ConfigError(source, [{ path: "insecure-skip-tls-verify", got: "true", wanted }]);
  throw new SourceFailure("HubNotTrusted", refused.message, refused);
}
