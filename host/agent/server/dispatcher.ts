/**
 * One call of a runtime: decode the request, run the plugin, format the result in the caller's version.
 */
import { CniError, ErrorCode } from "../../cni/error.ts";
import { type AttachRequest, type CniRequest, decodeRequest, type PluginName } from "../../cni/request.ts";
import { formatResult } from "../../cni/result-versions.ts";
import { isOwnNetns } from "../../kernel/netns.ts";
import type { Log } from "../../lib/log.ts";
import type { Plugin } from "../plugin.ts";
import { type Answer, answerError, answerJson, isBug, toCniError } from "./answer.ts";

export interface RawRequest {
  /** Path segment after /v1/cni/. */
  readonly plugin: string;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

/** An answer; `undo` is to be called when it could not be delivered. */
export interface Dispatched extends Answer {
  readonly undo?: () => Promise<void>;
}

const EMPTY: Answer = { status: 200, body: "" };

export class Dispatcher {
  readonly #plugins: Readonly<Record<PluginName, Plugin>>;
  readonly #log: Log;

  constructor(plugins: Readonly<Record<PluginName, Plugin>>, log: Log) {
    this.#plugins = plugins;
    this.#log = log;
  }

  /** Never rejects: an error is an answer. `signal` aborts when the caller hangs up. */
  async dispatch(raw: RawRequest, signal: AbortSignal): Promise<Dispatched> {
    try {
      const request = decodeRequest(raw.plugin, raw.headers, raw.body);
      return await this.#run(request, signal);
    } catch (error) {
      const answer = answerError(error, raw.body);
      const about = {
        plugin: raw.plugin,
        command: raw.headers["cni-command"],
        containerId: raw.headers["cni-containerid"],
      };
      const log = this.#log;
      if (isBug(error) && !signal.aborted) log.error({ ...about, err: error }, "Internal error");
      else log.warn({ ...about, refusal: answer.body.trim(), names: toCniError(error).forLog }, "Refused a request");
      return answer;
    }
  }

  async #run(request: CniRequest, signal: AbortSignal): Promise<Dispatched> {
    const plugin = this.#plugins[request.plugin];
    switch (request.command) {
      case "ADD": {
        requireForeignNetns(request);
        const { result, undo } = await plugin.add(request, signal);
        return { ...answerJson(formatResult(result, request.netConf.cniVersion)), undo };
      }
      case "CHECK":
        requireForeignNetns(request);
        await plugin.check(request);
        return EMPTY;
      case "DEL":
        await plugin.del(request);
        return EMPTY;
      case "GC":
        await plugin.gc(request);
        return EMPTY;
      case "STATUS": {
        const notice = await plugin.status(request);
        return notice === "" ? EMPTY : { ...EMPTY, notice };
      }
    }
  }
}

/** CNI 1.1 §"Parameters": a plugin must not be pointed at the namespace in which it runs itself. */
function requireForeignNetns({ netns, netnsOverride }: AttachRequest): void {
  if (netnsOverride || !isOwnNetns(netns)) return;
  const text = `CNI_NETNS "${netns}" is the host's own network namespace; set CNI_NETNS_OVERRIDE if that is meant`;
  throw new CniError(ErrorCode.InvalidNetns, text);
}
