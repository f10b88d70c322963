/**
 * The way of full agents and controllers to the simulated API server, where requests wait for its processors. Without
 * faults but cut-off machines.
 */
import type { Answer, Exchanges } from "../../../host/kubernetes/http/exchange.ts";
import { ApiError, type KubeCall, type WatchEvent } from "../../../host/kubernetes/kube-api.ts";
import type { MemoryApiServer } from "../../fakes/memory-api-server.ts";
import { bodyOf, failure, Network, Stream } from "../network.ts";
import type { Process, SimulatedTime } from "../simulated-time.ts";
import type { Timeline } from "../timeline.ts";
import type { ServerModel } from "./server-model.ts";

type Request = Pick<KubeCall, "method" | "path" | "query" | "body" | "accept">;

/** One way between two machines: milliseconds. */
const WIRE_MS = 0.3;
const BOOKMARK_MS = 60_000;

interface ScaleNetworkOptions {
  readonly time: SimulatedTime;
  readonly timeline: Timeline;
  readonly server: MemoryApiServer;
  readonly wire: Process;
  readonly model: ServerModel;
}

export class ScaleNetwork extends Network {
  readonly options: ScaleNetworkOptions;
  /** Time until the watches have the write that is carried out. */
  deliveryMs = 0;
  /** Answers nothing: it is restarted. */
  isDown = false;
  readonly streams = new Set<Stream>();
  /** Requests of full agents alone, by kind. */
  readonly ofAgents = new Map<string, number>();
  /** Events that full agents' watches received, and their bytes. */
  readonly agentEvents = { count: 0, bytes: 0 };

  constructor(options: ScaleNetworkOptions) {
    super(options);
    this.options = options;
  }

  override connect(process: Process, machine: string): Exchanges {
    return new Connection(this, process, machine);
  }

  /** Carries a request of a light node out in its time; `done` gets its status. */
  exchange(request: Request, done: (status: number) => void): void {
    const { time, wire, model, server } = this.options;
    const delayMs = WIRE_MS + model.request(request, time.nowMs);
    time.schedule(delayMs, "light request", wire, () => {
      let status = 200;
      server
        .client()
        .call(request)
        .catch((error: unknown) => {
          if (!(error instanceof ApiError)) throw error;
          status = error.status;
        })
        .then(() => time.schedule(WIRE_MS, "light answer", wire, () => done(status)));
    });
  }

  /** All watches of the machine break; undefined: of all. */
  override breakWatches(machine?: string): void {
    for (const stream of [...this.streams]) if (machine === undefined || stream.machine === machine) stream.break();
  }
}

class Connection implements Exchanges {
  readonly connections = 1;
  readonly #network: ScaleNetwork;
  readonly #process: Process;
  readonly #machine: string;

  constructor(network: ScaleNetwork, process: Process, machine: string) {
    this.#network = network;
    this.#process = process;
    this.#machine = machine;
  }

  async close(): Promise<void> {}

  get #isCutOff(): boolean {
    return this.#network.isDown || this.#network.cutOff.has(this.#machine);
  }

  get #isAgent(): boolean {
    return this.#process.name.startsWith("agent");
  }

  send(over: "calls" | "watches", request: Request, signal: AbortSignal): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    if (signal.aborted) return Promise.reject(signal.reason);
    const giveUp = (): void => reject(signal.reason);
    signal.addEventListener("abort", giveUp, { once: true });
    if (over === "watches") this.#watch(request, signal, resolve);
    else {
      promise.then(
        () => signal.removeEventListener("abort", giveUp),
        () => signal.removeEventListener("abort", giveUp),
      );
      this.#call(request, signal, resolve, reject);
    }
    return promise;
  }

  #call(
    request: Request,
    signal: AbortSignal,
    resolve: (answer: Answer) => void,
    reject: (error: Error) => void,
  ): void {
    const { time, wire, model, server } = this.#network.options;
    if (this.#isCutOff) {
      time.schedule(1, "no route", this.#process, () => reject(new Error("no route")));
      return;
    }
    if (this.#isAgent) {
      const key = `${request.method} ${
        request.path
          .split("/")
          .slice(0, 7)
          .join("/")
          .replace(/^.*\/v1\//, "")
          .replace(/namespaces\/[^/]+\//, "")
          .split("/")[0]
      }`;
      this.#network.ofAgents.set(key, (this.#network.ofAgents.get(key) ?? 0) + 1);
    }
    const delayMs = WIRE_MS + model.request(request, time.nowMs);
    time.schedule(delayMs, "request", wire, () => {
      // What its caller no longer waits for is dropped before it begins.
      if (this.#isCutOff || signal.aborted) return;
      const answer = (status: number, text: string): void => {
        time.schedule(WIRE_MS, "answer", this.#process, () =>
          resolve({ status, retryAfter: undefined, body: bodyOf(text) }),
        );
      };
      server
        .client()
        .call(request)
        .then(
          (object) => answer(request.method === "POST" ? 201 : 200, JSON.stringify(object)),
          (error: unknown) => {
            if (!(error instanceof ApiError)) throw error;
            answer(error.status, failure(error));
          },
        );
    });
  }

  #watch(request: Request, signal: AbortSignal, resolve: (answer: Answer) => void): void {
    const network = this.#network;
    const { time, server, wire, model } = network.options;
    if (this.#isCutOff) return;
    const { watch: _, ...query } = request.query ?? {};
    time.schedule(WIRE_MS + model.request({ method: "GET", path: request.path }, time.nowMs), "watch", wire, () => {
      if (this.#isCutOff || signal.aborted) return;
      const stream = new Stream(this.#process, this.#machine, request.path, time);
      const ending = new AbortController();
      stream.onEnd = (): void => {
        network.streams.delete(stream);
        if (!ending.signal.aborted) ending.abort(new Error("The watch ended"));
      };
      network.streams.add(stream);
      let lastMs = 0;
      const deliver = (give: () => void): void => {
        lastMs = Math.max(lastMs, time.nowMs + network.deliveryMs);
        time.schedule(lastMs - time.nowMs, "event", this.#process, give);
      };
      let version = String(query.resourceVersion ?? "0");
      const onEvent = (event: WatchEvent): void => {
        version = String((event.object as { metadata: { resourceVersion: string } }).metadata.resourceVersion);
        if (this.#isCutOff) return;
        const bytes = stream.push(event);
        if (!this.#isAgent) return;
        network.agentEvents.count++;
        network.agentEvents.bytes += bytes;
      };
      let isRefused = false;
      server
        .client(undefined, (_path, give) => deliver(give))
        .watch({ path: request.path, query, onEvent, signal: ending.signal })
        .catch((error: unknown) => {
          if (ending.signal.aborted || !(error instanceof ApiError)) return;
          isRefused = true;
          time.schedule(1, "watch refused", this.#process, () =>
            resolve({ status: error.status, retryAfter: undefined, body: bodyOf(failure(error)) }),
          );
        });
      signal.addEventListener("abort", () => stream.abort(signal.reason), { once: true });
      time.schedule(Number(query.timeoutSeconds ?? 300) * 1_000, "end of a watch", wire, () => stream.finish());
      const bookmark = (): void => {
        if (stream.isOver) return;
        const object = { kind: "", apiVersion: "", metadata: { resourceVersion: version } };
        if (query.allowWatchBookmarks === true && Number(version) > 0)
          deliver(() => stream.push({ type: "BOOKMARK", object }));
        time.schedule(BOOKMARK_MS, "bookmark", wire, bookmark);
      };
      time.schedule(BOOKMARK_MS, "bookmark", wire, bookmark);
      time.schedule(WIRE_MS, "watch open", this.#process, () => {
        if (!isRefused) resolve({ status: 200, retryAfter: undefined, body: stream as unknown as Answer["body"] });
      });
    });
  }
}
