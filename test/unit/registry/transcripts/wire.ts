/**
 * The simulation's network, on which a transcript holds single calls about allocations: `n1 POST` before they are
 * carried out, or only their answers.
 */
import type { Answer, Request, Send } from "../../../../host/kubernetes/http/request.ts";
import { ApiError } from "../../../../host/kubernetes/kube-api.ts";
import { formatIp } from "../../../../host/net/ip.ts";
import { parseAllocationName } from "../../../../host/resources/ip-allocation.ts";
import type { Writer } from "../../../fakes/admission/admission.ts";
import { ALLOCATIONS, type MemoryApiServer } from "../../../fakes/memory-api-server.ts";
import { bodyOf, failure, Network } from "../../../simulation/network.ts";
import type { Process, SimulatedTime } from "../../../simulation/simulated-time.ts";
import type { Timeline } from "../../../simulation/timeline.ts";

interface Sent {
  readonly process: Process;
  readonly writer: Writer;
  readonly request: Request;
  readonly signal: AbortSignal;
}

export interface Hold {
  readonly node: string;
  /** Begin of a call: `POST`, `PUT 10.6.0.1`. */
  readonly call: string;
  /** It is carried out at once. */
  readonly isAnswer: boolean;
  /** Only the next one. */
  readonly isOnce: boolean;
}

export class Wire extends Network {
  /** `n1 POST 10.6.0.1` */
  readonly calls: string[] = [];
  /** Events of pods and nodes: `event AddressLost web-0`. */
  readonly events: string[] = [];
  readonly holds = new Set<Hold>();
  readonly #time: SimulatedTime;
  readonly #server: MemoryApiServer;
  readonly #waiting: (() => Promise<void>)[] = [];

  constructor(time: SimulatedTime, server: MemoryApiServer, timeline: Timeline) {
    super({ time, server, timeline, wire: time.process("wire") });
    this.#time = time;
    this.#server = server;
  }

  override connect(process: Process, machine: string, writer: Writer): Send {
    const send = super.connect(process, machine, writer);
    return (request, signal) => {
      const call = request.query?.watch === true ? undefined : describeCall(request);
      if (call?.startsWith("event") === true) this.events.push(call);
      else if (call !== undefined) this.calls.push(`${machine} ${call}`);
      const hold = [...this.holds].find((each) => each.node === machine && call?.startsWith(each.call) === true);
      if (hold === undefined) return send(request, signal);
      if (hold.isOnce) this.holds.delete(hold);
      return this.#hold(hold, { process, writer, request, signal });
    };
  }

  /** Held calls are carried out, and answered where a caller still waits. */
  async land(): Promise<void> {
    this.holds.clear();
    for (const end of this.#waiting.splice(0)) await end();
  }

  #hold({ isAnswer }: Hold, sent: Sent): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    sent.signal.addEventListener("abort", () => reject(sent.signal.reason), { once: true });
    const carriedOut = isAnswer ? this.#carryOut(sent.request, sent.writer) : undefined;
    this.#waiting.push(async () => {
      const answer = await (carriedOut ?? this.#carryOut(sent.request, sent.writer));
      this.#time.schedule(1, "late answer", sent.process, () => resolve(answer));
    });
    return promise;
  }

  async #carryOut(request: Request, writer: Writer): Promise<Answer> {
    const answerOf = (status: number, text: string): Answer => ({ status, retryAfter: undefined, body: bodyOf(text) });
    try {
      const object = await this.#server.client(undefined, undefined, writer).call(request);
      return answerOf(request.method === "POST" ? 201 : 200, JSON.stringify(object));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      return answerOf(error.status, failure(error));
    }
  }
}

/** Returns `POST 10.6.0.1`, `LIST owner`; undefined for a call that is not about allocations. */
function describeCall({ method, path, query, body, accept }: Request): string | undefined {
  const { metadata, reason, regarding } = Object(body);
  if (method === "POST" && path.endsWith("/events")) return `event ${reason} ${regarding?.name}`;
  if (!path.startsWith(ALLOCATIONS)) return undefined;
  const name = method === "POST" ? metadata.name : path.slice(ALLOCATIONS.length + 1);
  if (name !== "") return `${method} ${textOf(name)}`;
  const selector = `${query?.fieldSelector ?? query?.labelSelector ?? "all"}`;
  const keys = selector.split(",").map((term) => term.replace(/[=!].*/, "").replace(/^.*[/.]/, ""));
  return `${accept?.includes("as=Table") === true ? "NAMES" : "LIST"} by ${keys.join(" and ")}`;
}

/** Returns the address of an object's name. */
export function textOf(name: string): string {
  const found = parseAllocationName(name);
  if (found === undefined) return name;
  return `${formatIp(found.ip)}${found.addressSpace === "" ? "" : `/${found.addressSpace}`}`;
}
