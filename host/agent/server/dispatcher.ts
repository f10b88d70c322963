/** One call of a runtime: decode the request, run the plugin, format the result in the caller's version. */
import { setTimeout } from "node:timers/promises";
import { CniError, ErrorCode } from "../../cni/error.ts";
import { MAX_NETWORK_CONFIG_BYTES, requireBounded } from "../../cni/net-conf.ts";
import {
  type AttachRequest,
  type CniRequest,
  COMMANDS,
  type DetachRequest,
  decodePodArgs,
  decodeRequest,
  describeRequest,
  type NodeRequest,
} from "../../cni/request.ts";
import { formatResult } from "../../cni/result-versions.ts";
import { cookieOf, isNetnsGone, isOwnNetns, openNetns, readNetnsIdentity } from "../../kernel/netns.ts";
import { describeValue } from "../../lib/describe.ts";
import type { Log } from "../../lib/log.ts";
import { tryOr } from "../../lib/try-or.ts";
import type { Allocation } from "../../registry/registry.ts";
import type { Audit } from "../log/audit.ts";
import type { CniPlugins, DriverPlugin, RawRequest } from "../request/driver.ts";
import type { Assigned, Plugin } from "../request/plugin.ts";
import { type Answer, answerError, answerJson, isBug, toCniError } from "./answer.ts";

/** An answer; `undo` is to be called when it could not be delivered. */
export interface Dispatched extends Answer {
  readonly undo?: () => Promise<void>;
}

const EMPTY: Answer = { status: 200, body: "" };

/** After each large configuration: ms in which the agent's one thread is others'. */
export const LARGE_PAUSE_MS = 50;

export class Dispatcher {
  readonly #berth: Plugin;
  readonly #plugins: ReadonlyMap<string, Plugin>;
  readonly #drivers: ReadonlyMap<string, DriverPlugin>;
  readonly #audit: Audit;
  readonly #log: Log;
  #large: Promise<unknown> = Promise.resolve();

  /** `drivers` by name. */
  constructor(plugins: CniPlugins, audit: Audit, log: Log, drivers: ReadonlyMap<string, DriverPlugin> = new Map()) {
    this.#berth = plugins.berth;
    this.#plugins = new Map([...Object.entries(plugins), ...drivers]);
    this.#drivers = drivers;
    this.#audit = audit;
    this.#log = log;
  }

  /** Returns the call as one of a CNI runtime. Throws ConfigError, CniError. */
  translate(call: RawRequest): RawRequest {
    return this.#drivers.get(call.plugin)?.translate(call) ?? call;
  }

  /** Takes translated calls. Never rejects: an error is an answer. `signal` aborts when the caller hangs up. */
  async dispatch(raw: RawRequest, signal: AbortSignal): Promise<Dispatched> {
    const startMs = performance.now();
    let network = "";
    try {
      const answer = this.#drivers.get(raw.plugin)?.answer(raw);
      if (answer !== undefined) return answerJson(answer);
      const plugin = this.#plugins.get(raw.plugin) ?? this.#refuse(raw.plugin);
      const isLarge = Buffer.byteLength(raw.body) > MAX_NETWORK_CONFIG_BYTES;
      const request = isLarge ? await this.#decodeLarge(raw) : decodeRequest(raw.plugin, raw.headers, raw.body);
      if (request === undefined) return EMPTY;
      network = request.netConf.name;
      const dispatched = await this.#run(plugin, request, startMs, signal);
      if (this.#audit.remembersRefusals) this.#audit.served(subjectOf(raw));
      return dispatched;
    } catch (error) {
      const { code, message, details, forLog: names } = toCniError(error);
      const subject = subjectOf(raw);
      const ms = performance.now() - startMs;
      const isNew = this.#audit.refuse({ ...subject, network, code, message, details, names, ms });
      if (isNew && isBug(error) && !signal.aborted) this.#log.error({ ...subject, err: error }, "Internal error");
      return answerError(error, raw.body);
    }
  }

  /** Large configurations one after another. The pause begins when one is decoded, which may take longer. */
  #decodeLarge({ plugin, headers, body }: RawRequest): Promise<CniRequest | undefined> {
    const turn = this.#large.then(() => {
      const request = decodeRequest(plugin, headers, body);
      if (request?.command === "ADD") requireBounded(request.netConf);
      return request;
    });
    this.#large = turn.catch(() => {}).then(() => setTimeout(LARGE_PAUSE_MS));
    return turn;
  }

  /** A build without a driver must not answer a DEL that the driver alone understands. */
  #refuse(name: string): never {
    const text = `No plugin is called ${describeValue(name)}; this build has ${[...this.#plugins.keys()].join(", ")}`;
    throw new CniError(ErrorCode.InvalidEnvironment, text);
  }

  async #run(plugin: Plugin, request: CniRequest, startMs: number, signal: AbortSignal): Promise<Dispatched> {
    switch (request.command) {
      case "ADD": {
        const netnsCookie = readForeignCookie(request);
        const { result, undo, assigned } = await plugin.add({ ...request, netnsCookie }, signal);
        const driver = this.#drivers.get(request.plugin);
        const answer = answerJson(driver?.formatResult(result) ?? formatResult(result, request.netConf.cniVersion));
        return {
          ...answer,
          undo: assigned === undefined ? undo : this.#recordAddition(request, assigned, startMs, undo),
        };
      }
      case "CHECK":
        readForeignCookie(request);
        await plugin.check(request);
        return EMPTY;
      case "DEL":
        this.#recordRelease(request, await this.#delete(plugin, request), startMs);
        return EMPTY;
      case "GC":
        this.#recordRelease(request, await plugin.gc(request), startMs);
        return EMPTY;
      case "STATUS": {
        const notice = await plugin.status(request);
        return notice === "" ? EMPTY : { ...EMPTY, notice };
      }
    }
  }

  /**
   * A main plugin may fail before it calls its IPAM plugin if the namespace is gone, as host-device does. The
   * coordinator's DEL, which comes first, then releases the addresses: no NIC has them any more.
   */
  async #delete(plugin: Plugin, request: DetachRequest): Promise<readonly Allocation[]> {
    const { netns } = request;
    const released = await plugin.del(request);
    const isPodGone = request.plugin === "coordinator" && (netns === undefined || isNetnsGone(netns));
    return isPodGone ? this.#berth.del(request) : released;
  }

  /** Returns `undo` with a line of its own. */
  #recordAddition(request: AttachRequest, assigned: Assigned, startMs: number, undo: Undo): Undo {
    const { ifName, containerId, netConf } = request;
    const entry = { ...assigned, ifName, containerId, network: netConf.name };
    this.#audit.record({ ...entry, audit: "ADD", ms: performance.now() - startMs });
    return async () => {
      await undo();
      this.#audit.record({ ...entry, audit: "UNDO", sources: [], rule: "the caller hung up" });
    };
  }

  /** One line for each NIC. A DEL has one although nothing was released. */
  #recordRelease(request: DetachRequest | NodeRequest, released: readonly Allocation[], startMs: number): void {
    if (request.plugin !== "berth" && released.length === 0) return;
    const ms = performance.now() - startMs;
    const network = request.netConf.name;
    if (request.command === "DEL") {
      const { containerId, ifName } = request;
      const { namespace, name: pod, uid } = decodePodArgs(request.args);
      const named = released.length > 0 ? {} : { namespace, pod, uid };
      this.#audit.record({ ...named, audit: "DEL", containerId, ifName, network, allocations: released, ms });
      return;
    }
    const nics = Map.groupBy(released, ({ containerId, ifName }) => `${containerId} ${ifName}`);
    for (const allocations of nics.values()) this.#audit.record({ audit: "GC", network, allocations, ms });
  }
}

type Undo = () => Promise<void>;

function subjectOf({ plugin, headers }: RawRequest) {
  const { command, name: pod, namespace, uid, ifName, containerId } = describeRequest(headers);
  const audit = COMMANDS.find((each) => each === command) ?? "REQUEST";
  return { audit, plugin, namespace, pod, uid, ifName, containerId } as const;
}

/**
 * Returns the cookie of the pod's namespace. CNI 1.1 §"Parameters": a plugin must not be pointed at the namespace in
 * which it runs itself. With the override the path need not be a namespace.
 */
function readForeignCookie({ netns, netnsOverride }: AttachRequest): bigint | undefined {
  if (netnsOverride) return tryOr(() => readNetnsIdentity(netns).cookie, undefined);
  using opened = openNetns(netns);
  if (!isOwnNetns(opened)) return cookieOf(opened);
  const text = `CNI_NETNS "${netns}" is the host's own network namespace; set CNI_NETNS_OVERRIDE if that is meant`;
  throw new CniError(ErrorCode.InvalidNetns, text);
}
