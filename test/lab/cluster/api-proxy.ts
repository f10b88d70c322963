/**
 * A TLS proxy on loopback in front of a control plane, with faults by rule and by order, which counts the calls.
 *
 *   const proxy = await startApiProxy(plane, { seed: 7 });
 *   proxy.rules.add({ verbs: ["post"], path: /ipallocations/, probability: 0.2, fault: { kind: "reset-after" } });
 *   proxy.refuse(); await proxy.accept();            // connections are refused; then the same port listens again
 *   proxy.holdWatches(); proxy.releaseWatches();     // calls pass, events wait: a stale cache
 *   proxy.count({ verb: "post", resource: "ipallocations" })
 *
 * Clients use `proxy.kubeconfig`. It shows the API server's own certificate, so that it must be on the same address.
 * One per node cuts off one node.
 * Effects: a listening socket, connections to the API server, a file in the plane's folder.
 */
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { Agent, createServer, request } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { ControlPlane } from "../control-plane.ts";
import { classify, type Fault, FaultRules, seededRandom } from "./api-faults.ts";
import { ApiTally, type CallFilter, type TallyRow } from "./api-tally.ts";

export interface ProxyOptions {
  /** Seed of the dice. Default: 1. */
  readonly seed?: number;
  /** Whose kubeconfig it is; default: the administrator's. */
  readonly account?: string;
  /** In place of the account's. */
  readonly token?: string;
  /** Added to the user agent of all calls, so that objects say which node wrote them. */
  readonly node?: string;
  /** Clients believe any certificate. */
  readonly isUnverified?: boolean;
}

export interface ApiProxy {
  readonly url: string;
  readonly kubeconfig: string;
  readonly rules: FaultRules;
  /** Connections that are open now. */
  readonly connections: number;
  /** Watches that are open now. */
  readonly watches: number;
  /** Returns the number of calls that have come, whatever became of them. */
  count(filter?: CallFilter): number;
  /** Returns the tally of passed calls, by verb and resource. */
  tally(): readonly TallyRow[];
  resetTally(): void;
  /** Breaks every open connection, and no more are taken until `accept`. */
  refuse(): void;
  accept(): Promise<void>;
  /** Breaks every connection that carries a watch; gives how many. */
  cutWatches(): number;
  /** Events, and the answers to new watches, wait in the proxy. */
  holdWatches(): void;
  releaseWatches(): void;
  stop(): Promise<void>;
}

let proxies = 0;

export async function startApiProxy(plane: ControlPlane, options: ProxyOptions = {}): Promise<ApiProxy> {
  const proxy = new FaultyProxy(
    new FaultRules(seededRandom(options.seed ?? 1)),
    new URL(plane.url),
    await plane.pair(),
  );
  proxy.node = options.node;
  await proxy.accept();
  const { account, token, isUnverified = false } = options;
  const name = `proxy-${++proxies}.kubeconfig`;
  const rest = { ...(account === undefined ? {} : { account }), ...(token === undefined ? {} : { token }) };
  proxy.kubeconfig = await plane.writeKubeconfig(name, { server: proxy.url, isUnverified, ...rest });
  return proxy;
}

/** One request on its way. */
interface Exchange {
  readonly incoming: IncomingMessage;
  readonly answer: ServerResponse;
  readonly row: TallyRow;
  readonly isWatch: boolean;
}

class FaultyProxy implements ApiProxy {
  kubeconfig = "";
  url = "";
  node: string | undefined;
  readonly rules: FaultRules;
  readonly #tally = new ApiTally();
  readonly #server;
  readonly #upstream: { readonly host: string; readonly port: number; readonly ca: string; readonly agent: Agent };
  /** By the port at the client's end: TLS hides the connection that can be reset. */
  readonly #sockets = new Map<number, Socket>();
  readonly #watches = new Set<Exchange>();
  #held: (() => void)[] | undefined;
  #port = 0;

  constructor(rules: FaultRules, upstream: URL, pair: { cert: string; key: string }) {
    this.rules = rules;
    const agent = new Agent({ keepAlive: true });
    this.#upstream = { host: upstream.hostname, port: Number(upstream.port), ca: pair.cert, agent };
    this.#server = createServer(pair, (incoming, answer) => this.#take(incoming, answer));
    this.#server.keepAliveTimeout = 0;
    this.#server.requestTimeout = 0;
    this.#server.on("connection", (socket: Socket) => {
      const port = socket.remotePort ?? 0;
      this.#sockets.set(port, socket);
      socket.on("close", () => this.#sockets.delete(port)).on("error", () => {});
    });
    // Clients that hang up in the middle are a purpose of this proxy.
    this.#server.on("tlsClientError", () => {});
  }

  get connections(): number {
    return this.#sockets.size;
  }

  get watches(): number {
    return this.#watches.size;
  }

  count(filter: CallFilter = {}): number {
    return this.#tally.count(filter);
  }

  tally(): readonly TallyRow[] {
    return this.#tally.rows();
  }

  resetTally(): void {
    this.#tally.reset();
  }

  async accept(): Promise<void> {
    if (this.#server.listening) return;
    await once(this.#server.listen(this.#port, this.#upstream.host), "listening");
    this.#port = (this.#server.address() as AddressInfo).port;
    this.url = `https://${this.#upstream.host}:${this.#port}`;
  }

  refuse(): void {
    this.#server.close();
    for (const socket of this.#sockets.values()) socket.resetAndDestroy();
  }

  cutWatches(): number {
    const all = [...this.#watches];
    for (const exchange of all) this.#reset(exchange);
    return all.length;
  }

  holdWatches(): void {
    this.#held ??= [];
  }

  releaseWatches(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const pass of held) pass();
  }

  async stop(): Promise<void> {
    this.refuse();
    this.#upstream.agent.destroy();
  }

  #reset({ incoming, answer }: Exchange): void {
    const socket = this.#sockets.get(incoming.socket.remotePort ?? 0);
    if (socket === undefined) answer.destroy();
    else socket.resetAndDestroy();
  }

  #take(incoming: IncomingMessage, answer: ServerResponse): void {
    const passing = { method: incoming.method ?? "GET", url: incoming.url ?? "/" };
    const { verb, resource } = classify(passing);
    const exchange = { incoming, answer, row: this.#tally.begin(verb, resource), isWatch: verb === "watch" };
    answer.on("error", () => {});
    const chunks: Buffer[] = [];
    incoming.on("data", (chunk: Buffer) => {
      chunks.push(chunk);
      exchange.row.requestBytes += chunk.length;
    });
    incoming.on("error", () => {});
    incoming.on("end", () => this.#decide(exchange, Buffer.concat(chunks), this.rules.choose(passing)));
  }

  #decide(exchange: Exchange, body: Buffer, fault: Fault | undefined): void {
    if (fault === undefined) this.#forward(exchange, body);
    else if (fault.kind === "delay") setTimeout(() => this.#forward(exchange, body), this.rules.delayMs(fault));
    else if (fault.kind === "reset-before") this.#reset(exchange);
    else if (fault.kind === "reset-after") this.#forward(exchange, body, () => this.#reset(exchange));
    else answerWith(exchange, fault);
  }

  /** `instead`: done when the API server's answer is complete; the client gets none. */
  #forward(exchange: Exchange, body: Buffer, instead?: () => void): void {
    const { incoming, answer, row, isWatch } = exchange;
    if (answer.destroyed) return;
    const { method, url: path } = incoming;
    const { "user-agent": program = "" } = incoming.headers;
    const named = this.node === undefined ? {} : { "user-agent": `${program} ${this.node}` };
    const headers = { ...incoming.headers, ...named };
    const call = request({ ...this.#upstream, method, path, headers }, (response) => {
      row.statuses[response.statusCode ?? 0] = (row.statuses[response.statusCode ?? 0] ?? 0) + 1;
      if (instead === undefined) this.#relay(exchange, response);
      else response.on("end", instead).on("error", instead).resume();
    });
    // An API server that is down looks like a connection that breaks.
    call.on("error", () => this.#reset(exchange));
    if (isWatch) this.#watches.add(exchange);
    answer.on("close", () => {
      this.#watches.delete(exchange);
      if (instead === undefined) call.destroy();
    });
    call.end(body);
  }

  #relay(exchange: Exchange, response: IncomingMessage): void {
    const { answer, row, isWatch } = exchange;
    const pass = (work: () => void): void => {
      if (isWatch && this.#held !== undefined) this.#held.push(work);
      else work();
    };
    pass(() => {
      if (!answer.destroyed) answer.writeHead(response.statusCode ?? 502, response.headers).flushHeaders();
    });
    response.on("data", (chunk: Buffer) => {
      row.responseBytes += chunk.length;
      pass(() => answer.write(chunk));
    });
    response.on("end", () => pass(() => answer.end()));
    response.on("error", () => this.#reset(exchange));
  }
}

function answerWith({ answer, row }: Exchange, fault: Extract<Fault, { kind: "answer" }>): void {
  const { status, reason, retryAfterS } = fault;
  const object = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure" };
  const failure = { ...object, message: `${reason} by order of the proxy`, reason, code: status };
  row.statuses[status] = (row.statuses[status] ?? 0) + 1;
  const retry = retryAfterS === undefined ? {} : { "retry-after": String(retryAfterS) };
  answer.writeHead(status, { "content-type": "application/json", ...retry });
  answer.end(`${JSON.stringify(failure)}\n`);
}
