/** Counts the calls of CNI plugins, and how long each took. */
import { ErrorCode } from "../../cni/error.ts";
import type { AgentMetrics } from "../../metrics/agent-metrics.ts";
import { foldLabel } from "../../metrics/metric.ts";

/** The end of a call: a CNI error code, 0 for success; "undelivered" if the caller hung up. */
export type CallEnd = number | "undelivered";

/** A caller can send any plugin, command and, through a bug, code: those that are not known are counted together. */
const PLUGINS = new Set(["berth", "coordinator", "ifacer"]);
const COMMANDS = new Set(["ADD", "CHECK", "DEL", "GC", "STATUS"]);
const CODES = new Set(["0", "undelivered", ...Object.values(ErrorCode).map(String)]);

export class RequestMeter {
  readonly #metrics: Pick<AgentMetrics, "cniRequests" | "cniDuration" | "cniInProgress">;
  #begun = 0;
  #underWay = 0;

  constructor(metrics: Pick<AgentMetrics, "cniRequests" | "cniDuration" | "cniInProgress">) {
    this.#metrics = metrics;
  }

  /** How many calls have come so far. */
  get begun(): number {
    return this.#begun;
  }

  /** How many of them are not answered. */
  get underWay(): number {
    return this.#underWay;
  }

  /** A call has come. Returns what to call at its end. */
  begin(calledPlugin: string, calledCommand: unknown): (end: CallEnd) => void {
    const { cniRequests, cniDuration, cniInProgress } = this.#metrics;
    const plugin = foldLabel(calledPlugin, PLUGINS);
    const command = foldLabel(String(calledCommand), COMMANDS);
    const startedMs = performance.now();
    this.#begun++;
    this.#underWay++;
    cniInProgress.inc();
    return (end) => {
      this.#underWay--;
      cniInProgress.dec();
      cniDuration.observe({ plugin, command }, (performance.now() - startedMs) / 1000);
      cniRequests.inc({ plugin, command, code: foldLabel(String(end), CODES) });
    };
  }
}
