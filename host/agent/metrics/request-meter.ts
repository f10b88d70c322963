/** Counts the calls of CNI plugins, and how long each took. */
import { ErrorCode } from "../../cni/error.ts";
import { PLUGINS } from "../../cni/request.ts";
import type { AgentMetricSet, AgentMetrics } from "../../metrics/agent-metrics.ts";
import { foldLabel } from "../../metrics/metric.ts";

/** The end of a call: a CNI error code, 0 for success; "undelivered" if the caller hung up. */
export type CallEnd = number | "undelivered";

/** A caller can send any plugin, command and, through a bug, code: those that are not known are counted together. */
const COMMANDS = new Set(["ADD", "CHECK", "DEL", "GC", "STATUS"]);
const CODES = new Set(["0", "undelivered", ...Object.values(ErrorCode).map(String)]);

/** So many calls are counted together: one by one each costs as much as the decoding of its request. */
const COUNTED_TOGETHER = 64;

interface Ended {
  readonly plugin: string;
  readonly command: string;
  readonly code: string;
  readonly seconds: number;
}

export class RequestMeter {
  readonly #plugins: ReadonlySet<string>;
  readonly #metrics: Pick<AgentMetrics, "cniRequests" | "cniDuration" | "cniInProgress">;
  /** Not counted yet. */
  #ended: Ended[] = [];
  #underWay = 0;

  /** `drivers`: names of the callees beside the plugins. */
  constructor(set: Pick<AgentMetricSet, "metrics" | "onScrape">, drivers: Iterable<string> = []) {
    this.#plugins = new Set([...PLUGINS, ...drivers]);
    this.#metrics = set.metrics;
    set.onScrape(() => this.#count());
  }

  /** A call has come. Returns the function to call at its end. */
  begin(calledPlugin: string, calledCommand: unknown): (end: CallEnd) => void {
    const plugin = foldLabel(calledPlugin, this.#plugins);
    const command = foldLabel(String(calledCommand), COMMANDS);
    const startedMs = performance.now();
    this.#underWay++;
    return (end) => {
      this.#underWay--;
      const seconds = (performance.now() - startedMs) / 1000;
      this.#ended.push({ plugin, command, code: foldLabel(String(end), CODES), seconds });
      if (this.#ended.length >= COUNTED_TOGETHER) this.#count();
    };
  }

  #count(): void {
    const { cniRequests, cniDuration, cniInProgress } = this.#metrics;
    cniInProgress.set(this.#underWay);
    for (const { plugin, command, code, seconds } of this.#ended.splice(0)) {
      cniDuration.observe({ plugin, command }, seconds);
      cniRequests.inc({ plugin, command, code });
    }
  }
}
