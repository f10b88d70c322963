/**
 * A client of the API server that notes its calls, and lets a test intervene: in this process, beside one agent or
 * controller.
 */
import type { KubeClient } from "../../../host/kubernetes/client.ts";
import type { KubeApi, KubeCall, KubeObject, KubeWatch } from "../../../host/kubernetes/kube-api.ts";

export class WatchedApi implements KubeApi {
  /** `POST ipallocations`, `GET ipallocations/10.6.0.1`, in the order in which they were made; without watches. */
  readonly calls: string[] = [];
  /** Called before a call; its error is the answer. */
  before: (call: KubeCall) => Promise<void> = async () => {};
  readonly #api: KubeClient;
  #heldPath: string | undefined;
  readonly #held: (() => void)[] = [];

  constructor(api: KubeClient) {
    this.#api = api;
  }

  async call(call: KubeCall): Promise<KubeObject> {
    this.calls.push(`${call.method} ${call.path.replace(/^.*\/v1\//, "")}`);
    await this.before(call);
    return this.#api.call(call);
  }

  watch(watch: KubeWatch): Promise<void> {
    return this.#api.watch({
      ...watch,
      onEvent: (event) => {
        if (watch.path === this.#heldPath) this.#held.push(() => watch.onEvent(event));
        else watch.onEvent(event);
      },
    });
  }

  close(): Promise<void> {
    return this.#api.close();
  }

  /** Events of watches of that path are held back: a cache that is behind. */
  holdEvents(path: string): void {
    this.#heldPath = path;
  }

  releaseEvents(): void {
    this.#heldPath = undefined;
    for (const deliver of this.#held.splice(0)) deliver();
  }

  /** Methods of the writes since the last question: `POST`, `PUT`, `DELETE`, `PATCH`. */
  takeWrites(): string[] {
    const methods = this.calls.splice(0).map((call) => call.split(" ")[0] ?? "");
    return methods.filter((method) => method !== "GET");
  }
}
